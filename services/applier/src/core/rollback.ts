import type { Action, Config } from '#libs/contracts';
import { actStep, rollbackActions, rebooting, workActStep } from './actions.js';
import { checkStep, exceptText, notUndoneIn, undoInRollback } from './commands.js';
import { degradedUntil, failuresAsBefore, stillFailing, withFailing } from './failing-actions.js';
import { nameOf, verdictOf, type RollbackWork, type Originals, type PendingActions } from './journal.js';
import { othersStep, othersText } from './others.js';
import { probesOf, stillManaged, rollbackItems, rollbackTo } from './plan.js';
import { guardStep, rollbackItemStep, type Item, type Step } from './ports.js';
import { journalAfterLease } from './reports.js';
import { itemsIn } from './scope.js';
import { inHand, START, type Settings, type State } from './state.js';

/** Passes of the rollback before the node is reported as degraded; it is tried again forever after that. */
const BACK_PASSES = 3;
const BETWEEN_PASSES_MS = 1_000;
/** How long one step of a rollback may take by default, whatever the deadline is: a rollback does not end in time. */
const BACK_STEP_MS = 30_000;
const BACK_ACTION_MS = 180_000;
/** The least time for the undo of a command. */
const UNDO_LEAST_MS = 5_000;
/** How long a step of a rollback after an escalation may take, even if its lease is over. */
const HELD_STEP_MS = 1_000;

const stepMs = ({ rollbackStepMs = BACK_STEP_MS }: Settings): number => rollbackStepMs;

/**
 * When the rollback should be done. A rollback after an escalation must report while its lease is valid: the action
 * that hung before may hang again, and the reboot under the next lease takes care of the rest. Any other rollback may
 * take longer.
 */
function rollbackEndMs({ memory: { bootId }, settings }: State, work: RollbackWork, nowMs: number): number {
  if (work.failure.escalated === undefined || work.bootId !== bootId)
    return nowMs + Math.max(BACK_ACTION_MS, 2 * stepMs(settings));
  return Math.max(nowMs + 2 * HELD_STEP_MS, work.readMs + work.applyMs);
}

/**
 * When to give up the undo of a command. It comes before the files, so one that hangs must leave them the other half of
 * the lease's rest: otherwise the node keeps failed content for longer than the lease, which then ends as unknown.
 */
function undoUntilMs({ memory: { bootId } }: State, work: RollbackWork, nowMs: number): number {
  const leftMs = work.bootId === bootId ? work.readMs + work.applyMs - nowMs : work.applyMs;
  return nowMs + Math.min(BACK_STEP_MS, Math.max(UNDO_LEAST_MS, leftMs / 2));
}

/**
 * The next step of the rollback: items, actions, reading back. If something is wrong, another pass follows, and then
 * the report.
 */
export function rollbackStep(state: State, work: RollbackWork, nowMs: number): Step {
  const { journal } = state;
  const { progress, absent, bus, settled, guarded } = state.memory;
  const { kinds } = state.settings;
  // The process has restarted in the middle of the rollback.
  if (guarded !== work.lease) return guardStep(work, nowMs);
  if (nowMs < progress.againAtMs)
    return settled ? { do: 'wait', untilMs: progress.againAtMs } : { do: 'settle', untilMs: nowMs + BACK_STEP_MS };
  const config = inHand(state, work.from);
  if (config === undefined) {
    // The config in force was on disk when the work began. If it is lost, the rollback has to download it again.
    if (!absent.has(work.from)) return { do: 'load-config', hash: work.from };
    return nowMs < bus.retryAtMs
      ? { do: 'wait', untilMs: bus.retryAtMs }
      : { do: 'fetch-config', hash: work.from, mustKeep: false };
  }
  const undo = undoInRollback(state, work, undoUntilMs(state, work, nowMs));
  if (undo !== undefined) return undo;
  const items = itemsIn(rollbackItems(config, journal.originals, work.before, kinds), work.scope, kinds);
  const item = items[progress.done];
  if (item !== undefined) {
    const untilMs = Math.min(nowMs + stepMs(state.settings), nowMs + (rollbackEndMs(state, work, nowMs) - nowMs) / 2);
    return checkStep(state, item, untilMs) ?? rollbackItemStep(item, untilMs);
  }
  const acting = actionStep(state, work, items, nowMs);
  if (acting !== undefined) return acting;
  if (progress.differences === undefined) return { do: 'compare', items };
  const wrong = [...whatIsWrong(state), ...rebootMissing(state, work)];
  if (wrong.length === 0) {
    const others = othersStep(state, itemsOfConfig(state, work, config), nowMs, work.readMs + work.applyMs);
    if (others !== undefined) return others;
  }
  if (wrong.length === 0 && work.failure.probe !== '' && progress.probes === undefined) {
    const target = inHand(state, work.to);
    if (target === undefined && !absent.has(work.to)) return { do: 'load-config', hash: work.to };
    const probes = [...probesOf(target ?? { fragments: [] }), ...kinds.controlPlane].filter(
      (probe) => probe.name === work.failure.probe,
    );
    return { do: 'run-probes', probes, untilMs: nowMs + Math.min(BACK_STEP_MS, work.applyMs / 6), fault: 'node' };
  }
  const { idleUnits = [] } = work;
  if (wrong.length === 0 && idleUnits.length > 0 && !progress.unitsReset)
    return { do: 'reset-failed', units: idleUnits };
  return {
    do: 'write-journal',
    journal: rollBackAgain(state, work, stillManaged(journal.originals, config, kinds), wrong, nowMs),
  };
}

