import type { Action, Config } from '#libs/contracts';
import { actStep, rollbackActions, rebooting } from './actions.js';
import type { RollingBack, Originals, Outstanding } from './journal.js';
import { probesOf, stillManaged, rollbackTo } from './plan.js';
import { itemStep, type Item, type Step } from './ports.js';
import { deal } from './reports.js';
import { inHand, START, type State } from './state.js';

/** Passes of the rollback before the node is reported as degraded; it is tried again forever after that. */
const BACK_PASSES = 3;
const BETWEEN_PASSES_MS = 1_000;
/**
 * A step of the rollback may take that long, whatever the deadline says: rolling back is never given up for the time.
 */
const BACK_STEP_MS = 30_000;
const BACK_ACTION_MS = 180_000;
/** A step of a rollback that asks for a restart may take that long even when its lease is over. */
const HELD_STEP_MS = 1_000;

/**
 * By when the rollback should be done. One that asks for a restart asks while its lease still holds: what hung forward
 * hangs here too, and what it leaves undone is what the restart is for. Any other takes its time.
 */
function rollbackEndMs({ memory: { bootId } }: State, work: RollingBack, nowMs: number): number {
  if (work.failure.escalated === undefined || work.bootId !== bootId) return nowMs + BACK_ACTION_MS;
  return Math.max(nowMs + 2 * HELD_STEP_MS, work.readMs + work.applyMs);
}

/** The next step of the rollback: items, actions, reading back; again if something is wrong; then the report. */
export function rollbackStep(state: State, work: RollingBack, nowMs: number): Step {
  const { journal } = state;
  const { progress, absent, bus, settled } = state.memory;
  const { kinds } = state.settings;
  if (nowMs < progress.againAtMs)
    return settled ? { do: 'wait', untilMs: progress.againAtMs } : { do: 'settle', untilMs: nowMs + BACK_STEP_MS };
  const config = inHand(state, work.from);
  if (config === undefined) {
    // The config in force was on disk when the work began. Without it the only way to roll back is to ask for it again.
    if (!absent.has(work.from)) return { do: 'load-config', hash: work.from };
    return nowMs < bus.retryAtMs ? { do: 'wait', untilMs: bus.retryAtMs } : { do: 'fetch-config', hash: work.from };
  }
  const items = rollbackTo(config, journal.originals, kinds);
  const item = items[progress.done];
  if (item !== undefined)
    return itemStep(item, Math.min(nowMs + BACK_STEP_MS, nowMs + (rollbackEndMs(state, work, nowMs) - nowMs) / 2));
  const acting = actionStep(state, work, items, nowMs);
  if (acting !== undefined) return acting;
  if (progress.differences === undefined) return { do: 'compare', items };
  const wrong = [...whatIsWrong(state), ...rebootMissing(state, work)];
  if (wrong.length === 0 && work.failure.probe !== '' && progress.probes === undefined) {
    const target = inHand(state, work.to);
    if (target === undefined && !absent.has(work.to)) return { do: 'load-config', hash: work.to };
    const probes = [...probesOf(target ?? { fragments: [] }), ...kinds.controlPlane].filter(
      (probe) => probe.name === work.failure.probe,
    );
    return { do: 'run-probes', probes, untilMs: nowMs + Math.min(BACK_STEP_MS, work.applyMs / 6) };
  }
  return {
    do: 'write-journal',
    journal: rollBackAgain(state, work, stillManaged(journal.originals, config, kinds), wrong, nowMs),
  };
}

/** What the content that came back needs; undefined when all of it was done, or cannot be done. */
function actionStep(state: State, work: RollingBack, items: readonly Item[], nowMs: number): Step | undefined {
  const { progress, bootId } = state.memory;
  if (progress.escalating !== undefined) {
    return {
      do: 'write-journal',
      journal: { ...state.journal, work: { ...work, rollbackEscalated: progress.escalating, reboot: undefined } },
    };
  }
  const actions = rollbackActions(work, state.journal, bootId);
  const action = actions[progress.acted];
  if (action !== undefined && action.kind !== 'reboot')
    return actStep(action, items, nowMs, rollbackEndMs(state, work, nowMs));
  // Nothing is gained by restarting into content that did not come back.
  if (!wantsReboot(actions) || progress.troubles.length > 0) return undefined;
  const reboot = rebooting(state, work, items, nowMs, nowMs + BACK_ACTION_MS);
  return reboot.is === 'next' ? reboot.step : undefined;
}

