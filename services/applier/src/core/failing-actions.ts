import type { Action, FailingProbe } from '#libs/contracts';
import { actionText } from './actions.js';
import type { Journal, PendingActions } from './journal.js';
import { canReboot, type FailingAction, type Progress, type State } from './state.js';

/**
 * How long a node that cannot reboot stays degraded because of an action. It takes a unit of its pool meanwhile, and
 * nothing else may ever end that: a machine that reboots is not degraded either, whether its units start or not.
 */
const DEGRADED_MS = 300_000;

/** What a rollback leaves: until when the node is degraded because of its actions, if it cannot reboot. */
export function degradedUntil(state: State, nowMs: number): Pick<PendingActions, 'degradedUntilMs'> {
  const { journal, memory } = state;
  if (canReboot(state)) return {};
  const known = journal.outstanding?.bootId === memory.bootId ? journal.outstanding.degradedUntilMs : undefined;
  return { degradedUntilMs: known ?? nowMs + DEGRADED_MS };
}

/**
 * The actions that fail, if nothing else is wrong and they have failed for long: the node is unhealthy from then on,
 * and not degraded. Empty otherwise.
 */
export function lastingFailures(state: State, nowMs: number): readonly FailingAction[] {
  const { journal, memory } = state;
  const { outstanding } = journal;
  if (outstanding === undefined || canReboot(state) || !onlyActionsFail(memory.progress)) return [];
  const isOver = outstanding.bootId !== memory.bootId || nowMs >= (outstanding.degradedUntilMs ?? -Infinity);
  return isOver ? memory.progress.failing : [];
}

/** The same for the rollback of a change: these actions have failed before the change, too. */
export function failuresAsBefore({ journal, memory: { progress } }: State): readonly FailingAction[] {
  const known = journal.sound ? (journal.outstanding?.failing ?? []) : [];
  const isKnown = ({ probe }: FailingAction): boolean => known.some((one) => one.probe === probe);
  return onlyActionsFail(progress) && progress.failing.every(isKnown) ? progress.failing : [];
}

function onlyActionsFail({ troubles, failing, differences = [] }: Progress): boolean {
  const isAll = failing.length > 0 && failing.length === troubles.length && differences.length === 0;
  return isAll && !failing.some(({ unreachable }) => unreachable);
}

/** What still fails after these actions were tried, of which `failing` failed again. */
export function stillFailing(
  { outstanding }: Journal,
  tried: readonly Action[],
  failing: readonly FailingAction[],
): PendingActions | undefined {
  const names = new Set(tried.map(actionText));
  const before = (outstanding?.failing ?? []).map((one, i): Failing => ({ ...one, action: outstanding?.actions[i] }));
  const isUnknown = ({ probe }: Failing): boolean =>
    !names.has(probe) || failing.some((one) => one.probe === probe && one.unreachable);
  const now = [...before.filter(isUnknown), ...failing.filter(({ unreachable }) => !unreachable)];
  return now.length === 0 || outstanding === undefined ? undefined : pendingOf(now, outstanding.bootId);
}

interface Failing extends FailingProbe {
  readonly action: Action | undefined;
}

/** These actions are tried again at growing intervals. */
export const pendingOf = (failing: readonly Failing[], bootId: string): PendingActions => ({
  actions: failing.flatMap(({ action }) => action ?? []),
  bootId,
  failing: failing.map(({ probe, reason }) => ({ probe, reason })),
});

/** These actions, and those that keep failing. */
export function withFailing({ sound, outstanding }: Journal, actions: readonly Action[]): readonly Action[] {
  const names = new Set(actions.map(actionText));
  const failing = sound && outstanding?.failing !== undefined ? outstanding.actions : [];
  return [...actions, ...failing.filter((action) => !names.has(actionText(action)))];
}

/** The actions that keep failing on a node that has its config. */
export const failingActions = ({ sound, outstanding }: Journal): readonly FailingProbe[] =>
  sound ? (outstanding?.failing ?? []) : [];
