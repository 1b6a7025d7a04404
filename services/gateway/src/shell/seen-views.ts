import { growingMs, listViews, watchViews, type Bus } from '#libs/nats';
import type { ViewBucket, ViewValues } from '#libs/contracts';
import { monotonicMs, type Logger } from '#libs/process';
import type { State } from '../core/index.js';

/** What to do with the values of views, by bucket. */
export type ViewTakers = { readonly [B in ViewBucket]?: (key: string, value: ViewValues[B]) => void };
type ViewHandler = (key: string, value: unknown) => void;

/** Writes the views into a state, except for the nodes of a rollout, which it does not need. */
export const takersOf = (state: State): ViewTakers => ({
  changes: (_, view) => state.show(view, pastMs(view.endedAt)),
  fragments: (_, view) => state.showFragment(view),
  nodes: (_, view) => state.showNode(view),
  rollouts: (change, view) => void state.rollouts.set(change, { ...view, worst: [] }),
  pools: (pool, view) => void state.pools.set(pool, view),
  drains: (_, view) => state.showDrain(view, pastMs(view.blockedSince || view.since)),
  'known-bad': (_, view) => state.showKnownBad(view),
});

const entriesOf = (takers: ViewTakers) => Object.entries(takers) as readonly (readonly [ViewBucket, ViewHandler])[];
const AGAIN_MS = 10_000;

/** Reads the current values of the views. */
export async function readViews(bus: Bus, takers: ViewTakers): Promise<void> {
  await Promise.all(entriesOf(takers).map(([bucket, take]) => readView(bus, bucket, take)));
}

async function readView(bus: Bus, bucket: ViewBucket, take: ViewHandler): Promise<void> {
  for (const [key, value] of await listViews(bus, bucket)) take(key, value);
}

/**
 * Follows views until the signal aborts, and starts again after errors. With `read`, each view is first read to its
 * end, and then this is called.
 */
export function followViews(
  bus: Bus,
  takers: ViewTakers,
  logger: Logger,
  signal: AbortSignal,
  on: {
    readonly read?: (bucket: ViewBucket) => void;
    readonly changed?: () => void;
    readonly deleted?: (bucket: ViewBucket, key: string) => void;
  },
): void {
  for (const [bucket, take] of entriesOf(takers)) void follow(bucket, take);

  async function follow(bucket: ViewBucket, take: ViewHandler): Promise<void> {
    let isRead = on.read === undefined;
    for (let tries = 0; !signal.aborted; tries += 1) {
      try {
        if (!isRead) {
          await readView(bus, bucket, take);
          on.read?.(bucket);
          isRead = true;
        }
        for await (const { key, value } of watchViews(bus, bucket, '>', signal, (deleted) =>
          on.deleted?.(bucket, deleted),
        )) {
          tries = 0;
          take(key, value);
          on.changed?.();
        }
      } catch (error) {
        if (!signal.aborted) logger.warn({ error, bucket }, 'a view cannot be followed; trying again');
      }
      await new Promise((resolve) => setTimeout(resolve, signal.aborted ? 0 : growingMs(tries, 200, AGAIN_MS)).unref());
    }
  }
}

/** Converts the time of day of a view to monotonic time, so that it still counts after a restart. */
function pastMs(time: string): number {
  const agoMs = Date.now() - Date.parse(time);
  return monotonicMs() - Math.max(0, Number.isNaN(agoMs) ? 0 : agoMs);
}
