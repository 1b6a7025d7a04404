import { EMPTY_CONFIG, EMPTY_HASH, type Config, type Targets } from '#libs/contracts';
import { asker, type Effects, type Program } from './steps.js';

/** A config's place in the bucket `configs`. */
export interface ConfigName {
  readonly node: string;
  readonly hash: string;
}
export interface ConfigBlob extends ConfigName {
  readonly text: string;
}

/** What gathering asks of the world: blobs, and to let others have their turn. */
export interface GatherPort {
  /** One for each name, in their order; undefined where there is none, or what is there is no config. */
  'read-configs'(asked: { readonly names: readonly ConfigName[] }): readonly (Config | undefined)[];
  /** Answers when all of them are stored: before any fact names them. */
  'put-configs'(asked: { readonly configs: readonly ConfigBlob[] }): void;
  /** The keys of the blobs, for `config.rendered`. */
  'put-targets'(asked: { readonly change: string; readonly targets: Targets }): readonly string[];
  pause(): void;
}
export type GatherEffect = Effects<GatherPort>;

/** Work that needs blobs, or takes long: the same generator in production and in the simulation. */
export type Gathering<T> = Program<GatherEffect, T>;

const ask = asker<GatherPort>();

/** The configs with these names; the empty one is known without reading, and a hash of '' names none. */
export function* readConfigs(names: readonly ConfigName[]): Gathering<readonly (Config | undefined)[]> {
  const stored = names.filter(({ hash }) => hash !== '' && hash !== EMPTY_HASH);
  const read = stored.length === 0 ? [] : yield* ask({ do: 'read-configs', names: stored });
  let next = 0;
  return names.map(({ hash }) => (hash === EMPTY_HASH ? EMPTY_CONFIG : hash === '' ? undefined : read[next++]));
}

/** Stores configs under their names; resolves when all stand. */
export function* putConfigs(configs: readonly ConfigBlob[]): Gathering<void> {
  if (configs.length > 0) yield* ask({ do: 'put-configs', configs });
}

/** Stores the targets of a change, and gives the keys that name them. */
export const putTargets = (change: string, targets: Targets): Gathering<readonly string[]> =>
  ask({ do: 'put-targets', change, targets });
