import type { Action, Config, LeaseView, StatusView } from '#libs/contracts';
import { distance, draw } from './chance.js';
import { mayRestart } from './actions.js';
import { driftAmong, driftText, overwrittenAmong } from './drift.js';
import {
  mayBeWrittenLater,
  type Escalation,
  type Failure,
  type Journal,
  type Originals,
  type Work,
} from './journal.js';
import { leaseDemand } from './leases.js';
import { UNREACHABLE, type Difference, type Outcomes, type Refusal, type Step, type StepOf } from './ports.js';
import {
  canReboot,
  hasForgotten,
  newer,
  nextNonce,
  progressed,
  remember,
  shown,
  START,
  VIEW_LAG_MS,
  type Preparation,
  type State,
} from './state.js';
import { needsReboot, startedEarly, passedOver, whatIsWrong } from './rollback.js';

const STATUS_READS_SELDOMER = 5;

/** The state after a step, given its outcome. */
export function advance<K extends Step['do']>(
  state: State,
  step: StepOf<K>,
  outcome: Outcomes[K] | typeof UNREACHABLE,
  nowMs: number,
): State {
  return isUnreachable(outcome) ? backedOff(state, step, nowMs) : AFTER[step.do as K](state, step, outcome, nowMs);
}

function isUnreachable(outcome: unknown): outcome is typeof UNREACHABLE {
  return outcome === UNREACHABLE;
}

type StepResults = {
  readonly [K in Step['do']]: (state: State, step: StepOf<K>, outcome: Outcomes[K], nowMs: number) => State;
};

const AFTER: StepResults = {
  'write-journal': (state, { journal }, refusal, nowMs) =>
    refusal === undefined
      ? journaled(onDisk(state, nowMs), journal, nowMs)
      : notWritten(state, journal, refusal, nowMs),
  'load-config': (state, { hash }, config) =>
    config === undefined
      ? remember(state, { absent: new Set([...state.memory.absent, hash]) })
      : taken(state, hash, config),
  'fetch-config': (state, step, config, nowMs) =>
    'fault' in config
      ? begunWith(backedOff(state, step, nowMs), { trouble: config.reason })
      : reached(taken(state, step.hash, config), nowMs),
  check: (state, _, refusals) => begunWith(state, { checked: true, failure: worst(refusals) }),
  'read-before': (state, _, originals) =>
    isRefusal(originals) ? begunWith(state, { failure: failureOf(originals) }) : begunWith(state, { originals }),
  snapshot: (state, _, snapshot) =>
    isRefusal(snapshot) ? begunWith(state, { failure: failureOf(snapshot) }) : begunWith(state, { snapshot }),
  'run-probes': (state, _, results) =>
    state.journal.work === undefined ? begunWith(state, { before: results }) : progressed(state, { probes: results }),
  guard: (state, { lease }, refusal) => guarded(remember(state, { guarded: lease }), refusal),
  apply: (state, _, refusal) => moved(state, refusal),
  restore: (state, _, refusal) => moved(state, refusal),
  act: (state, { action }, refusal) => acted(state, action, refusal),
  'read-unit': (state, _, refusal) => unitRead(state, refusal),
  settle: (state) => settled(state),
  compare: (state, _, differences, nowMs) => compared(state, differences, nowMs),
  tidy: (state) => remember(state, { untidy: false }),
  'read-status': (state, _, status, nowMs) => statusRead(reached(state, nowMs), status, nowMs),
  'read-lease': (state, _, lease, nowMs) => leaseRead(reached(state, nowMs), lease, nowMs),
  report: (state, _, __, nowMs) => sent(reached(state, nowMs), nowMs),
  wait: (state) => state,
};

const isRefusal = (read: Originals | Refusal): read is Refusal =>
  typeof read['fault'] === 'string' && typeof read['reason'] === 'string';

/** NATS does not answer: the wait before the next try grows. */
function backedOff(state: State, step: Step, nowMs: number): State {
  const { bus, chance, drift } = state.memory;
  const { ms, next } = distance(bus.failures, chance);
  // A drift check that waits for a lost config must not block everything else.
  const later =
    step.do === 'fetch-config' && state.memory.begun === undefined
      ? { drift: { ...drift, dueMs: nowMs + state.settings.driftCheckMs } }
      : {};
  return remember(state, { bus: { failures: bus.failures + 1, retryAtMs: nowMs + ms }, chance: next, ...later });
}

const reached = (state: State, nowMs: number): State => remember(state, { bus: { failures: 0, retryAtMs: nowMs } });

const DISK_FIRST_MS = 1_000;
const DISK_LAST_MS = 60_000;

const onDisk = (state: State, nowMs: number): State => remember(state, { disk: { failures: 0, retryAtMs: nowMs } });

/** The journal could not be written: the wait before the next try grows. */
function notWritten(state: State, journal: Journal, { reason }: Refusal, nowMs: number): State {
  const { failures } = state.memory.disk;
  const retryAtMs = nowMs + Math.min(DISK_LAST_MS, DISK_FIRST_MS * 2 ** failures);
  const next = begunWith(remember(state, { disk: { failures: failures + 1, retryAtMs } }), { trouble: reason });
  return mayBeWrittenLater(state.journal.work, journal.work) ? journaled(next, journal, nowMs) : next;
}

