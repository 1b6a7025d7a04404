import { isForOthers, type Item, type Kinds, type Step } from './ports.js';
import type { Progress, State } from './state.js';

/** The share of the remaining time in which others may do their part; the rest is for what follows. */
const WAITING_SHARE = 1 / 2;
const MOST_NAMED = 3;

/** Waits for others to do their part of these items; undefined if that is done, of no use, or took too long. */
export function othersStep(
  { memory: { progress }, settings: { kinds } }: State,
  items: readonly Item[],
  nowMs: number,
  lastMs: number,
): Step | undefined {
  const theirs = items.filter((item) => isForOthers(item, kinds));
  if (theirs.length === 0) return undefined;
  const { what, isOver, untilMs } = progress.leftToOthers ?? {
    what: undefined,
    isOver: false,
    untilMs: nowMs + (lastMs - nowMs) * WAITING_SHARE,
  };
  if (isOver || what?.length === 0 || nowMs >= untilMs) return undefined;
  return { do: 'await-others', items: theirs, untilMs };
}

/** What others may still be doing after the lease, for its report. */
export function othersText({ leftToOthers }: Progress): readonly string[] {
  const { what = [] } = leftToOthers ?? {};
  const rest = what.length > MOST_NAMED ? ` and ${what.length - MOST_NAMED} more` : '';
  return what.length === 0 ? [] : [`not done yet: ${what.slice(0, MOST_NAMED).join('; ')}${rest}`];
}

/** The removals among these items: what is applied is waited for anyway. */
export const removalsIn = (items: readonly Item[], kinds: Kinds): readonly Item[] =>
  kinds.doneByOthers === undefined ? [] : items.filter((item) => item.do === 'restore');
