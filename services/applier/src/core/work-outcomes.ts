import { fragmentId, type Action, type ConfigEntry } from '#libs/contracts';
import { actionText, mayRestart } from './actions.js';
import { distance } from './chance.js';
import { lastingFailures } from './failing-actions.js';
import { type Escalation, type Failure, failureOf } from './journal.js';
import { type Difference, type Outcomes, type ProbeResult, type Refusal, UNNEEDED } from './ports.js';
import { needsReboot, passedOver, startedEarly, whatIsWrong } from './rollback.js';
import { comparedBefore } from './preparation-outcomes.js';
import { withPreparation, canReboot, hasForgotten, progressed, remember, START, type State } from './state.js';

/** Without a guard nothing begins, and what has begun is rolled back. A rollback continues without one. */
export function guarded(state: State, refusal: Refusal | undefined): State {
  const { work } = state.journal;
  if (refusal === undefined || work?.phase === 'rolling-back') return state;
  const failure = failureOf(refusal);
  return work === undefined ? withPreparation(state, { failure }) : progressed(state, { failure });
}

/** After probes: first those that must pass, then the others. */
export const ran = (state: State, results: readonly ProbeResult[]): State =>
  progressed(state, state.memory.progress.probes === undefined ? { probes: results } : { others: results });

/** After the check of a command. */
export function checked(state: State, entry: ConfigEntry, outcome: Outcomes['check-command']): State {
  return outcome === undefined
    ? progressed(state, { needed: fragmentId(entry) })
    : moved(state, outcome === UNNEEDED ? undefined : outcome);
}

/**
 * After an item. In a change, the first refusal starts the rollback. A rollback notes it and does the other items.
 */
export function moved(state: State, refusal: Refusal | undefined): State {
  const { progress } = state.memory;
  const { work } = state.journal;
  if (refusal === undefined) return progressed(state, { done: progress.done + 1 });
  if (work !== undefined && work.phase !== 'rolling-back') return progressed(state, { failure: failureOf(refusal) });
  return progressed(state, { done: progress.done + 1, troubles: [...progress.troubles, refusal.reason] });
}

/** After a command that could not be started. An earlier process may have run it, if that one has noted it. */
export function notRun(state: State, entry: ConfigEntry): State {
  const id = fragmentId(entry);
  return state.memory.progress.noted === id ? progressed(state, { neverRan: id }) : state;
}

/**
 * After an action. A failed action escalates to a reboot, once in the change and once in the rollback. If the node
 * cannot reboot, the change rolls back. If the lease does not allow a reboot, the change rolls back and the report asks
 * for a lease that does.
 */
export function acted(state: State, action: Action, refusal: Refusal | undefined): State {
  const { progress } = state.memory;
  const { work } = state.journal;
  if (refusal === undefined) return progressed(state, { acted: progress.acted + 1 });
  const { kind } = action;
  const probe = actionText(action);
  const reason = `${probe}: ${refusal.reason}`;
  const escalated: Escalation = { action, reason };
  const failing = { action, probe, reason: refusal.reason, unreachable: refusal.fault === 'unreachable' };
  const goesOn = {
    acted: progress.acted + 1,
    troubles: [...progress.troubles, reason],
    failing: [...progress.failing, failing],
  };
  if (work === undefined) return progressed(state, { ...goesOn, escalating: escalated });
  const canEscalate = kind !== 'reboot' && canReboot(state);
  if (work.phase === 'rolling-back') {
    if (canEscalate && work.rollbackEscalated === undefined && work.failure.escalated === undefined)
      return progressed(state, { escalating: escalated });
    return progressed(state, goesOn);
  }
  const isFirst = canEscalate && work.escalated === undefined;
  if (isFirst && mayRestart(work)) return progressed(state, { escalating: escalated });
  const failure: Failure = {
    fault: refusal.fault === 'unreachable' ? 'unreachable' : 'node',
    reason: [work.escalated?.reason, reason].filter(Boolean).join('; '),
    probe: '',
  };
  return progressed(state, { failure: isFirst ? { ...failure, escalated } : failure });
}

export function unitRead(state: State, refusal: Refusal | undefined): State {
  if (refusal === undefined) return progressed(state, { unitRead: true });
  const reason = [state.journal.work?.escalated?.reason, refusal.reason].filter(Boolean).join('; ');
  return progressed(state, { failure: failureOf({ ...refusal, reason }) });
}

/** Checks everything again from the start. A rollback has already started over. */
export const settled = (state: State): State =>
  remember(state, { settled: true, ...(state.journal.work?.phase === 'rolling-back' ? {} : { progress: START }) });

export function compared(state: State, differences: readonly Difference[], nowMs: number): State {
  const { journal, memory } = state;
  if (journal.work === undefined && memory.preparation !== undefined)
    return comparedBefore(state, memory.preparation, differences);
  if (hasForgotten(state)) return progressed(state, { differences });
  const next = progressed(state, { differences });
  if (journal.work !== undefined)
    return journal.work.phase === 'rolling-back' ? progressed(next, passedOver(next, nowMs)) : next;
  if (startedEarly(state) !== undefined)
    return differences.length > 0 ? next : progressed(state, { startedWhole: true });
  const isDone = whatIsWrong(next).length === 0 || lastingFailures(next, nowMs).length > 0;
  if (isDone && !needsReboot(journal.outstanding, memory.bootId)) return next;
  const { ms, next: chance } = distance(memory.repair.count + 2, memory.chance);
  return remember(next, {
    repair: { count: memory.repair.count + 1, dueMs: nowMs + ms },
    chance,
    progress: START,
    configs: new Map(),
    absent: new Set(),
  });
}
