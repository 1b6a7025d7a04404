import type { Action, Config } from '#libs/contracts';
import { actStep, backActions, rebooting } from './acting.js';
import type { GoingBack, Originals, Owed } from './journal.js';
import { probesOf, stillManaged, wayBackTo } from './plan.js';
import { itemStep, type Item, type Step } from './ports.js';
import { deal } from './reporting.js';
import { inHand, START, type State } from './state.js';

/** Passes over the way back before it is reported as not restored; it is tried again for ever after that. */
const BACK_PASSES = 3;
const BETWEEN_PASSES_MS = 1_000;
/** A step of the way back may take that long, whatever the deadline says: going back is never given up for the time. */
const BACK_STEP_MS = 30_000;
const BACK_ACTION_MS = 180_000;
/** A step of a way back that asks for a restart may take that long even when its lease is over. */
const HELD_STEP_MS = 1_000;

/**
 * By when the way back should be gone. One that asks for a restart asks while its lease still holds: what hung forward hangs here too,
 * and what it leaves undone is what the restart is for. Any other takes its time.
 */
function backEndMs({ memory: { bootId } }: State, work: GoingBack, nowMs: number): number {
  if (work.failure.escalated === undefined || work.bootId !== bootId) return nowMs + BACK_ACTION_MS;
  return Math.max(nowMs + 2 * HELD_STEP_MS, work.readMs + work.applyMs);
}

/** The next step of the way back: items, actions, reading back; again if something is wrong; then the report. */
export function backStep(state: State, work: GoingBack, nowMs: number): Step {
  const {
    memory: { progress, absent, bus, settled },
    journal,
    settings: { kinds },
  } = state;
  if (nowMs < progress.againAtMs)
    return settled ? { do: 'wait', untilMs: progress.againAtMs } : { do: 'settle', untilMs: nowMs + BACK_STEP_MS };
  const config = inHand(state, work.from);
  if (config === undefined) {
    // The config in force was on disk when the work began. Without it the only way back is to ask for it again.
    if (!absent.has(work.from)) return { do: 'load-config', hash: work.from };
    return nowMs < bus.retryAtMs ? { do: 'wait', untilMs: bus.retryAtMs } : { do: 'fetch-config', hash: work.from };
  }
  const items = wayBackTo(config, journal.originals, kinds);
  const item = items[progress.done];
  if (item !== undefined)
    return itemStep(item, Math.min(nowMs + BACK_STEP_MS, nowMs + (backEndMs(state, work, nowMs) - nowMs) / 2));
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
    journal: backAgain(state, work, stillManaged(journal.originals, config, kinds), wrong, nowMs),
  };
}

/** What the content that came back needs; undefined when all of it was done, or cannot be done. */
function actionStep(state: State, work: GoingBack, items: readonly Item[], nowMs: number): Step | undefined {
  const { progress, bootId } = state.memory;
  if (progress.escalating !== undefined) {
    return {
      do: 'write-journal',
      journal: { ...state.journal, work: { ...work, backEscalated: progress.escalating, reboot: undefined } },
    };
  }
  const actions = backActions(work, state.journal, bootId);
  const action = actions[progress.acted];
  if (action !== undefined && action.kind !== 'reboot')
    return actStep(action, items, nowMs, backEndMs(state, work, nowMs));
  // Nothing is gained by restarting into content that did not come back.
  if (!wantsReboot(actions) || progress.troubles.length > 0) return undefined;
  const reboot = rebooting(state, work, items, nowMs, nowMs + BACK_ACTION_MS);
  return reboot.is === 'next' ? reboot.step : undefined;
}

const wantsReboot = (actions: readonly Action[]): boolean => actions.some(({ kind }) => kind === 'reboot');

