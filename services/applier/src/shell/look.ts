import type { Config, ConfigEntry, PathAnswer, PathQuery } from '#libs/contracts';
import type { ApplierRun } from '../core/index.js';
import { findPaths } from './backends/paths/found-paths.js';
import type { Storage, Surroundings } from './ports.js';
import { checkContext, type ResourceSteps } from './resource-steps.js';

/** What a node needs to look at its paths. */
export interface LookMeans {
  readonly applier: Pick<ApplierRun, 'lease' | 'journal' | 'config'>;
  readonly storage: Pick<Storage, 'readConfig'>;
  readonly resources: ResourceSteps;
  readonly surroundings: Pick<Surroundings, 'aliases' | 'root'>;
}

/**
 * What exists at the paths, and what this node would refuse there. The entries have no content, so what depends on it
 * is not known. It does not look while it works on a lease: a path on a file system that does not answer could keep it
 * past the deadline, and what a lease is changing says nothing about what comes after it.
 */
export async function look({ paths, entries }: PathQuery, means: LookMeans): Promise<PathAnswer> {
  const { applier, resources, surroundings } = means;
  if (applier.lease !== undefined) return BUSY;
  const from = await configInForce(means);
  if (from === undefined) return BUSY;
  const { originals } = applier.journal;
  const { aliases, root } = surroundings;
  const isManaged = (path: string): boolean =>
    [aliases.key(path), aliases.key(path, true)].some((key) => key in originals);
  const found = await findPaths(root, paths);
  const unreachable = new Set(found.flatMap(({ path, state }) => (state === 'unreachable' ? [path] : [])));
  const readable = entries.flatMap(({ kind, name, spec = {} }): readonly ConfigEntry[] =>
    unreachable.has(String(spec['path'])) ? [] : [{ kind, name, spec }],
  );
  const refusals = await resources.refusals(
    readable,
    checkContext({ config: { fragments: readable }, from, originals }),
  );
  const reasons = new Map(refusals.map(({ entry, reason }) => [String(entry.spec['path']), reason]));
  return {
    found: paths.flatMap((path) => {
      const reason = reasons.get(path) ?? '';
      const here = found.find((one) => one.path === path);
      if (reason === '' && (here === undefined || isManaged(path))) return [];
      return [{ ...(here ?? { path, state: 'absent', what: 'nothing' }), refused: reason }];
    }),
    busy: false,
  };
}

const BUSY: PathAnswer = { found: [], busy: true };

/** Undefined if it cannot be read: then nobody can tell what a change would meet. */
async function configInForce({ applier, storage }: LookMeans): Promise<Config | undefined> {
  const config = applier.config ?? (await storage.readConfig(applier.journal.inForce));
  return typeof config === 'string' ? undefined : config;
}