/** The part of the lease as the config in force has it: what it was before may be drift, which others do not know. */
const itemsOfConfig = ({ journal, settings: { kinds } }: State, { scope }: RollbackWork, config: Config) =>
  kinds.doneByOthers === undefined ? [] : itemsIn(rollbackTo(config, journal.originals, kinds), scope, kinds);

/** The next action that the restored content needs; undefined if all are done, or cannot be done. */
function actionStep(state: State, work: RollbackWork, items: readonly Item[], nowMs: number): Step | undefined {
  const { progress } = state.memory;
  if (progress.escalating !== undefined) {
    return {
      do: 'write-journal',
      journal: { ...state.journal, work: { ...work, rollbackEscalated: progress.escalating, reboot: undefined } },
    };
  }
  const actions = rollbackActions(state, work);
  const action = actions[progress.acted];
  if (action !== undefined && action.kind !== 'reboot')
    return workActStep(state, work, action, items, { nowMs, endMs: rollbackEndMs(state, work, nowMs) });
  // If the content was not restored, a reboot does not help.
  if (!wantsReboot(actions) || progress.troubles.length > 0) return undefined;
  const reboot = rebooting(state, work, items, nowMs, nowMs + BACK_ACTION_MS);
  return reboot.is === 'next' ? reboot.step : undefined;
}

const wantsReboot = (actions: readonly Action[]): boolean => actions.some(({ kind }) => kind === 'reboot');

/** What is wrong if the machine still runs on a boot that saw the new content. */
function rebootMissing(state: State, work: RollbackWork): readonly string[] {
  const { bootId, progress } = state.memory;
  if (!wantsReboot(rollbackActions(state, work)) || progress.troubles.length > 0) return [];
  return work.reboot !== undefined && work.reboot.from !== bootId
    ? []
    : ['the machine was told to restart, but did not'];
}

function rollBackAgain(state: State, work: RollbackWork, managed: Originals, wrong: readonly string[], nowMs: number) {
  const { journal } = state;
  const { progress, bootId } = state.memory;
  const failing = rebootMissing(state, work).length === 0 ? failuresAsBefore(state) : [];
  const restored = wrong.length === 0 || failing.length > 0;
  const actions = rollbackActions(state, work);
  const left = notUndoneIn(work, progress);
  const escalation = work.failure.escalated;
  const passesAgain =
    restored &&
    progress.probes !== undefined &&
    progress.probes.length > 0 &&
    progress.probes.every((probe) => probe.passed);
  const verdict = passesAgain ? 'invalid' : verdictOf(work.failure);
  const reason = [
    work.failure.reason,
    ...(passesAgain
      ? [`it passes ${work.probes[work.failure.probe] === 'passed' ? 'again ' : ''}after the rollback`]
      : []),
    ...exceptText(left),
    ...othersText(progress),
    ...(restored ? [] : [`degraded: rollback failed: ${wrong.slice(0, 5).join('; ')}`]),
  ].join('; ');
  return journalAfterLease(state, {
    ...nameOf(work),
    verdict,
    reason,
    inForce: work.from,
    sound: restored,
    originals: restored ? managed : journal.originals,
    notUndone: left,
    extra: { probe: work.failure.probe },
    outstanding: restored
      ? stillFailing(journal, actions, failing)
      : {
          actions: withFailing(journal, actions),
          bootId,
          ...restartOf(state, work, nowMs),
          ...degradedUntil(state, nowMs),
        },
    ...(escalation === undefined ? {} : { escalated: { ...escalation, to: work.to } }),
  });
}

