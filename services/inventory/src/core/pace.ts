import { HEARTBEATS_PER_SECOND, MOST_PACE_MS, type NodeAlive } from '#libs/contracts';
import type { State } from './state.js';

/**
 * How often nodes send heartbeats. By default, each node sends one every ten seconds. In a large fleet, that would be
 * most of the work of an idle control plane, so the inventory asks for fewer, as Nomad's servers do
 * (`max_heartbeats_per_second`). Heartbeats contain the interval that the node was asked to use, so nothing is stored,
 * and a lost request is repeated at the next heartbeat.
 */

/** Nodes are not asked for intervals shorter than this. */
const LEAST_ASKED_MS = 10_000;
/** Nodes join and leave, so ask for a longer interval than needed, and ask again only if it is far off. */
const ROOM = 1.2;
const TOO_OFTEN = 1.5;
const TOO_SELDOM = 2;
/** Two heartbeats may be lost, and the third be late. */
const BEATS_MISSED = 3.5;

/**
 * The interval to ask a node for, in milliseconds (0: no preference); undefined if its interval is fine. `perSecond`:
 * heartbeats of the whole fleet; 0: no limit.
 */
export function paceFor(state: State, { everyMs, pacedMs }: NodeAlive, perSecond: number): number | undefined {
  const fairMs = perSecond === 0 ? 0 : fairPaceMs(state.memo.present, perSecond);
  const paceMs = askedPaceMs(fairMs);
  const isTooOften = everyMs > 0 && everyMs * TOO_OFTEN < fairMs && paceMs > pacedMs;
  const isTooSeldom = pacedMs > 0 && pacedMs > fairMs * TOO_SELDOM && paceMs < pacedMs;
  return isTooOften || isTooSeldom ? paceMs : undefined;
}

/** The interval to ask for if the fair share of each node is one heartbeat in `fairMs`; 0: no preference. */
export function askedPaceMs(fairMs: number): number {
  const askedMs = Math.min(Math.ceil((fairMs * ROOM) / 1_000) * 1_000, MOST_PACE_MS);
  return askedMs < LEAST_ASKED_MS ? 0 : askedMs;
}

/** How long a node may send no heartbeat before it is silent. Longer for a node that was asked for a long interval. */
export const patienceMs = (pacedMs: number, silentAfterMs: number): number =>
  Math.max(silentAfterMs, pacedMs * BEATS_MISSED);

/**
 * The same for a node that this leader has not heard yet. An earlier leader may have asked it for a long interval, when
 * the fleet was larger or the limit was lower.
 */
export function blindPatienceMs(state: State, present: number, silentAfterMs: number, perSecond: number): number {
  const fewest = Math.min(perSecond === 0 ? HEARTBEATS_PER_SECOND : perSecond, HEARTBEATS_PER_SECOND);
  const likelyMs = Math.min(fairPaceMs(present, fewest) * TOO_SELDOM, MOST_PACE_MS);
  const slowestMs = [...state.pacedMs.values()].reduce((most, pacedMs) => Math.max(most, pacedMs), likelyMs);
  return patienceMs(slowestMs, silentAfterMs);
}

const fairPaceMs = (present: number, perSecond: number): number => (present / perSecond) * 1_000;
