import type { Config } from '#libs/contracts';
import { turnBack, type Confirming, type Failure, type Forward, type GoingBack, type Originals, type Work } from './journal.js';
import { forgottenOf, probesOf, stillManaged, wayBackTo, wayTo } from './plan.js';
import type { Item, Step } from './ports.js';
import { deal } from './reporting.js';
import { inHand, START, type State } from './state.js';

/** Passes over the way back before it is reported as not restored; it is tried again for ever after that. */
const BACK_PASSES = 3;
const BETWEEN_PASSES_MS = 1_000;
/** A step of the way back may take that long, whatever the deadline says: going back is never given up for the time. */
const BACK_STEP_MS = 30_000;

/** The next step of work that was begun. Needs no connection. */
export function workingStep(state: State, work: Work, nowMs: number): Step {
  switch (work.phase) {
    case 'forward':
      return work.bootId === state.memory.bootId ? forwardStep(state, work, nowMs) : freshWindow(state, work, nowMs);
    case 'confirming':
      if (work.bootId === state.memory.bootId) return forwardStep(state, work, nowMs);
      return turn(state, work, nodeFault('the machine was restarted again before the change was confirmed'));
    case 'going-back':
      return backStep(state, work, nowMs);
  }
}

function forwardStep(state: State, work: Forward | Confirming, nowMs: number): Step {
  const { memory: { progress }, journal, settings: { kinds } } = state;
  if (progress.failure !== undefined) return turn(state, work, progress.failure);
  if (nowMs >= work.turnBackMs) return turn(state, work, nodeFault(`not confirmed ${Math.round(work.turnBackMs - work.readMs)} ms after the lease was read`));
  const config = inHand(state, work.to);
  if (config === undefined) return state.memory.absent.has(work.to) ? turn(state, work, lostConfig(work.to)) : { do: 'load-config', hash: work.to };
  const items = wayTo(config, journal.originals, kinds);
  // After a restart of the machine nothing more is applied, but for what the kernel has forgotten: what stands there is read back.
  const item = (work.phase === 'forward' ? items : forgottenOf(items, kinds))[progress.done];
  if (item !== undefined) return itemStep(item, work.turnBackMs);
  if (work.phase === 'forward') {
    const action = work.actions[progress.acted];
    if (action !== undefined) return { do: 'act', action, untilMs: work.turnBackMs };
  }
  if (progress.differences === undefined) return { do: 'compare', items };
  const [difference] = progress.differences;
  if (difference !== undefined) return turn(state, work, nodeFault(`${difference.what}: ${difference.how}, read back after it was applied`));
  const probes = probesOf(config).filter((probe) => work.passedBefore.includes(probe.name));
  if (progress.probes === undefined) return { do: 'run-probes', probes, untilMs: work.turnBackMs };
  const broken = progress.probes.find((probe) => !probe.passed);
  if (broken !== undefined) {
    return turn(state, work, { fault: 'node', reason: `probe ${broken.name} passed before and fails now: ${broken.reason}`, probe: broken.name });
  }
  return {
    do: 'write-journal',
    journal: deal(state, {
      lease: work.lease, change: work.change, pool: work.pool, verdict: 'applied', reason: '', inForce: work.to, sound: true,
      originals: stillManaged(journal.originals, config, kinds),
      extra: { durationMs: Math.max(0, Math.round(nowMs - work.readMs)), changed: [...work.changed] },
    }),
  };
}

/** A changed boot id: the old times mean nothing. One more window, once, to see whether the node came up well. */
function freshWindow(state: State, work: Forward, nowMs: number): Step {
  const fresh: Confirming = {
    ...work, phase: 'confirming', bootId: state.memory.bootId, readMs: nowMs, turnBackMs: turnBack(nowMs, work.applyMs),
  };
  return { do: 'write-journal', journal: { ...state.journal, work: fresh } };
}

function turn(state: State, work: Forward | Confirming, failure: Failure): Step {
  return { do: 'write-journal', journal: { ...state.journal, work: { ...work, phase: 'going-back', failure } } };
}

