import type { Action } from '#libs/contracts';
import type { Escalated, Forward, GoingBack, Journal, RebootAsked } from './journal.js';
import type { Item, Step } from './ports.js';
import type { State } from './state.js';

const REBOOT: readonly Action[] = [{ kind: 'reboot' }];
/** One action may take that long, and of the time that is left at most a half: the rest is for restarting the machine instead. */
const ACTION_MS = 90_000;
const ACTION_SHARE = 1 / 2;

/** Whether a lease gives leave to restart the machine in the place of an action that fails: it does so itself, or the node is drained for it. */
export const mayRestart = ({ actions }: Pick<Forward, 'actions'>): boolean =>
  actions.some(({ kind }) => kind === 'drain' || kind === 'reboot');

const ORDER: readonly Action['kind'][] = ['drain', 'none', 'daemon-reload', 'reload', 'restart', 'reboot'];

/** Two planned lists as one, in the planner's order. Not by the planner itself: it would bring all kinds of manifests into the applier. */
function together(a: readonly Action[], b: readonly Action[]): readonly Action[] {
  const each = new Map([...a, ...b].map((action) => [`${action.kind} ${action.unit ?? ''}`, action]));
  return [...each.values()].sort((one, other) => ORDER.indexOf(one.kind) - ORDER.indexOf(other.kind));
}

/** What an earlier way back did not do: until the machine is restarted, whatever is done next has to make up for it. */
const stillOwed = ({ owed }: Journal, bootId: string): readonly Action[] =>
  owed?.bootId === bootId ? owed.actions : [];

/** What is done after the items of the way forward. */
export function forwardActions(work: Forward, journal: Journal, bootId: string): readonly Action[] {
  if (work.escalated !== undefined) return REBOOT;
  const owed = stillOwed(journal, bootId).filter(({ kind }) => kind !== 'reboot' || mayRestart(work));
  return owed.length === 0 ? work.actions : together(work.actions, owed);
}

/**
 * What is done after the items of the way back: the same as forward, for what stands there again. The machine is restarted once
 * more only if it runs on a boot that saw the new content.
 */
export function backActions(work: GoingBack, journal: Journal, bootId: string): readonly Action[] {
  if (work.backEscalated !== undefined) return REBOOT;
  const again = work.actions.filter(({ kind }) => kind !== 'reboot' || bootId !== (work.begunOn ?? work.bootId));
  const owed = stillOwed(journal, bootId);
  return owed.length === 0 ? again : together(again, owed);
}

export const actStep = (action: Action, items: readonly Item[], nowMs: number, endMs: number): Step => ({
  do: 'act',
  action,
  items,
  untilMs: Math.min(nowMs + ACTION_MS, nowMs + (endMs - nowMs) * ACTION_SHARE),
});

/** How far a restart of the machine is. */
export type Rebooting =
  /** It runs on another boot than the one on which it was asked for. */
  { readonly is: 'done' } | { readonly is: 'late' } | { readonly is: 'next'; readonly step: Step };

/** Restarts the machine: journals it, tells the machine, and waits for what ends this process. */
export function rebooting(
  state: State,
  work: Forward | GoingBack,
  items: readonly Item[],
  nowMs: number,
  endMs: number,
): Rebooting {
  const asked = work.reboot;
  if (asked === undefined) {
    const reboot: RebootAsked = { from: state.memory.bootId, untilMs: endMs };
    return { is: 'next', step: { do: 'write-journal', journal: { ...state.journal, work: { ...work, reboot } } } };
  }
  if (asked.from !== state.memory.bootId) return { is: 'done' };
  if (nowMs >= asked.untilMs) return { is: 'late' };
  const {
    journal,
    memory: { bootId },
  } = state;
  const actions = work.phase === 'forward' ? forwardActions(work, journal, bootId) : backActions(work, journal, bootId);
  const action = actions[state.memory.progress.acted];
  if (action === undefined) return { is: 'next', step: { do: 'wait', untilMs: asked.untilMs } };
  return { is: 'next', step: { do: 'act', action, items, untilMs: asked.untilMs } };
}

/** The journal's record of an action that is escalated. */
export const escalatedWork = (work: Forward, escalated: Escalated): Forward => ({
  ...work,
  escalated,
  reboot: undefined,
});
