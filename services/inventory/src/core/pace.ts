import { HEARTBEATS_PER_SECOND, MOST_PACE_MS, type NodeAlive } from '#libs/contracts';
import type { State } from './state.js';

/**
 * How often nodes say that they are alive. Each by itself says it every ten seconds; of a large fleet that would be
 * what its idle control plane does most, so there the inventory asks for less, as Nomad's servers do
 * (`max_heartbeats_per_second`). What a node was asked for it says in its heartbeats: nothing is kept of it, and a
 * request that was lost is made again with the next one.
 */

/** Below this a node is left to its own. */
const LEAST_ASKED_MS = 10_000;
/** Nodes join and leave: asked is for some more, and asked again only when it is far off. */
const ROOM = 1.2;
const TOO_OFTEN = 1.5;
const TOO_SELDOM = 2;
/** Two heartbeats may be lost, and the third be late. */
const BEATS_MISSED = 3.5;

/**
 * What this node is to be asked for, in milliseconds (0: to beat as it likes); undefined when it beats well.
 * `perSecond`: heartbeats of the whole fleet; 0 for any.
 */
export function paceFor(state: State, { everyMs, pacedMs }: NodeAlive, perSecond: number): number | undefined {
  const fairMs = perSecond === 0 ? 0 : fairPaceMs(state.memo.present, perSecond);
  const asked = askedPaceMs(fairMs);
  const isTooOften = everyMs > 0 && everyMs * TOO_OFTEN < fairMs && asked > pacedMs;
  const isTooSeldom = pacedMs > 0 && pacedMs > fairMs * TOO_SELDOM && asked < pacedMs;
  return isTooOften || isTooSeldom ? asked : undefined;
}

/** What nodes are asked for where each fair share is one beat in `fairMs`; 0: to beat as they like. */
export function askedPaceMs(fairMs: number): number {
  const askedMs = Math.min(Math.ceil((fairMs * ROOM) / 1_000) * 1_000, MOST_PACE_MS);
  return askedMs < LEAST_ASKED_MS ? 0 : askedMs;
}

/** For how long a node may be unheard: one that was asked to beat seldom has longer. */
export const patienceMs = (pacedMs: number, silentAfterMs: number): number =>
  Math.max(silentAfterMs, pacedMs * BEATS_MISSED);

/**
 * The same for a node that this leader has not heard: it may have been asked when the fleet was larger, or when fewer
 * heartbeats were aimed at. Who heard one that was asked to beat seldom cannot know that of the others.
 */
export function blindPatienceMs(state: State, present: number, silentAfterMs: number, perSecond: number): number {
  const fewest = Math.min(perSecond === 0 ? HEARTBEATS_PER_SECOND : perSecond, HEARTBEATS_PER_SECOND);
  const likelyMs = Math.min(fairPaceMs(present, fewest) * TOO_SELDOM, MOST_PACE_MS);
  const slowestMs = [...state.pacedMs.values()].reduce((most, pacedMs) => Math.max(most, pacedMs), likelyMs);
  return patienceMs(slowestMs, silentAfterMs);
}

const fairPaceMs = (present: number, perSecond: number): number => (present / perSecond) * 1_000;
