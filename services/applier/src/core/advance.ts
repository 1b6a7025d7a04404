import { fragmentId } from '#libs/contracts';
import {
  backedOff,
  configFetched,
  leaseRead,
  objectFetched,
  reached,
  countReport,
  statusRead,
  keepConfig,
} from './bus-outcomes.js';
import { started } from './health.js';
import { journaled, notWritten, onDisk } from './journal-outcomes.js';
import { failureOf, type Originals } from './journal.js';
import { type Outcomes, type Refusal, type Step, type StepOf, UNREACHABLE } from './ports.js';
import { withPreparation, progressed, remember, type State } from './state.js';
import { checkedConfig, checkedProbes } from './preparation-outcomes.js';
import { acted, checked, compared, guarded, moved, notRun, ran, settled, unitRead } from './work-outcomes.js';

/** Half as long as contents are kept that a lease has downloaded in vain. */
const TIDY_AGAIN_MS = 43_200_000;
const PREFETCH_AGAIN_MS = 2_000;

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
  'load-config': (state, { hash }, config, nowMs) =>
    config === undefined
      ? remember(state, { absent: new Set([...state.memory.absent, hash]) })
      : keepConfig(state, hash, config, nowMs),
  'fetch-config': configFetched,
  'fetch-object': objectFetched,
  prefetch: (state, { lease }, { isOver }, nowMs) =>
    remember(state, { prefetch: { lease, dueMs: isOver ? Infinity : nowMs + PREFETCH_AGAIN_MS }, untidy: true }),
  check: checkedConfig,
  'read-before': (state, _, originals) =>
    isRefusal(originals)
      ? withPreparation(state, { failure: failureOf(originals) })
      : withPreparation(state, { originals }),
  snapshot: (state, _, snapshot) =>
    isRefusal(snapshot)
      ? withPreparation(state, { failure: failureOf(snapshot) })
      : withPreparation(state, { snapshot }),
  'run-probes': (state, _, results) =>
    state.journal.work === undefined ? checkedProbes(state, results) : ran(state, results),
  'start-probes': (state, { probes }) => remember(state, { health: started(state.memory.health, probes) }),
  guard: (state, { lease }, refusal) => guarded(remember(state, { guarded: lease }), refusal),
  'check-command': (state, { entry }, outcome) => checked(state, entry, outcome),
  apply: (state, { entry }, refusal) => moved(refusal?.neverRan === true ? notRun(state, entry) : state, refusal),
  undo: (state, { entry }, refusal) =>
    progressed(state, {
      undone: new Map([...state.memory.progress.undone, [fragmentId(entry), refusal?.reason]]),
    }),
  restore: (state, _, refusal) => moved(state, refusal),
  act: (state, { action }, refusal) => acted(state, action, refusal),
  'read-unit': (state, _, refusal) => unitRead(state, refusal),
  'reset-failed': (state) => progressed(state, { unitsReset: true }),
  settle: (state) => settled(state),
  'await-ready': (state, { atMs }, outcome) =>
    'fault' in outcome
      ? progressed(state, { failure: failureOf(outcome) })
      : progressed(state, { waitsFor: { what: outcome, atMs } }),
  'await-others': (state, { untilMs }, outcome) => progressed(state, { leftToOthers: { ...outcome, untilMs } }),
  compare: (state, _, differences, nowMs) => compared(state, differences, nowMs),
  'start-drift-check': (state) =>
    remember(state, { drift: { ...state.memory.drift, isRunning: true, dueMs: Infinity } }),
  tidy: (state, _, __, nowMs) => remember(state, { untidy: false, tidyDueMs: nowMs + TIDY_AGAIN_MS }),
  'read-status': (state, _, status, nowMs) => statusRead(reached(state, nowMs), status, nowMs),
  'read-lease': (state, _, lease, nowMs) => leaseRead(reached(state, nowMs), lease, nowMs),
  report: (state, _, __, nowMs) => countReport(reached(state, nowMs), nowMs),
  wait: (state) => state,
};

const isRefusal = (read: Originals | Refusal): read is Refusal =>
  typeof read['fault'] === 'string' && typeof read['reason'] === 'string';
