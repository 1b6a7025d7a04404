import { configKey } from '#libs/contracts';
import { atOnce, fold, newCopy, sweep, type Effects, type StoredBlob, type SweepPort } from '#libs/engine';
import { mergerCore, referencedConfigs } from '../../../services/merger/src/core/index.js';
import { sha256, type SimBus } from './bus.js';
import type { World } from './world.js';

/**
 * A day, and the week for which an unused config is kept, scaled to the time of a run: longer than anything is in
 * flight.
 */
const EVERY_MS = 15_000;
const TIMES = { unreferencedMs: 3 * 60_000, settledMs: 0 };

/**
 * In every run: the sweep of the merger, its trimming of changes, and a server that deletes expired values. Nothing may
 * notice any of it.
 */
export function keepUp(world: World): void {
  const { bus, clock } = world;
  const copy = newCopy(mergerCore(sha256));
  const reads = new Set<string>(copy.core.reads);
  let [names, namesAt]: [ReadonlySet<string>, string] = [new Set(), ''];
  const namesNow = (): ReadonlySet<string> => {
    const newest = `${bus.last} ${bus.viewsWritten}`;
    if (newest === namesAt) return names;
    fold(copy, { entries: bus.entries(copy.folded, bus.last, 0, reads), upTo: bus.last });
    namesAt = newest;
    const [statuses, leases] = [bus.views('status'), bus.views('leases')];
    return (names =
      world.mutant?.forgetsNames === true
        ? new Set(statuses.map(({ node, hash }) => configKey(node, hash)))
        : referencedConfigs(copy.state, { statuses, leases }));
  };
  const once = (): void => {
    atOnce<Effects<SweepPort<StoredBlob>>, unknown>(sweep(TIMES), {
      'list-blobs': () => ({ blobs: bus.storedConfigs, nowMs: clock.nowMs }),
      'read-references': () => (key: string) => namesNow().has(key),
      'rewrite-blobs': ({ blobs, liveMs }) => {
        for (const { key } of blobs)
          if (liveMs === undefined) bus.endsMs.delete(key);
          else bus.endsMs.set(key, clock.nowMs + liveMs);
      },
    });
    expire(world, bus);
    namesNow();
    bus.trimmedChanges = copy.state.cursor.get();
    clock.after(EVERY_MS, once);
  };
  clock.after(EVERY_MS, once);
}

/** Nothing is deleted while a merger works on what it rendered: a week is longer than that ever takes. */
function expire(world: World, bus: SimBus): void {
  if (world.serving('merger').some(({ copy }) => copy.gathered.size > 0)) return;
  for (const key of bus.configs.keys()) {
    if ((bus.endsMs.get(key) ?? Infinity) > world.clock.nowMs) continue;
    bus.configs.delete(key);
    bus.endsMs.delete(key);
    world.fire('tidying');
    world.trace(() => `nothing names the config ${key} any more: it is gone`);
  }
}