function taken(state: State, hash: string, config: Config): State {
  const absent = new Set(state.memory.absent);
  absent.delete(hash);
  return remember(state, { configs: new Map([...state.memory.configs, [hash, config]]), absent });
}

function journaled(state: State, journal: Journal, nowMs: number): State {
  const { memory } = state;
  let next: State = { ...state, journal };
  if (journal.seq !== state.journal.seq || journal.nonce !== state.journal.nonce)
    next = reportMade(next, journal, nowMs);
  if (journal.incarnation !== state.journal.incarnation) {
    const { ms, next: chance } = distance(memory.reborn.count, memory.chance);
    next = remember(next, {
      nonce: nextNonce(journal.nonce),
      reborn: { count: memory.reborn.count + 1, dueMs: nowMs + ms },
      chance,
    });
  }
  if (
    journal.work?.phase !== state.journal.work?.phase ||
    escalations(journal.work) !== escalations(state.journal.work) ||
    journal.outstanding?.bootId !== state.journal.outstanding?.bootId
  )
    next = remember(next, { progress: START });
  if (
    journal.lastDealt?.lease !== state.journal.lastDealt?.lease ||
    journal.sound !== state.journal.sound ||
    journal.madeIn !== state.journal.madeIn ||
    memory.forgot
  ) {
    next = remember(next, {
      forgot: false,
      begun: undefined,
      configs: new Map(),
      absent: new Set(),
      progress: START,
      untidy: true,
      mend: { count: 0, dueMs: nowMs + VIEW_LAG_MS },
      drift: { dueMs: nowMs + state.settings.driftCheckMs, found: undefined, reported: undefined },
    });
  }
  return next;
}

/** How many escalations the work has. A new one changes the actions, so the pass starts over. */
const escalations = (work: Work | undefined): number =>
  (work?.escalated === undefined ? 0 : 1) +
  (work?.phase === 'rolling-back' && work.rollbackEscalated !== undefined ? 1 : 0);

function reportMade(state: State, journal: Journal, nowMs: number): State {
  const { memory } = state;
  const { ms, next } = distance((memory.lost?.count ?? 0) + 3, memory.chance);
  const kind = journal.report?.kind;
  return remember(state, {
    sent: { count: 0, dueMs: nowMs },
    chance: next,
    announce: memory.announce && kind !== 'announced',
    ...(memory.lost === undefined
      ? {}
      : { lost: { count: memory.lost.count + 1, dueMs: nowMs + ms }, leaseDueMs: nowMs + ms }),
    ...(kind === 'drifted'
      ? { drift: { ...memory.drift, found: undefined, reported: journal.report?.differences } }
      : {}),
  });
}

function begunWith(state: State, part: Partial<Preparation>): State {
  const { begun } = state.memory;
  return begun === undefined ? state : remember(state, { begun: { ...begun, ...part } });
}

/** Without a guard nothing begins, and what has begun is rolled back. A rollback continues without one. */
function guarded(state: State, refusal: Refusal | undefined): State {
  const { work } = state.journal;
  if (refusal === undefined || work?.phase === 'rolling-back') return state;
  const failure = failureOf(refusal);
  return work === undefined ? begunWith(state, { failure }) : progressed(state, { failure });
}

/** After an item. In a change, the first refusal starts the rollback. A rollback notes it and does the other items. */
function moved(state: State, refusal: Refusal | undefined): State {
  const { progress } = state.memory;
  const forward = state.journal.work !== undefined && state.journal.work.phase !== 'rolling-back';
  if (refusal === undefined) return progressed(state, { done: progress.done + 1 });
  if (forward) return progressed(state, { failure: failureOf(refusal) });
  return progressed(state, { done: progress.done + 1, troubles: [...progress.troubles, refusal.reason] });
}

/**
 * After an action. A failed action escalates to a reboot, once in the change and once in the rollback. If the node
 * cannot reboot, the change rolls back. If the lease does not allow a reboot, the change rolls back and the report asks
 * for a lease that does.
 */
function acted(state: State, action: Action, refusal: Refusal | undefined): State {
  const { progress } = state.memory;
  const { work } = state.journal;
  if (refusal === undefined) return progressed(state, { acted: progress.acted + 1 });
  const { kind, unit } = action;
  const reason = `action ${kind}${unit === undefined ? '' : ` ${unit}`}: ${refusal.reason}`;
  const escalated: Escalation = { action, reason };
  if (work === undefined)
    return progressed(state, {
      acted: progress.acted + 1,
      troubles: [...progress.troubles, reason],
      escalating: escalated,
    });
  const canEscalate = kind !== 'reboot' && canReboot(state);
  if (work.phase === 'rolling-back') {
    if (canEscalate && work.rollbackEscalated === undefined && work.failure.escalated === undefined)
      return progressed(state, { escalating: escalated });
    return progressed(state, { acted: progress.acted + 1, troubles: [...progress.troubles, reason] });
  }
  const isFirst = canEscalate && work.escalated === undefined;
  if (isFirst && mayRestart(work)) return progressed(state, { escalating: escalated });
  const failure: Failure = {
    fault: 'node',
    reason: [work.escalated?.reason, reason].filter(Boolean).join('; '),
    probe: '',
  };
  return progressed(state, { failure: isFirst ? { ...failure, escalated } : failure });
}

