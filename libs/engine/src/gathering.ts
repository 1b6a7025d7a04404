import { EMPTY_CONFIG, EMPTY_HASH, type Config, type Targets } from '#libs/contracts';
import { asker, type Effects, type Program } from './steps.js';

/** The key of a config in the bucket `configs`. */
export interface ConfigName {
  readonly node: string;
  readonly hash: string;
}
export interface ConfigBlob extends ConfigName {
  readonly text: string;
}

/** The effects of gathering: read and write blobs, see how far the input goes, and let other work run. */
export interface GatherPort {
  /** One config per name, in order; undefined if it does not exist or is not a config. */
  'read-configs'(args: { readonly names: readonly ConfigName[] }): readonly (Config | undefined)[];
  /** Returns when all of them are stored, which must be before a fact names them. */
  'put-configs'(args: { readonly configs: readonly ConfigBlob[] }): void;
  /** The keys of the blobs, for `config.rendered`. */
  'put-targets'(args: { readonly change: string; readonly targets: Targets }): readonly string[];
  /** Which of these objects, by their sha256, are not in the object store. */
  'missing-objects'(args: { readonly hashes: readonly string[] }): ReadonlySet<string>;
  /** The last sequence of the input stream of the core now; undefined if it has none. */
  'input-end'(): { readonly stream: string; readonly last: number } | undefined;
  pause(): void;
}
export type GatherEffect = Effects<GatherPort>;

/** Work that needs blobs, or takes long: the same generator in production and in the simulation. */
export type Gathering<T> = Program<GatherEffect, T>;

const ask = asker<GatherPort>();

/** The configs with these names. The empty config needs no reading; the hash '' means no config. */
export function* readConfigs(names: readonly ConfigName[]): Gathering<readonly (Config | undefined)[]> {
  const stored = names.filter(({ hash }) => hash !== '' && hash !== EMPTY_HASH);
  const read = stored.length === 0 ? [] : yield* ask({ do: 'read-configs', names: stored });
  let next = 0;
  return names.map(({ hash }) => (hash === EMPTY_HASH ? EMPTY_CONFIG : hash === '' ? undefined : read[next++]));
}

/** Which of these objects, by their sha256, are not in the object store. */
export function* missingObjects(hashes: readonly string[]): Gathering<ReadonlySet<string>> {
  return hashes.length === 0 ? new Set<string>() : yield* ask({ do: 'missing-objects', hashes });
}

/** The last sequence of the core's input stream now; 0 if it has none. */
export function* readInputEnd(): Gathering<number> {
  const end = yield* ask({ do: 'input-end' });
  return end?.last ?? 0;
}

/** Stores configs under their names. Returns when all are stored. */
export function* putConfigs(configs: readonly ConfigBlob[]): Gathering<void> {
  if (configs.length > 0) yield* ask({ do: 'put-configs', configs });
}

/** Stores the targets of a change, and returns their keys. */
export const putTargets = (change: string, targets: Targets): Gathering<readonly string[]> =>
  ask({ do: 'put-targets', change, targets });