/** Why the machine still runs on a boot that saw the new content. */
function rebootMissing(state: State, work: GoingBack): readonly string[] {
  const { bootId, progress } = state.memory;
  if (!wantsReboot(backActions(work, state.journal, bootId)) || progress.troubles.length > 0) return [];
  return work.reboot !== undefined && work.reboot.from !== bootId
    ? []
    : ['the machine was told to restart, and did not'];
}

function backAgain(state: State, work: GoingBack, managed: Originals, wrong: readonly string[], nowMs: number) {
  const {
    memory: { progress, bootId },
    journal,
  } = state;
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
    ...(passesAgain ? ['it passes again on the restored config'] : []),
    ...(restored ? [] : [`not restored: ${wrong.slice(0, 5).join('; ')}`]),
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
      : { owed: { actions: backActions(work, journal, bootId), bootId, ...restartOf(state, work, nowMs) } }),
    ...(asks === undefined ? {} : { escalated: { ...asks, to: work.to } }),
  });
}

/** When the machine is restarted for what is owed, if nobody gives leave to it before. */
function restartOf(
  { journal: { owed }, memory: { bootId } }: State,
  work: GoingBack,
  nowMs: number,
): Pick<Owed, 'restartMs'> {
  if (work.failure.escalated !== undefined) return { restartMs: nowMs + work.applyMs };
  return owed?.restartMs === undefined || owed.bootId !== bootId ? {} : { restartMs: owed.restartMs };
}

/** One step of a pass that mends what a way back left wrong; undefined when the pass is over. */
export function mendingStep(state: State, config: Config, nowMs: number): Step | undefined {
  const {
    memory: { progress, bootId },
    journal,
    settings: { kinds },
  } = state;
  const items = wayBackTo(config, journal.originals, kinds);
  const item = items[progress.done];
  if (item !== undefined) return itemStep(item, nowMs + BACK_STEP_MS);
  // A restart is owed once: it is asked for again while it does not come, and never after another boot, so there is no loop of them.
  const actions = (journal.owed?.actions ?? []).filter(
    ({ kind }) => kind !== 'reboot' || (owesReboot(journal.owed, bootId) && progress.troubles.length === 0),
  );
  const action = actions[progress.acted];
  if (action !== undefined) return actStep(action, items, nowMs, nowMs + BACK_ACTION_MS);
  if (progress.escalating !== undefined && progress.acted === actions.length && restartIsDue(state, nowMs))
    return actStep({ kind: 'reboot' }, items, nowMs, nowMs + BACK_ACTION_MS);
  return progress.differences === undefined ? { do: 'compare', items } : undefined;
}

/** Leave to restart the machine was asked for and did not come: the bus is away, or nobody wants that config any more. While the node is being drained it still may. */
function restartIsDue({ journal: { owed }, memory: { bootId, lease } }: State, nowMs: number): boolean {
  return (
    owed?.restartMs !== undefined && owed.bootId === bootId && nowMs >= owed.restartMs && lease?.phase !== 'draining'
  );
}

/** Whether the node was to be restarted on the way back, and was not since. */
export const owesReboot = (owed: Owed | undefined, bootId: string): boolean =>
  owed !== undefined && wantsReboot(owed.actions) && owed.bootId === bootId;

/** What the passes over a way back left wrong. */
export function whatIsWrong(state: State): readonly string[] {
  const { progress } = state.memory;
  const differences = (progress.differences ?? []).map(({ what, how }) => `${what}: ${how}`);
  return progress.troubles.length > 0 ? progress.troubles : differences;
}

/** After a comparison on the way back that found differences: another pass, until they were enough. */
export function passedOver(state: State, nowMs: number): Partial<typeof START> {
  const { progress } = state.memory;
  const { work } = state.journal;
  const passes = progress.passes + 1;
  const asks = work?.phase === 'going-back' && work.failure.escalated !== undefined;
  if (whatIsWrong(state).length === 0 || asks || passes >= BACK_PASSES) return { passes };
  return { ...START, passes, againAtMs: nowMs + BETWEEN_PASSES_MS * passes };
}
