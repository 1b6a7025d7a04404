import { ACTION_KINDS, ordered, type Action } from '#libs/contracts';
import type { Escalation, ForwardWork, RollbackWork, Journal, RebootRequest } from './journal.js';
import type { Item, Step } from './ports.js';
import type { State } from './state.js';

const REBOOT: readonly Action[] = [{ kind: 'reboot' }];
/** How long one action may take, but at most half of the remaining time: the rest is for a reboot instead. */
const ACTION_MS = 90_000;
const ACTION_SHARE = 1 / 2;

/** Whether a lease allows a reboot when an action fails: it has a reboot or a drain itself. */
export const mayRestart = ({ actions }: Pick<ForwardWork, 'actions'>): boolean =>
  actions.some(({ kind }) => kind === 'drain' || kind === 'reboot');

/** Merges two lists of actions. Unknown actions are kept: they fail, and escalate to a reboot. */
function together(a: readonly Action[], b: readonly Action[]): readonly Action[] {
  const isKnown = ({ kind }: Action): boolean => ACTION_KINDS.includes(kind);
  const all = [...a, ...b];
  return [...all.filter((action) => !isKnown(action)), ...ordered(all.filter(isKnown))];
}

/** An action as reasons and reports name it. */
export const actionText = ({ kind, unit }: Action): string => `action ${kind}${unit === undefined ? '' : ` ${unit}`}`;

/**
 * The actions that an earlier rollback could not take. The next work has to take them, unless the machine rebooted, or
 * they have failed for long: other changes must not fail because of these.
 */
const stillOutstanding = ({ outstanding }: Journal, bootId: string): readonly Action[] =>
  outstanding?.bootId === bootId && outstanding.failing === undefined ? outstanding.actions : [];

/** The actions after the items of a change. */
export function forwardActions(state: State, work: ForwardWork): readonly Action[] {
  const { journal, memory } = state;
  if (work.escalated !== undefined) return REBOOT;
  const outstanding = stillOutstanding(journal, memory.bootId).filter(
    ({ kind }) => kind !== 'reboot' || mayRestart(work),
  );
  const actions = outstanding.length === 0 ? work.actions : together(work.actions, outstanding);
  return actions.filter((action) => !isRestarted(state, work, action));
}

/**
 * The actions after the items of a rollback: the same as for the change, because the old content needs them too. The
 * machine reboots again only if this boot saw the new content.
 */
export function rollbackActions(state: State, work: RollbackWork): readonly Action[] {
  const { journal, memory } = state;
  const { bootId } = memory;
  if (work.rollbackEscalated !== undefined) return REBOOT;
  const again = work.actions.filter(({ kind }) => kind !== 'reboot' || bootId !== (work.begunOn ?? work.bootId));
  const outstanding = stillOutstanding(journal, bootId);
  const actions = outstanding.length === 0 ? again : together(again, outstanding);
  return actions.filter((action) => !isRestarted(state, work, action));
}

const isOwnRestart = ({ settings: { ownUnit } }: State, { kind, unit }: Action): boolean =>
  kind === 'restart' && unit !== undefined && unit === ownUnit;

/** It has ended the process that requested it, so it is done. Taken again, it would end each process that goes on. */
const isRestarted = (state: State, { restartsApplier }: ForwardWork | RollbackWork, action: Action): boolean =>
  restartsApplier === true && isOwnRestart(state, action) && !state.memory.progress.restarting;

/** Takes an action of a change or a rollback. The journal notes it first if it ends this process. */
export function workActStep(
  state: State,
  work: ForwardWork | RollbackWork,
  action: Action,
  items: readonly Item[],
  time: { readonly nowMs: number; readonly endMs: number },
): Step {
  if (!isOwnRestart(state, action) || state.memory.progress.restarting)
    return actStep(action, items, time.nowMs, time.endMs);
  return { do: 'write-journal', journal: { ...state.journal, work: { ...work, restartsApplier: true } } };
}

export const actStep = (action: Action, items: readonly Item[], nowMs: number, endMs: number): Step => ({
  do: 'act',
  action,
  items,
  untilMs: Math.min(nowMs + ACTION_MS, nowMs + (endMs - nowMs) * ACTION_SHARE),
});

/** The progress of a reboot. */
export type RebootProgress =
  /** The boot id differs from the one at the request. */
  { readonly is: 'done' } | { readonly is: 'late' } | { readonly is: 'next'; readonly step: Step };

/** Reboots the machine: journals the request, runs the command, and waits until the reboot ends this process. */
export function rebooting(
  state: State,
  work: ForwardWork | RollbackWork,
  items: readonly Item[],
  nowMs: number,
  endMs: number,
): RebootProgress {
  const request = work.reboot;
  if (request === undefined) {
    const reboot: RebootRequest = { from: state.memory.bootId, untilMs: endMs };
    return { is: 'next', step: { do: 'write-journal', journal: { ...state.journal, work: { ...work, reboot } } } };
  }
  if (request.from !== state.memory.bootId) return { is: 'done' };
  if (nowMs >= request.untilMs) return { is: 'late' };
  const actions = work.phase === 'forward' ? forwardActions(state, work) : rollbackActions(state, work);
  const action = actions[state.memory.progress.acted];
  if (action === undefined) return { is: 'next', step: { do: 'wait', untilMs: request.untilMs } };
  return { is: 'next', step: { do: 'act', action, items, untilMs: request.untilMs } };
}

/** The journal's record of an action that is escalated. */
export const escalatedWork = (work: ForwardWork, escalated: Escalation): ForwardWork => ({
  ...work,
  escalated,
  reboot: undefined,
});
