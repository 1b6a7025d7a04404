import type { Core, Need } from './core.js';

type Migrating = Pick<Core<unknown, never, Need, unknown>, 'version' | 'migrations'>;

/** The versions whose dumps a core can load, its own first: as far back as there is a step from each to the next. */
export function loadableVersions({ version, migrations }: Migrating): readonly number[] {
  const versions = [version];
  for (let older = version - 1; migrations?.[older] !== undefined; older -= 1) versions.push(older);
  return versions;
}

/** A dump of another version as one of the core's own, step by step. Throws when a step is missing. */
export function migrated({ version, migrations }: Migrating, from: number, dumped: unknown): unknown {
  let dump = dumped;
  for (let at = from; at !== version; at += 1) {
    const step = migrations?.[at];
    if (step === undefined) throw new Error(`there is no way from a dump of version ${from} to version ${version}`);
    dump = step(dump);
  }
  return dump;
}