const wantsReboot = (actions: readonly Action[]): boolean => actions.some(({ kind }) => kind === 'reboot');

/** Why the machine still runs on a boot that saw the new content. */
function rebootMissing(state: State, work: RollingBack): readonly string[] {
  const { bootId, progress } = state.memory;
  if (!wantsReboot(rollbackActions(work, state.journal, bootId)) || progress.troubles.length > 0) return [];
  return work.reboot !== undefined && work.reboot.from !== bootId
    ? []
    : ['the machine was told to restart, but did not'];
}

function rollBackAgain(state: State, work: RollingBack, managed: Originals, wrong: readonly string[], nowMs: number) {
  const { journal } = state;
  const { progress, bootId } = state.memory;
  const restored = wrong.length === 0;
  const asks = work.failure.escalated;
  const passesAgain =
    restored &&
    progress.probes !== undefined &&
    progress.probes.length > 0 &&
    progress.probes.every((probe) => probe.passed);
  const verdict = work.failure.fault === 'content' || passesAgain ? 'invalid' : 'failed';
  const reason = [
    work.failure.reason,
    ...(passesAgain ? ['it passes again after the rollback'] : []),
    ...(restored ? [] : [`degraded: rollback failed: ${wrong.slice(0, 5).join('; ')}`]),
  ].join('; ');
  return deal(state, {
    lease: work.lease,
    change: work.change,
    pool: work.pool,
    verdict,
    reason,
    inForce: work.from,
    sound: restored,
    originals: restored ? managed : journal.originals,
    extra: { probe: work.failure.probe },
    ...(restored
      ? {}
      : { outstanding: { actions: rollbackActions(work, journal, bootId), bootId, ...restartOf(state, work, nowMs) } }),
    ...(asks === undefined ? {} : { escalated: { ...asks, to: work.to } }),
  });
}

/** When the machine is restarted for what is outstanding, if no lease allows that before. */
function restartOf(
  { journal: { outstanding }, memory: { bootId } }: State,
  work: RollingBack,
  nowMs: number,
): Pick<Outstanding, 'restartMs'> {
  if (work.failure.escalated !== undefined) return { restartMs: nowMs + work.applyMs };
  return outstanding?.restartMs === undefined || outstanding.bootId !== bootId
    ? {}
    : { restartMs: outstanding.restartMs };
}

/** One step of a pass that mends what a rollback left wrong; undefined when the pass is over. */
export function mendingStep(state: State, config: Config, nowMs: number): Step | undefined {
  const { journal } = state;
  const { progress, bootId } = state.memory;
  const { kinds } = state.settings;
  const items = rollbackTo(config, journal.originals, kinds);
  const item = items[progress.done];
  if (item !== undefined) return itemStep(item, nowMs + BACK_STEP_MS);
  // A restart is outstanding once: it is asked for again while it does not come, and never after another boot, so there
  // is no loop of them.
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
 * Leave to restart the machine was asked for and did not come: the bus is away, or nobody wants that config any more.
 * While the node is being drained it still may.
 */
function restartIsDue({ journal: { outstanding }, memory: { bootId, lease } }: State, nowMs: number): boolean {
  return (
    outstanding?.restartMs !== undefined &&
    outstanding.bootId === bootId &&
    nowMs >= outstanding.restartMs &&
    lease?.phase !== 'draining'
  );
}

/** Whether the node was to be restarted during the rollback, and was not since. */
export const needsReboot = (outstanding: Outstanding | undefined, bootId: string): boolean =>
  outstanding !== undefined && wantsReboot(outstanding.actions) && outstanding.bootId === bootId;

/** What the passes of a rollback left wrong. */
export function whatIsWrong(state: State): readonly string[] {
  const { progress } = state.memory;
  const differences = (progress.differences ?? []).map(({ what, how }) => `${what}: ${how}`);
  return progress.troubles.length > 0 ? progress.troubles : differences;
}

/** After a comparison during the rollback that found differences: another pass, until they were enough. */
export function passedOver(state: State, nowMs: number): Partial<typeof START> {
  const { progress } = state.memory;
  const { work } = state.journal;
  const passes = progress.passes + 1;
  const asks = work?.phase === 'rolling-back' && work.failure.escalated !== undefined;
  if (whatIsWrong(state).length === 0 || asks || passes >= BACK_PASSES) return { passes };
  return { ...START, passes, againAtMs: nowMs + BETWEEN_PASSES_MS * passes };
}
