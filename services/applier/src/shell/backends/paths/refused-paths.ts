import type { ConfigEntry } from '#libs/contracts';
import type { BackendFactory, CheckContext, Surroundings } from '../../ports.js';
import { directoryBackend, fileBackend, linkBackend } from './path-backends.js';

const FACTORIES: ReadonlyMap<string, BackendFactory> = new Map([
  ['Directory', directoryBackend],
  ['File', fileBackend],
  ['Link', linkBackend],
]);

/**
 * Why this node would refuse entries that own a path, by path: the same checks as before a change. The entries have no
 * content, so what depends on it is not known. `taken`: the resources that Sluice manages.
 */
export async function refusedPaths(
  surroundings: Surroundings,
  entries: readonly ConfigEntry[],
  taken: ReadonlySet<string>,
): Promise<ReadonlyMap<string, string>> {
  const refused = new Map<string, string>();
  const checked: CheckContext = { config: { fragments: entries }, from: { fragments: [] }, taken, places: new Map() };
  for (const entry of entries) {
    const { path } = entry.spec;
    try {
      await FACTORIES.get(entry.kind)?.create(surroundings)?.check(entry, checked);
    } catch (error) {
      if (typeof path === 'string') refused.set(path, (error as Error).message);
    }
  }
  return refused;
}