function backStep(state: State, work: GoingBack, nowMs: number): Step {
  const { memory: { progress, absent, bus }, journal, settings: { kinds } } = state;
  if (nowMs < progress.againAtMs) return { do: 'wait', untilMs: progress.againAtMs };
  const config = inHand(state, work.from);
  if (config === undefined) {
    // The config in force was on disk when the work began. Without it the only way back is to ask for it again.
    if (!absent.has(work.from)) return { do: 'load-config', hash: work.from };
    return nowMs < bus.retryAtMs ? { do: 'wait', untilMs: bus.retryAtMs } : { do: 'fetch-config', hash: work.from };
  }
  const pass = passStep(state, config, nowMs + BACK_STEP_MS);
  if (pass !== undefined) return pass;
  const action = work.actions[progress.acted];
  if (action !== undefined) return { do: 'act', action, untilMs: nowMs + BACK_STEP_MS };
  const wrong = whatIsWrong(state);
  const restored = wrong.length === 0;
  if (restored && work.failure.probe !== '' && progress.probes === undefined) {
    const target = inHand(state, work.to);
    if (target === undefined && !absent.has(work.to)) return { do: 'load-config', hash: work.to };
    const probes = probesOf(target ?? { fragments: [] }).filter((probe) => probe.name === work.failure.probe);
    return { do: 'run-probes', probes, untilMs: nowMs + Math.min(BACK_STEP_MS, work.applyMs / 6) };
  }
  return { do: 'write-journal', journal: backAgain(state, work, stillManaged(journal.originals, config, kinds), wrong) };
}

function backAgain(state: State, work: GoingBack, managed: Originals, wrong: readonly string[]) {
  const { memory: { progress }, journal } = state;
  const restored = wrong.length === 0;
  const passesAgain = restored && progress.probes !== undefined && progress.probes.length > 0 && progress.probes.every((probe) => probe.passed);
  const verdict = work.failure.fault === 'content' || passesAgain ? 'invalid' : 'failed';
  const reason = [
    work.failure.reason,
    ...(passesAgain ? ['it passes again on the restored config'] : []),
    ...(restored ? [] : [`not restored: ${wrong.slice(0, 5).join('; ')}`]),
  ].join('; ');
  return deal(state, {
    lease: work.lease, change: work.change, pool: work.pool, verdict, reason, inForce: work.from, sound: restored,
    originals: restored ? managed : journal.originals, extra: { probe: work.failure.probe },
  });
}

/** One step of a pass over the way back to a config, ending with reading it back; undefined when the pass is over. */
export function passStep(state: State, config: Config, untilMs: number): Step | undefined {
  const { memory: { progress }, journal, settings: { kinds } } = state;
  const items = wayBackTo(config, journal.originals, kinds);
  const item = items[progress.done];
  if (item !== undefined) return itemStep(item, untilMs);
  return progress.differences === undefined ? { do: 'compare', items } : undefined;
}

/** What the passes over a way back left wrong. */
export function whatIsWrong(state: State): readonly string[] {
  const { progress } = state.memory;
  const differences = (progress.differences ?? []).map(({ what, how }) => `${what}: ${how}`);
  return progress.troubles.length > 0 ? progress.troubles : differences;
}

/** After a comparison on the way back that found differences: another pass, until they were enough. */
export function passedOver(state: State, nowMs: number): Partial<typeof START> {
  const { progress } = state.memory;
  const passes = progress.passes + 1;
  if (whatIsWrong(state).length === 0 || passes >= BACK_PASSES) return { passes };
  return { ...START, passes, againAtMs: nowMs + BETWEEN_PASSES_MS * passes };
}

export const itemStep = (item: Item, untilMs: number): Step => (item.do === 'apply' ? { ...item, untilMs } : item);

const nodeFault = (reason: string): Failure => ({ fault: 'node', reason, probe: '' });
const lostConfig = (hash: string): Failure => nodeFault(`the state folder has lost config ${hash}`);
