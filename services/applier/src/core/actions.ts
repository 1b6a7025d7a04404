import { ACTION_KINDS, ordered, type Action } from '#libs/contracts';
import type { Escalation, Forward, RollingBack, Journal, RebootRequest } from './journal.js';
import type { Item, Step } from './ports.js';
import type { State } from './state.js';

const REBOOT: readonly Action[] = [{ kind: 'reboot' }];
/**
 * One action may take that long, and of the time that is left at most a half: the rest is for restarting the machine
 * instead.
 */
const ACTION_MS = 90_000;
const ACTION_SHARE = 1 / 2;

/**
 * Whether a lease gives leave to restart the machine in the place of an action that fails: it does so itself, or the
 * node is drained for it.
 */
export const mayRestart = ({ actions }: Pick<Forward, 'actions'>): boolean =>
  actions.some(({ kind }) => kind === 'drain' || kind === 'reboot');

/** Two planned lists as one. What this applier does not know stays as it is: it fails, and asks for a restart. */
function together(a: readonly Action[], b: readonly Action[]): readonly Action[] {
  const isKnown = ({ kind }: Action): boolean => ACTION_KINDS.includes(kind);
  const all = [...a, ...b];
  return [...all.filter((action) => !isKnown(action)), ...ordered(all.filter(isKnown))];
}

/** What an earlier rollback did not do: until the machine restarts, the next work has to do it. */
const stillOutstanding = ({ outstanding }: Journal, bootId: string): readonly Action[] =>
  outstanding?.bootId === bootId ? outstanding.actions : [];

/** What is done after the items of the way forward. */
export function forwardActions(work: Forward, journal: Journal, bootId: string): readonly Action[] {
  if (work.escalated !== undefined) return REBOOT;
  const outstanding = stillOutstanding(journal, bootId).filter(({ kind }) => kind !== 'reboot' || mayRestart(work));
  return outstanding.length === 0 ? work.actions : together(work.actions, outstanding);
}

/**
 * What is done after the items of the rollback: the same as forward, for what stands there again. The machine is
 * restarted once more only if it runs on a boot that saw the new content.
 */
export function rollbackActions(work: RollingBack, journal: Journal, bootId: string): readonly Action[] {
  if (work.rollbackEscalated !== undefined) return REBOOT;
  const again = work.actions.filter(({ kind }) => kind !== 'reboot' || bootId !== (work.begunOn ?? work.bootId));
  const outstanding = stillOutstanding(journal, bootId);
  return outstanding.length === 0 ? again : together(again, outstanding);
}

export const actStep = (action: Action, items: readonly Item[], nowMs: number, endMs: number): Step => ({
  do: 'act',
  action,
  items,
  untilMs: Math.min(nowMs + ACTION_MS, nowMs + (endMs - nowMs) * ACTION_SHARE),
});

/** How far a restart of the machine is. */
export type RebootProgress =
  /** It runs on another boot than the one on which it was asked for. */
  { readonly is: 'done' } | { readonly is: 'late' } | { readonly is: 'next'; readonly step: Step };

/** Restarts the machine: journals it, tells the machine, and waits for what ends this process. */
export function rebooting(
  state: State,
  work: Forward | RollingBack,
  items: readonly Item[],
  nowMs: number,
  endMs: number,
): RebootProgress {
  const asked = work.reboot;
  if (asked === undefined) {
    const reboot: RebootRequest = { from: state.memory.bootId, untilMs: endMs };
    return { is: 'next', step: { do: 'write-journal', journal: { ...state.journal, work: { ...work, reboot } } } };
  }
  if (asked.from !== state.memory.bootId) return { is: 'done' };
  if (nowMs >= asked.untilMs) return { is: 'late' };
  const { journal } = state;
  const { bootId } = state.memory;
  const actions =
    work.phase === 'forward' ? forwardActions(work, journal, bootId) : rollbackActions(work, journal, bootId);
  const action = actions[state.memory.progress.acted];
  if (action === undefined) return { is: 'next', step: { do: 'wait', untilMs: asked.untilMs } };
  return { is: 'next', step: { do: 'act', action, items, untilMs: asked.untilMs } };
}

/** The journal's record of an action that is escalated. */
export const escalatedWork = (work: Forward, escalated: Escalation): Forward => ({
  ...work,
  escalated,
  reboot: undefined,
});
