import type { DrainView } from '#libs/contracts';
import type { ConditionDraft } from './conditions.js';

/** A drain in progress, as its view shows it. */
export interface ObservedDrain {
  readonly view: DrainView;
  /** Since when it is blocked, or since when it drains if nothing blocks it; monotonic. */
  readonly sinceMs: number;
}

/** Drains that make no progress, for people. */
export interface DrainTrouble {
  /** How many of them are blocked; the others wait for pods to end. */
  readonly blocked: number;
  readonly words: string;
}

export interface DrainTroubles {
  readonly ofChange: ReadonlyMap<string, DrainTrouble>;
  readonly ofPool: ReadonlyMap<string, DrainTrouble>;
  /** When the next drain has taken long enough to be shown, monotonic. */
  readonly wakeAtMs: number;
}

export const NO_DRAIN_TROUBLE: DrainTroubles = { ofChange: new Map(), ofPool: new Map(), wakeAtMs: Infinity };
/** A refusal is common when the pods of one budget are evicted one after the other. */
const BLOCKED_MS = 5_000;
/** Pods may take a while to end, so a drain that is not blocked is shown only after this time. */
const SLOW_MS = 60_000;
const [MOST_DRAINS, MOST_PODS, MOST_CHARACTERS] = [5, 3, 300];

/** The drains to show, by the change and by the pool of their lease. */
export function drainTroubles(drains: Iterable<ObservedDrain>, nowMs: number): DrainTroubles {
  const { late = [], early = [] } = Object.groupBy(drains, (drain) => (tellAtMs(drain) > nowMs ? 'early' : 'late'));
  return {
    ofChange: troublesOf(Map.groupBy(late, ({ view }) => view.change)),
    ofPool: troublesOf(Map.groupBy(late, ({ view }) => view.pool)),
    wakeAtMs: Math.min(...early.map(tellAtMs)),
  };
}

/** The condition while drains make no progress. */
export const drainedOf = (trouble: DrainTrouble | undefined): readonly ConditionDraft[] =>
  trouble === undefined ? [] : [['Drained', 'False', trouble.blocked > 0 ? 'DrainBlocked' : 'Draining', trouble.words]];

const isBlocked = ({ view }: ObservedDrain): boolean => view.blockedSince !== '';

const tellAtMs = (drain: ObservedDrain): number => drain.sinceMs + (isBlocked(drain) ? BLOCKED_MS : SLOW_MS);

const troublesOf = (by: ReadonlyMap<string, readonly ObservedDrain[]>): ReadonlyMap<string, DrainTrouble> =>
  new Map([...by].map(([key, drains]) => [key, { blocked: drains.filter(isBlocked).length, words: wordsOf(drains) }]));

/** Blocked drains come first, the longest first. */
function wordsOf(drains: readonly ObservedDrain[]): string {
  const rank = (drain: ObservedDrain): string =>
    `${isBlocked(drain) ? 0 : 1} ${drain.view.blockedSince || drain.view.since} ${drain.view.node}`;
  const lines = [...drains]
    .sort((a, b) => (rank(a) < rank(b) ? -1 : 1))
    .slice(0, MOST_DRAINS)
    .map(({ view }) => lineOf(view));
  const more = drains.length - lines.length;
  return `${lines.join('; ')}${more === 0 ? '' : `; and ${more} more`}`;
}

function lineOf({ node, since, blockedSince, reason, budget, blocked, waitingFor }: DrainView): string {
  if (blockedSince === '')
    return `the drain of ${node} has been waiting since ${since}${waitingFor.length === 0 ? '' : ` for ${namesOf(waitingFor)}`}`;
  // If no budget refuses, the reason already names the pods.
  const pods = budget === '' || blocked.length === 0 ? '' : ` (${namesOf(blocked)})`;
  return `the drain of ${node} has been blocked since ${blockedSince}: ${reason.length > MOST_CHARACTERS ? `${reason.slice(0, MOST_CHARACTERS)}…` : reason}${pods}`;
}

const namesOf = (pods: readonly string[]): string =>
  `${pods.slice(0, MOST_PODS).join(', ')}${pods.length > MOST_PODS ? ' and others' : ''}`;
