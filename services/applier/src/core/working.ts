import { REMOTE_APPLIER, type Config } from '#libs/contracts';
import { escalatedWork, forwardActions, rebooting, workActStep } from './actions.js';
import { rollbackStep } from './rollback.js';
import {
  failureOf,
  nameOf,
  rollBackAt,
  type ConfirmationWork,
  type Failure,
  type ForwardWork,
  type Work,
} from './journal.js';
import { driftText, isLate } from './drift.js';
import { checkStep, exceptText, noteStep, notUndone, ranFor, undoStep } from './commands.js';
import { stillFailing } from './failing-actions.js';
import { failingOf } from './health.js';
import { brokenText, faultOf, otherProbes, requiredProbes, uncheckedText } from './probing.js';
import { othersStep, othersText, removalsIn } from './others.js';
import { forgottenOf, stillManaged, planTo } from './plan.js';
import { guardStep, itemStep, type Difference, type Item, type Kinds, type Step } from './ports.js';
import { journalAfterLease } from './reports.js';
import { asideText, itemsIn } from './scope.js';
import { hangIn, inHand, lateFailure, type Progress, type State } from './state.js';

/** The share of the remaining time for the machine to come up; the rest is for checking again. */
const SETTLING_SHARE = 1 / 2;
/** The share of the remaining time for probes that may fail: they must not use up the time to confirm. */
const OTHERS_SHARE = 1 / 2;

/** The next step of journaled work. Needs no connection. */
export function workingStep(state: State, work: Work, nowMs: number): Step {
  switch (work.phase) {
    case 'forward':
      return work.bootId === state.memory.bootId ? forwardStep(state, work, nowMs) : freshWindow(state, work, nowMs);
    case 'confirming':
      if (work.bootId === state.memory.bootId) return forwardStep(state, work, nowMs);
      return turn(state, work, nodeFault('the machine restarted again before the change was confirmed'));
    case 'rolling-back':
      return rollbackStep(state, work, nowMs);
  }
}

function forwardStep(state: State, work: ForwardWork | ConfirmationWork, nowMs: number): Step {
  const { journal, memory } = state;
  const { progress } = memory;
  const { kinds } = state.settings;
  const hang = hangIn(state, work.lease);
  if (hang !== undefined) return turn(state, work, { ...hang, reason: because(work, hang.reason) });
  if (progress.failure !== undefined) return judge(state, work, progress.failure, nowMs);
  if (nowMs >= work.rollBackAtMs) return turn(state, work, takenUpLate(state, work) ?? tooLate(state, work, progress));
  if (state.settings.isGuard)
    return turn(state, work, nodeFault(because(work, 'the applier was gone before it confirmed the change')));
  if (memory.guarded !== work.lease) return guardStep(work, work.rollBackAtMs);
  const config = inHand(state, work.to);
  if (config === undefined) return loadStep(state, work, nowMs);
  const undo = undoStep(state, work.from, work.toUndo, work.rollBackAtMs);
  if (undo !== undefined) return undo;
  const items = itemsIn(planTo(config, journal.originals, kinds), work.scope, kinds);
  // After a reboot, nothing is applied except what the kernel lost. Everything else is only read back.
  const doing = work.phase === 'forward' ? doStep(state, work, items, nowMs) : remakeStep(state, work, items);
  if (doing !== undefined) return doing;
  const unready = readyStep(items, state);
  if (unready !== undefined) return { ...unready, atMs: nowMs, untilMs: work.rollBackAtMs };
  const removing = othersStep(state, removalsIn(items, kinds), nowMs, work.rollBackAtMs);
  if (removing !== undefined) return removing;
  if (progress.differences === undefined)
    return { do: 'compare', items, untilMs: work.rollBackAtMs, sinceMs: work.readMs };
  const [difference] = progress.differences;
  if (difference !== undefined)
    return judge(
      state,
      work,
      faultIn(lossOf(difference, kinds), because(work, `after the change, ${difference.what}: ${difference.how}`)),
      nowMs,
    );
  const unit = work.escalated?.action.unit;
  if (unit !== undefined && !progress.unitRead) return { do: 'read-unit', unit, untilMs: work.rollBackAtMs };
  if (progress.probes === undefined)
    return {
      do: 'run-probes',
      probes: requiredProbes(config, work, kinds),
      untilMs: work.rollBackAtMs,
      fault: faultOf(work),
    };
  const broken = progress.probes.find((probe) => !probe.passed);
  if (broken?.isCutShort === true) return turn(state, work, tooLate(state, work, { probes: [broken] }));
  if (broken !== undefined) {
    return judge(
      state,
      work,
      {
        ...faultIn(broken, because(work, brokenText(work, broken, kinds))),
        probe: broken.name,
      },
      nowMs,
    );
  }
  return confirmStep(state, work, config, nowMs);
}

