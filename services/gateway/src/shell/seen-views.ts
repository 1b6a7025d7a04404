import { growingMs, listViews, watchViews, type Bus } from '#libs/bus';
import type { ViewBucket, ViewValues } from '#libs/contracts';
import { monotonicMs, type Logger } from '#libs/runtime';
import type { State } from '../core/index.js';

type Takes = { readonly [B in ViewBucket]?: (state: State, key: string, value: ViewValues[B]) => void };

/** What of each view is of interest. The nodes of a rollout are not. */
const TAKES = {
  changes: (state, _, view) => state.show(view, pastMs(view.endedAt)),
  nodes: (state, _, view) => state.showNode(view),
  rollouts: (state, change, view) => void state.rollouts.set(change, { ...view, worst: [] }),
  pools: (state, pool, view) => void state.pools.set(pool, view),
  drains: (state, _, view) => state.showDrain(view, pastMs(view.blockedSince || view.since)),
  'known-bad': (state, _, view) => state.showKnownBad(view),
} satisfies Takes;
const BUCKETS = Object.keys(TAKES) as readonly (keyof typeof TAKES)[];
const AGAIN_MS = 10_000;

/** Reads what the views show now. */
export async function readViews(bus: Bus, state: State): Promise<void> {
  await Promise.all(
    BUCKETS.map(async (bucket) => {
      for (const [key, value] of await listViews(bus, bucket)) take(state, bucket, key, value);
    }),
  );
}

/** Follows the views until the signal aborts, whatever breaks in between. */
export function followViews(bus: Bus, state: State, logger: Logger, signal: AbortSignal, changed: () => void): void {
  for (const bucket of BUCKETS)
    void followView(bus, bucket, logger, signal, (key, value) => {
      take(state, bucket, key, value);
      changed();
    });
}

/** Follows one view: what it shows now, and then every change. */
export async function followView<B extends ViewBucket>(
  bus: Bus,
  bucket: B,
  logger: Logger,
  signal: AbortSignal,
  heard: (key: string, value: ViewValues[B]) => void,
): Promise<void> {
  for (let tries = 0; !signal.aborted; tries += 1) {
    try {
      for await (const { key, value } of watchViews(bus, bucket, '>', signal)) {
        tries = 0;
        heard(key, value);
      }
    } catch (error) {
      if (!signal.aborted) logger.warn({ error, bucket }, 'a view cannot be followed; trying again');
    }
    await new Promise((resolve) => setTimeout(resolve, signal.aborted ? 0 : growingMs(tries, 200, AGAIN_MS)).unref());
  }
}

/** A view's time of day as this process counts time: so what rests on it is after a restart as it was before. */
function pastMs(time: string): number {
  const agoMs = Date.now() - Date.parse(time);
  return monotonicMs() - Math.max(0, Number.isNaN(agoMs) ? 0 : agoMs);
}

function take<B extends keyof typeof TAKES>(state: State, bucket: B, key: string, value: ViewValues[B]): void {
  (TAKES[bucket] as (state: State, key: string, value: ViewValues[B]) => void)(state, key, value);
}