/** When the machine reboots for outstanding actions, if no lease allows a reboot earlier. */
function restartOf(
  { journal: { outstanding }, memory: { bootId } }: State,
  work: RollbackWork,
  nowMs: number,
): Pick<PendingActions, 'restartMs'> {
  if (work.failure.escalated !== undefined) return { restartMs: nowMs + work.applyMs };
  return outstanding?.restartMs === undefined || outstanding.bootId !== bootId
    ? {}
    : { restartMs: outstanding.restartMs };
}

/** One step of a pass that retries a failed rollback; undefined when the pass is over. */
export function restoreStep(state: State, config: Config, nowMs: number): Step | undefined {
  const { journal } = state;
  const { progress, bootId } = state.memory;
  const { kinds } = state.settings;
  const items = rollbackTo(config, journal.originals, kinds);
  const early = startedEarly(state);
  if (early !== undefined)
    return progress.differences === undefined
      ? { do: 'compare', items }
      : { do: 'write-journal', journal: { ...journal, outstanding: early } };
  const item = items[progress.done];
  if (item !== undefined) {
    const untilMs = nowMs + stepMs(state.settings);
    return checkStep(state, item, untilMs) ?? rollbackItemStep(item, untilMs);
  }
  // A reboot is outstanding only once. It is requested again until it happens, but not after the machine has rebooted.
  // So reboots cannot loop.
  const actions = (journal.outstanding?.actions ?? []).filter(
    ({ kind }) => kind !== 'reboot' || (needsReboot(journal.outstanding, bootId) && progress.troubles.length === 0),
  );
  const action = actions[progress.acted];
  if (action !== undefined) return actStep(action, items, nowMs, nowMs + BACK_ACTION_MS);
  if (progress.escalating !== undefined && progress.acted === actions.length && restartIsDue(state, nowMs))
    return actStep({ kind: 'reboot' }, items, nowMs, nowMs + BACK_ACTION_MS);
  return progress.differences === undefined ? { do: 'compare', items } : undefined;
}

/**
 * How often a machine that started too early is rebooted again, because something else may change the content at each
 * start.
 */
const MOST_EARLY_STARTS = 3;

/**
 * What is outstanding if the machine rebooted before the content was restored, for example after a power cut. It then
 * runs with the wrong content and needs another reboot. Undefined otherwise, or if this pass has already found the
 * content to be correct.
 */
export function startedEarly({ journal: { outstanding }, memory }: State): PendingActions | undefined {
  if (outstanding === undefined || outstanding.bootId === memory.bootId || memory.progress.startedWhole)
    return undefined;
  const { actions, startedTooEarly = 0 } = outstanding;
  if (!wantsReboot(actions) || startedTooEarly === MOST_EARLY_STARTS) return undefined;
  return { actions, bootId: memory.bootId, startedTooEarly: startedTooEarly + 1 };
}

/**
 * Whether to reboot without a lease: a lease that allows it has not come in time, because NATS is unreachable or the
 * config is no longer wanted. While the node is being drained, that lease can still come.
 */
function restartIsDue({ journal: { outstanding }, memory: { bootId, lease } }: State, nowMs: number): boolean {
  return (
    outstanding?.restartMs !== undefined &&
    outstanding.bootId === bootId &&
    nowMs >= outstanding.restartMs &&
    lease?.phase !== 'draining'
  );
}

/** Whether the rollback needs a reboot that has not happened yet. */
export const needsReboot = (outstanding: PendingActions | undefined, bootId: string): boolean =>
  outstanding !== undefined && wantsReboot(outstanding.actions) && outstanding.bootId === bootId;

/** What is still wrong after the last pass of a rollback. */
export function whatIsWrong(state: State): readonly string[] {
  const { progress } = state.memory;
  const differences = (progress.differences ?? []).map(({ what, how }) => `${what}: ${how}`);
  return progress.troubles.length > 0 ? progress.troubles : differences;
}

/** After a comparison that found differences: starts another pass, up to the limit. */
export function passedOver(state: State, nowMs: number): Partial<typeof START> {
  const { progress } = state.memory;
  const { work } = state.journal;
  const passes = progress.passes + 1;
  const escalation = work?.phase === 'rolling-back' && work.failure.escalated !== undefined;
  if (whatIsWrong(state).length === 0 || escalation || passes >= BACK_PASSES) return { passes };
  return {
    ...START,
    passes,
    undone: progress.undone,
    restarting: progress.restarting,
    againAtMs: nowMs + BETWEEN_PASSES_MS * passes,
  };
}