/**
 * Gets the config that is being applied. A machine stored it before it began. A target elsewhere may have been handed
 * over in the middle by a copy on another machine: then the config is downloaded.
 */
function loadStep(state: State, work: ForwardWork | ConfirmationWork, nowMs: number): Step {
  const { absent, bus } = state.memory;
  if (!absent.has(work.to)) return { do: 'load-config', hash: work.to };
  if (!state.self.capabilities.includes(REMOTE_APPLIER)) return turn(state, work, lostConfig(work.to));
  if (nowMs < bus.retryAtMs) return { do: 'wait', untilMs: Math.min(work.rollBackAtMs, bus.retryAtMs) };
  return { do: 'fetch-config', hash: work.to, mustKeep: true };
}

/** Everything that must hold holds: looks at the probes that may fail, and confirms. */
function confirmStep(state: State, work: ForwardWork | ConfirmationWork, config: Config, nowMs: number): Step {
  const { journal, memory } = state;
  const { progress } = memory;
  const { kinds } = state.settings;
  const left = notUndone(work.toUndo, progress);
  const outstanding = stillFailing(journal, work.actions, []);
  const others = otherProbes(config, work);
  if (others.length > 0 && progress.others === undefined)
    return {
      do: 'run-probes',
      probes: others,
      untilMs: nowMs + (work.rollBackAtMs - nowMs) * OTHERS_SHARE,
      fault: 'node',
    };
  return {
    do: 'write-journal',
    journal: journalAfterLease(state, {
      ...nameOf(work),
      verdict: 'applied',
      inForce: work.to,
      sound: true,
      reason: [
        ...(work.escalated === undefined ? [] : [`${work.escalated.reason}; the machine was restarted instead`]),
        ...asideText(work.scope),
        ...uncheckedText(work, kinds),
        ...exceptText(left),
        ...unknownText(journal),
        ...othersText(progress),
      ].join('; '),
      originals: stillManaged(journal.originals, config, kinds),
      ran: ranFor(journal, work),
      notUndone: left,
      outstanding,
      extra: {
        durationMs: Math.max(0, Math.round(nowMs - work.readMs)),
        changed: [...work.changed],
        failingProbes: [...(outstanding?.failing ?? []), ...(progress.others ?? []).flatMap(failingOf)],
      },
    }),
  };
}

/** After a change with an older state folder: what this node cannot restore any more. */
function unknownText({ had, originals }: State['journal']): readonly string[] {
  const keys = Object.keys(originals).filter((key) => originals[key]?.isOwn === true);
  if (had === undefined || keys.length === 0) return [];
  const names = keys.slice(0, MOST_NAMED).map((key) => key.slice(key.indexOf(':') + 1));
  const more = keys.length > MOST_NAMED ? ` and ${keys.length - MOST_NAMED} more` : '';
  return [
    `what was there before Sluice is not known any more at ${names.join(', ')}${more}, because the state folder was lost or is an older copy`,
  ];
}
const MOST_NAMED = 5;

/** The steps that change the node: the items, then the actions; undefined when all are done. */
function doStep(state: State, work: ForwardWork, items: readonly Item[], nowMs: number): Step | undefined {
  const { progress } = state.memory;
  const item = items[progress.done];
  if (item !== undefined)
    return (
      checkStep(state, item, work.rollBackAtMs) ?? noteStep(state, work, item) ?? itemStep(item, work.rollBackAtMs)
    );
  if (progress.escalating !== undefined)
    return { do: 'write-journal', journal: { ...state.journal, work: escalatedWork(work, progress.escalating) } };
  const action = forwardActions(state, work)[progress.acted];
  if (action !== undefined && action.kind !== 'reboot')
    return workActStep(state, work, action, items, { nowMs, endMs: work.rollBackAtMs });
  if (action === undefined && work.reboot === undefined) return undefined;
  const reboot = rebooting(state, work, items, nowMs, work.rollBackAtMs);
  return reboot.is === 'next' ? reboot.step : turn(state, work, tooLate(state, work));
}

/** The boot id has changed, so the old times are meaningless. The node gets one new period in which to confirm. */
function freshWindow(state: State, work: ForwardWork, nowMs: number): Step {
  const fresh: ConfirmationWork = {
    ...work,
    phase: 'confirming',
    begunOn: work.begunOn ?? work.bootId,
    bootId: state.memory.bootId,
    readMs: nowMs,
    rollBackAtMs: rollBackAt(nowMs, work.applyMs),
  };
  return { do: 'write-journal', journal: { ...state.journal, work: fresh } };
}

/**
 * Starts the rollback after a failure. While a rebooted machine is still starting, the cause may only be that something
 * is not up yet: then wait until the machine is up, and check once more.
 */
