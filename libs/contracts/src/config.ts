/** One entry of a node's config: a rendered fragment, without the fields that only select or describe it. */
export interface ConfigEntry {
  readonly kind: string;
  readonly name: string;
  readonly spec: Readonly<Record<string, unknown>>;
  /** The fragment that people wrote, as `Kind/name`, if this is one of the objects that it became. */
  readonly origin?: string;
}

/**
 * The config of a node: the value in the bucket `configs`. Entries are sorted by kind, then name. Its identity is the
 * sha256 of its canonical JSON.
 */
export interface Config {
  readonly fragments: readonly ConfigEntry[];
}

/** Parses the text of a config; undefined if it is not a config. */
export function decodeConfig(text: string): Config | undefined {
  try {
    const { fragments } = JSON.parse(text) as Partial<Config>;
    return Array.isArray(fragments) && fragments.every(isEntry) ? { fragments } : undefined;
  } catch {
    return undefined;
  }
}

function isEntry(value: unknown): value is ConfigEntry {
  const { kind, name, spec } = (value ?? {}) as Partial<ConfigEntry>;
  return typeof kind === 'string' && typeof name === 'string' && typeof spec === 'object' && spec !== null;
}

export const EMPTY_CONFIG: Config = { fragments: [] };
/** The sha256 of its canonical JSON, `{"fragments":[]}`. */
export const EMPTY_HASH = 'a443d8b9fa2d8ea053f9918010af66fe631edfa19257cb361e15dea1509ff59d';

/**
 * The configs of a node in one change: the hashes `from` and `to`, and the recipe of `to`. One entry of a blob in
 * `targets`.
 */
export interface Target {
  readonly from: string;
  readonly to: string;
  readonly recipe: string;
}
export type Targets = Readonly<Record<string, Target>>;
