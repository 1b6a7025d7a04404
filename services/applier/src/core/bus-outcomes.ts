import { EMPTY_CONFIG, type Config, type LeaseView, type StatusView } from '#libs/contracts';
import { wordsFor } from '#libs/manifests/lean';
import { distance, draw } from './chance.js';
import { intervalMs, newHealth } from './health.js';
import { failureOf } from './journal.js';
import { leaseDemand } from './leases.js';
import { probesOf } from './plan.js';
import type { Outcomes, Step, StepOf } from './ports.js';
import { isTouched, withAside } from './scope.js';
import {
  withPreparation,
  uncheckedDrift,
  leaseKnown,
  newer,
  type Preparation,
  progressed,
  remember,
  noteStatus,
  START,
  type State,
  VIEW_LAG_MS,
} from './state.js';

const STATUS_READS_SELDOMER = 5;

/** NATS does not answer: the wait before the next try grows. */
export function backedOff(state: State, step: Step, nowMs: number): State {
  const { bus, chance, drift } = state.memory;
  const { ms, next } = distance(bus.failures, chance);
  // A drift check that waits for a lost config must not block everything else.
  const later =
    step.do === 'fetch-config' && state.memory.preparation === undefined
      ? { drift: { ...drift, dueMs: nowMs + state.settings.driftCheckMs } }
      : {};
  const waits = remember(state, { bus: { failures: bus.failures + 1, retryAtMs: nowMs + ms }, chance: next, ...later });
  // More time would not bring the object store back.
  return step.do === 'fetch-object'
    ? withPreparation(waits, { trouble: `${wordsFor(step.entry)}: the object store did not answer: run sluice doctor` })
    : waits;
}

export const reached = (state: State, nowMs: number): State =>
  remember(state, { bus: { failures: 0, retryAtMs: nowMs } });

/** Before a change, waits for a config that is not there yet, or that cannot be saved now. */
export function configFetched(
  state: State,
  step: StepOf<'fetch-config'>,
  config: Outcomes['fetch-config'],
  nowMs: number,
): State {
  if (!('fault' in config))
    return reached(withPreparation(keepConfig(state, step.hash, config, nowMs), { trouble: '' }), nowMs);
  if (step.isOptional === true) return withPreparation(reached(state, nowMs), { had: EMPTY_CONFIG });
  const waiting = state.memory.preparation === undefined ? state : soonAgain(state);
  return withPreparation(backedOff(waiting, step, nowMs), { trouble: config.reason });
}

/** Before a change, waits for an object that may still arrive. A pass that retries a rollback continues without it. */
export function objectFetched(
  state: State,
  step: StepOf<'fetch-object'>,
  refusal: Outcomes['fetch-object'],
  nowMs: number,
): State {
  const { preparation, progress } = state.memory;
  if (preparation === undefined) return progressed(state, { fetched: progress.fetched + 1 });
  if (refusal === undefined)
    return withPreparation(reached(state, nowMs), { fetched: preparation.fetched + 1, trouble: '' });
  const { scope } = preparation;
  const { kinds } = state.settings;
  const { entry } = step;
  if (scope !== undefined && !isTouched(scope, entry, kinds))
    return withPreparation(reached(state, nowMs), {
      scope: withAside(scope, [{ entry, reason: refusal.reason }], kinds),
    });
  return refusal.mayCome === true
    ? withPreparation(backedOff(soonAgain(state), step, nowMs), { trouble: refusal.reason })
    : withPreparation(state, { failure: failureOf(refusal) });
}

/** NATS answers, so the next wait does not grow further: the report of the lease would have to wait for it, too. */
const soonAgain = (state: State): State => {
  const { bus } = state.memory;
  return remember(state, { bus: { ...bus, failures: Math.min(bus.failures, MOST_FAILURES) } });
};

const MOST_FAILURES = 2;

export function keepConfig(state: State, hash: string, config: Config, nowMs: number): State {
  const absent = new Set(state.memory.absent);
  absent.delete(hash);
  const next = remember(state, { configs: new Map([...state.memory.configs, [hash, config]]), absent });
  return hash === state.journal.inForce && state.memory.health.probes === undefined
    ? watched(next, config, nowMs)
    : next;
}

/** The probes of the config in force are known. Nodes that start together do not run them together. */
function watched(state: State, config: Config, nowMs: number): State {
  const { value, next } =
    probesOf(config).length === 0 ? { value: 0, next: state.memory.chance } : draw(state.memory.chance);
  const { round } = state.memory.health;
  return remember(state, {
    health: newHealth(round, config, (probe) => nowMs + value * intervalMs(probe)),
    chance: next,
  });
}

export function statusRead(state: State, status: StatusView | undefined, nowMs: number): State {
  const { value, next } = draw(state.memory.chance);
  const statusDueMs = nowMs + state.settings.readEveryMs * STATUS_READS_SELDOMER * (0.75 + value / 2);
  const read = { chance: next, status: newer(state.memory.status, status), statusReadMs: nowMs, statusDueMs };
  return noteStatus(remember(state, read), nowMs);
}

/** A server that lags has caught up within milliseconds, or is cut off from the others. */
const STALE_READ_MS = 25;
const MOST_STALE_READ_MS = 5_000;
const STALE_READS = 8;

export function leaseRead(state: State, lease: LeaseView | undefined, nowMs: number): State {
  const { memory } = state;
  const { value, next } = draw(memory.chance);
  const demand = leaseDemand(state, lease);
  const viewRetry = demand === 'again' ? (memory.viewRetry ?? { count: 0, dueMs: nowMs + VIEW_LAG_MS }) : undefined;
  const regularMs = nowMs + state.settings.readEveryMs * (0.75 + value / 2);
  const preparation: Preparation | undefined =
    demand === 'begin' && lease !== undefined
      ? {
          lease,
          readMs: nowMs,
          scope: undefined,
          idleUnits: [],
          fetched: 0,
          before: [],
          originals: undefined,
          had: undefined,
          changed: undefined,
          snapshot: undefined,
          drift: [],
          overwritten: undefined,
          failure: undefined,
          trouble: '',
        }
      : undefined;
  const laterMs = viewRetry !== undefined && viewRetry.dueMs > nowMs ? Math.min(viewRetry.dueMs, regularMs) : regularMs;
  // A newer lease was pushed during this read, or the server that answered does not have it yet: read again.
  const isStale = (lease?.ledger ?? 0) < leaseKnown(state);
  const againMs = nowMs + Math.min(STALE_READ_MS * 2 ** memory.staleReads, MOST_STALE_READ_MS);
  return remember(state, {
    chance: next,
    lease,
    viewRetry,
    preparation,
    leaseDueMs: isStale ? Math.min(againMs, laterMs) : laterMs,
    // What was pushed may be wrong. The status is not.
    leasePushed: isStale && memory.staleReads < STALE_READS ? memory.leasePushed : 0,
    staleReads: isStale ? memory.staleReads + 1 : 0,
    progress: START,
    ...(preparation === undefined ? {} : { drift: uncheckedDrift(memory.drift.round + 1, Infinity) }),
  });
}

export function countReport(state: State, nowMs: number): State {
  const { ms, next } = distance(state.memory.reportRetry.count, state.memory.chance);
  return remember(state, {
    chance: next,
    reportRetry: { count: state.memory.reportRetry.count + 1, dueMs: nowMs + ms },
  });
}
