import type { Config, ConfigEntry } from '#libs/contracts';
import { objectRefOf, wordsFor } from '#libs/manifests/lean';
import { entriesWithObject, UNREACHABLE, type Log, type Outcomes } from '../core/index.js';
import { spaceAt, spaceIn } from './backends/paths/path-state.js';
import type { BusPort } from './bus-port.js';
import { fetchObject } from './object-fetch.js';
import { refusalOf, type Surroundings } from './ports.js';

/** Gets the contents of entries that are objects in the object store. */
export interface ContentFetches {
  fetch(entry: ConfigEntry, isOver: () => boolean): Promise<Outcomes['fetch-object'] | typeof UNREACHABLE>;
  learnSizes(entries: readonly ConfigEntry[]): Promise<void>;
  fetchAll(config: Config, isOver: () => boolean): Promise<Outcomes['prefetch'] | typeof UNREACHABLE>;
}

/** Gets the contents of objects into the state folder. Changes nothing else. */
export class Downloads implements ContentFetches {
  constructor(
    private readonly bus: BusPort,
    private readonly surroundings: Surroundings,
    private readonly log: Log,
    /** Whether the node does not have the content of an entry yet. */
    private readonly isNeeded: (entry: ConfigEntry) => Promise<boolean>,
  ) {}

  /** Downloads from NATS only what is not on this machine yet. */
  async fetch(entry: ConfigEntry, isOver: () => boolean): Promise<Outcomes['fetch-object'] | typeof UNREACHABLE> {
    const ref = objectRefOf(entry);
    if (ref === undefined) return undefined;
    const { root, contents, ending } = this.surroundings;
    let unreachable: Error | undefined;
    try {
      await this.learnSizes([entry]);
      if (!(await this.isNeeded(entry))) return undefined;
      const trouble = await fetchObject({
        ref,
        contents,
        ask: (what, ask) =>
          this.bus.call(what, ask).catch((error: Error) => {
            throw (unreachable ??= error);
          }),
        requireSpace: async (bytes) => {
          const required = (): Promise<void> => requireSpace(bytes, contents.folder, root, String(entry.spec['path']));
          await required().catch(async (error: unknown) => {
            if (!(await contents.giveUpKept())) throw error;
            await required();
          });
        },
        isOver: () => ending.aborted || isOver(),
      });
      return trouble && { ...trouble, reason: `${wordsFor(entry)}: ${trouble.reason}` };
    } catch (error) {
      if (unreachable === undefined) {
        // On a full disk, a partly written file would prevent every other write.
        await contents.drop(ref.sha256).catch(() => undefined);
        return refusalOf(error, wordsFor(entry));
      }
      this.log.warn({ step: 'fetch-object', error: unreachable.message }, 'NATS cannot be used; trying again');
      return UNREACHABLE;
    }
  }

  /** Asks NATS for sizes that are not known, so that a file of another size is not read. */
  async learnSizes(entries: readonly ConfigEntry[]): Promise<void> {
    const { sizes } = this.surroundings.contents;
    for (const entry of entries) {
      const sha256 = objectRefOf(entry)?.sha256;
      if (sha256 === undefined || sizes.of(sha256) !== undefined) continue;
      try {
        const info = await this.bus.call('object', (bus) => bus.object(sha256));
        if (info !== undefined) sizes.tell(sha256, info.bytes);
      } catch {
        return;
      }
    }
  }

  /** The same for all objects of a config, until one of them cannot be had. */
  async fetchAll(config: Config, isOver: () => boolean): Promise<Outcomes['prefetch'] | typeof UNREACHABLE> {
    for (const entry of entriesWithObject(config)) {
      const trouble = await this.fetch(entry, isOver);
      if (trouble === UNREACHABLE) return UNREACHABLE;
      if (trouble !== undefined) return { isOver: trouble.mayCome !== true };
    }
    return { isOver: true };
  }
}

/** The content is downloaded into the state folder, and then written next to the file that it replaces. */
async function requireSpace(bytes: number, stateFolder: string, root: string, path: string): Promise<void> {
  const [state, target] = await Promise.all([spaceIn(stateFolder), spaceAt(root, path)]);
  const wanted = state.device === target.device ? 2 * bytes : bytes;
  for (const [{ freeBytes }, place] of [
    [state, stateFolder],
    [target, path],
  ] as const)
    if (freeBytes < wanted)
      throw new Error(`needs ${wanted} bytes of disk space at ${place}, but ${freeBytes} are free`);
}