function unitRead(state: State, refusal: Refusal | undefined): State {
  if (refusal === undefined) return progressed(state, { unitRead: true });
  const reason = [state.journal.work?.escalated?.reason, refusal.reason].filter(Boolean).join('; ');
  return progressed(state, { failure: failureOf({ ...refusal, reason }) });
}

/** Checks everything again from the start. A rollback has already started over. */
const settled = (state: State): State =>
  remember(state, { settled: true, ...(state.journal.work?.phase === 'rolling-back' ? {} : { progress: START }) });

function compared(state: State, differences: readonly Difference[], nowMs: number): State {
  const { journal, memory } = state;
  if (journal.work === undefined && memory.begun !== undefined)
    return begunWith(
      state,
      memory.begun.changed === undefined
        ? { changed: [...new Set(differences.map(({ what }) => what))], drift: driftAmong(state, differences) }
        : { overwritten: overwrittenAmong(state, memory.begun, differences) },
    );
  if (hasForgotten(state)) return progressed(state, { differences });
  if (journal.work === undefined && journal.sound) return driftChecked(state, differences, nowMs);
  const next = progressed(state, { differences });
  if (journal.work !== undefined)
    return journal.work.phase === 'rolling-back' ? progressed(next, passedOver(next, nowMs)) : next;
  if (startedEarly(state) !== undefined)
    return differences.length > 0 ? next : progressed(state, { startedWhole: true });
  if (whatIsWrong(next).length === 0 && !needsReboot(journal.outstanding, memory.bootId)) return next;
  const { ms, next: chance } = distance(memory.mend.count + 2, memory.chance);
  return remember(next, {
    mend: { count: memory.mend.count + 1, dueMs: nowMs + ms },
    chance,
    progress: START,
    configs: new Map(),
    absent: new Set(),
  });
}

function driftChecked(state: State, differences: readonly Difference[], nowMs: number): State {
  const { value, next } = draw(state.memory.chance);
  const found = differences.map(driftText);
  const dueMs = nowMs + state.settings.driftCheckMs * (0.75 + value / 2);
  // It is applied again. The next check finds what still differs.
  if (differences.some(({ forgotten }) => forgotten === true))
    return remember(state, { chance: next, forgot: true, progress: START, drift: { ...state.memory.drift, dueMs } });
  return remember(state, {
    chance: next,
    configs: new Map(),
    absent: new Set(),
    drift: { ...state.memory.drift, dueMs, found },
  });
}

function statusRead(state: State, status: StatusView | undefined, nowMs: number): State {
  const { value, next } = draw(state.memory.chance);
  const statusDueMs = nowMs + state.settings.readEveryMs * STATUS_READS_SELDOMER * (0.75 + value / 2);
  const read = { chance: next, status: newer(state.memory.status, status), statusReadMs: nowMs, statusDueMs };
  return shown(remember(state, read), nowMs);
}

function leaseRead(state: State, lease: LeaseView | undefined, nowMs: number): State {
  const { memory } = state;
  const { value, next } = draw(memory.chance);
  const asked = leaseDemand(state, lease);
  const lost = asked === 'again' ? (memory.lost ?? { count: 0, dueMs: nowMs + VIEW_LAG_MS }) : undefined;
  const regularMs = nowMs + state.settings.readEveryMs * (0.75 + value / 2);
  const begun: Preparation | undefined =
    asked === 'begin' && lease !== undefined
      ? {
          lease,
          readMs: nowMs,
          checked: false,
          before: undefined,
          originals: undefined,
          changed: undefined,
          snapshot: undefined,
          drift: [],
          overwritten: undefined,
          failure: undefined,
          trouble: '',
        }
      : undefined;
  const laterMs = lost !== undefined && lost.dueMs > nowMs ? Math.min(lost.dueMs, regularMs) : regularMs;
  // A newer lease was pushed during this read: read again.
  const leaseDueMs = memory.leasePushed > (lease?.ledger ?? 0) ? nowMs : laterMs;
  return remember(state, { chance: next, lease, lost, begun, leaseDueMs, leasePushed: 0, progress: START });
}

function sent(state: State, nowMs: number): State {
  const { ms, next } = distance(state.memory.sent.count, state.memory.chance);
  return remember(state, { chance: next, sent: { count: state.memory.sent.count + 1, dueMs: nowMs + ms } });
}

/** If the config and the node are both at fault, the config counts: another node would reject it too. */
function worst(refusals: readonly Refusal[]): Failure | undefined {
  const first = refusals.find(({ fault }) => fault === 'content') ?? refusals[0];
  return first === undefined ? undefined : failureOf(first);
}

const failureOf = ({ fault, reason }: Refusal): Failure => ({ fault, reason, probe: '' });