function judge(state: State, work: ForwardWork | ConfirmationWork, failure: Failure, nowMs: number): Step {
  if (work.phase === 'forward' || state.memory.settled) return turn(state, work, failure);
  return { do: 'settle', untilMs: nowMs + (work.rollBackAtMs - nowMs) * SETTLING_SHARE };
}

/** Starts the rollback. A reboot that was requested for the change does not count for the rollback. */
function turn(state: State, work: ForwardWork | ConfirmationWork, failure: Failure): Step {
  const ran = work.ran.filter((id) => id !== state.memory.progress.neverRan);
  return {
    do: 'write-journal',
    journal: {
      ...state.journal,
      work: { ...work, phase: 'rolling-back', failure, ran, reboot: undefined, restartsApplier: undefined },
    },
  };
}

/** What takes some time until it is ready is waited for, once everything was applied. */
function readyStep(
  items: readonly Item[],
  { memory: { progress }, settings }: State,
): { readonly do: 'await-ready'; readonly items: readonly Item[] } | undefined {
  const { becomesReady = [] } = settings.kinds;
  if (becomesReady.length === 0 || progress.waitsFor?.what.length === 0) return undefined;
  const waiting = items.filter((item) => item.do === 'apply' && becomesReady.includes(item.entry.kind));
  return waiting.length === 0 ? undefined : { do: 'await-ready', items: waiting };
}

/** No copy of the applier of a target ran until it was too late: the target is not to blame. */
function takenUpLate(state: State, work: ForwardWork | ConfirmationWork): Failure | undefined {
  if (state.memory.guarded === work.lease || !state.self.capabilities.includes(REMOTE_APPLIER)) return undefined;
  return failureOf({
    fault: 'unreachable',
    reason: because(work, `${lateText(work)}, because its applier did not run`),
  });
}

const lateText = (work: ForwardWork | ConfirmationWork): string =>
  `not confirmed ${Math.round(work.rollBackAtMs - work.readMs)} ms after the lease was read`;

const MOST_WAITED = 3;
/** An applier that has not looked for longer was paused: what was not ready then may be ready since. */
const LOOKED_LATELY_MS = 10_000;

/**
 * What is not ready, or a probe that has not passed by then, is named. It is to blame if it had failed when it was last
 * looked at, and that was not long ago.
 */
function tooLate(
  state: State,
  work: ForwardWork | ConfirmationWork,
  { probes = [], differences = [], waitsFor }: Partial<Pick<Progress, 'probes' | 'differences' | 'waitsFor'>> = {},
): Failure {
  const open = probes.filter(({ passed }) => !passed);
  const { what = [], atMs = -Infinity } = waitsFor ?? {};
  const hasFailed =
    open.some(({ isCutShort, unreachable }) => isCutShort !== true && unreachable !== true) ||
    (what.length > 0 && atMs >= work.rollBackAtMs - LOOKED_LATELY_MS);
  const rest = what.length > MOST_WAITED ? ` and ${what.length - MOST_WAITED} more` : '';
  const [waited = ''] = [
    ...(what.length === 0 ? [] : [`, because this was not ready: ${what.slice(0, MOST_WAITED).join('; ')}${rest}`]),
    ...differences.filter(isLate).map((one) => `, because what was changed could not be read back: ${driftText(one)}`),
    ...open.map(({ name, reason }) => `, because the probe ${name} had not passed: ${reason}`),
  ];
  const late = `${lateText(work)}${waited}`;
  const reason = because(
    work,
    work.phase === 'forward' && work.reboot !== undefined
      ? `the machine was told to restart, but did not: ${late}`
      : late,
  );
  return hasFailed ? nodeFault(reason) : lateFailure(state, reason);
}

function remakeStep(
  { memory, settings: { kinds } }: State,
  work: ConfirmationWork,
  items: readonly Item[],
): Step | undefined {
  const item = forgottenOf(items, kinds)[memory.progress.done];
  return item === undefined ? undefined : itemStep(item, work.rollBackAtMs);
}

/** Puts the failure of the escalated action, if there is one, before the reason. */
const because = (work: ForwardWork | ConfirmationWork, reason: string): string =>
  work.escalated === undefined ? reason : `${work.escalated.reason}; ${reason}`;

const nodeFault = (reason: string): Failure => faultIn({}, reason);

/** A target that restarted in the middle of the change has lost what it got, like one that does not answer. */
const lossOf = ({ unreachable, forgotten }: Difference, { actionsAfterLoss }: Kinds): { unreachable?: true } =>
  unreachable === true || (forgotten === true && actionsAfterLoss !== undefined) ? { unreachable: true } : {};

/** A difference or a failing probe of a target that does not answer says nothing about the change. */
const faultIn = ({ unreachable }: { readonly unreachable?: true }, reason: string): Failure =>
  failureOf({ fault: unreachable === true ? 'unreachable' : 'node', reason });
const lostConfig = (hash: string): Failure => nodeFault(`config ${hash} is missing from the state folder`);
