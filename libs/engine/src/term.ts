import { parseViewKey, viewKey, type Answer, type Core, type Need } from './core.js';
import { fold, FoldError, newCopy, turn, type Copy } from './cycle.js';
import { candidates, cannotStart, snapshotOf, startFold } from './folds.js';
import {
  BEGINNING,
  hasTerm,
  transition,
  type Halt,
  type LeadershipEvent,
  type LeadershipStatus,
  type ViewPosition,
} from './leadership.js';
import {
  RefoldError,
  UnreachableError,
  UnreadableFactError,
  type NewSnapshot,
  type ServiceEffect,
  type ServicePort,
  type ViewWrite,
} from './ports.js';
import { asker, PAUSE, type Program, type Steps } from './steps.js';

export interface SnapshotSettings {
  /** The number of facts between two snapshots. */
  readonly everyFacts: number;
  /** The time between two snapshots, if there are new facts. */
  readonly everyMs: number;
}

/** How often a halted copy checks whether it can continue. */
const HALT_POLL_MS = 2_000;

/** Receives an answer, or the reason why there is none. */
export interface Waiter<T> {
  resolve(value: T): void;
  reject(error: Error): void;
}
interface Query<S> extends Pick<Waiter<never>, 'reject'> {
  ask(state: S): void;
}

/** One copy of a service over its whole life. The environment runs `life` and reports events. */
export class ServiceCopy<S, I, N extends Need, G> {
  status = BEGINNING;
  copy: Copy<S, I, N, G>;
  /** Something arrived that may need a decision. */
  due = false;
  failures = 0;
  /** Queries that need a state with everything that was in the ledger when they were asked. */
  readonly queries: Query<S>[] = [];
  private readonly waiting = new Map<I, Waiter<Answer | undefined>>();
  /** The newest snapshot of this fold, and when it was written or loaded. */
  snapshot = { sequence: 0, atMs: 0 };

  constructor(
    readonly core: Core<S, I, N, G>,
    /** Undefined if the copy keeps no snapshots. */
    readonly snapshots: SnapshotSettings | undefined,
    private readonly onChange: (status: LeadershipStatus, before: LeadershipStatus) => void,
  ) {
    this.copy = newCopy(core);
  }

  take(event: LeadershipEvent): void {
    const before = this.status;
    this.status = transition(before, event);
    if (this.status === before) return;
    if (hasTerm(before) && !hasTerm(this.status)) this.copy.gathered.clear();
    this.onChange(this.status, before);
  }

  /** Adds an input. Call this only while it leads. */
  submit(input: I, waiter: Waiter<Answer | undefined>): void {
    this.copy.inputs.push(input);
    this.waiting.set(input, waiter);
  }

  /** Reads from a state that includes everything that is in the ledger now. */
  query<T>(read: (state: S) => T, { resolve, reject }: Waiter<T>): void {
    const ask = (state: S): void => {
      let value: T;
      try {
        value = read(state);
      } catch (error) {
        return reject(error as Error);
      }
      resolve(value);
    };
    this.queries.push({ ask, reject });
  }

  /** Answers these inputs: their facts are in the ledger. */
  settle(inputs: readonly I[], answers: ReadonlyMap<I, Answer>): void {
    for (const input of inputs) {
      this.waiting.get(input)?.resolve(answers.get(input));
      this.waiting.delete(input);
    }
  }

  /** Drops all inputs and queries, and tells the waiters why. The environment also calls this when a term ends. */
  giveBack(error: Error): void {
    const waiters = [...this.waiting.values(), ...this.queries];
    this.copy.inputs.length = 0;
    this.waiting.clear();
    this.queries.length = 0;
    for (const waiter of waiters) waiter.reject(error);
  }

  /** Whether it takes inputs: it is elected, has read the whole ledger and has checked its views. */
  get leading(): boolean {
    return this.status.phase === 'leading';
  }

  /** The cursor: up to which sequence the input stream was processed. */
  get cursor(): number {
    return this.core.cursor?.(this.copy.state) ?? 0;
  }

  fold(tail: Parameters<typeof fold>[1]): void {
    if (fold(this.copy, tail) > 0) this.due = true;
  }
}

const ask = asker<ServicePort<never>>();
type Life<I, T = void> = Program<ServiceEffect<I>, T>;

/** Everything that a copy does from start to end, one step at a time, depending on its status. */
export function* life<S, I, N extends Need, G>(service: ServiceCopy<S, I, N, G>): Life<I> {
  while (service.status.phase !== 'stopped') {
    try {
      yield* step(service);
      service.failures = 0;
      service.take({ type: 'succeeded' });
    } catch (error) {
      if (!isStopped(service)) yield* recover(service, error);
    }
    if (service.status.phase === 'following') yield* ask({ do: 'wait', untilMs: undefined });
    if (service.status.phase === 'leading') yield* ask({ do: 'wait', untilMs: service.copy.wakeAtMs });
  }
}

const isStopped = <S, I, N extends Need, G>({ status }: ServiceCopy<S, I, N, G>): boolean => status.phase === 'stopped';

function* step<S, I, N extends Need, G>(service: ServiceCopy<S, I, N, G>): Life<I> {
  const { status } = service;
  switch (status.phase) {
    case 'starting':
      return yield* start(service, status);
    case 'following':
      return service.fold(yield* ask({ do: 'read', after: service.copy.folded }));
    case 'taking-over':
      return yield* takeOver(service, status.term);
    case 'leading':
      return yield* lead(service, status);
    case 'halted':
      return yield* waitForHelp(service, status.halt);
    case 'stopped':
      return;
  }
}

/** Reads the ledger to its end even if this copy does not lead, so that it can take over before another one stops. */
function* start<S, I, N extends Need, G>(
  service: ServiceCopy<S, I, N, G>,
  status: LeadershipStatus & { readonly phase: 'starting' },
): Life<I> {
  const { core } = service;
  if (status.fold === 'snapshot' || status.fold === 'ledger') {
    const started = yield* startFold(core, status.fold === 'snapshot');
    if (!('copy' in started)) {
      const { trimmedTo, snapshots } = started;
      const reason = cannotStart(core, trimmedTo, snapshots);
      return yield* halt(service, reason, { cause: 'trimmed', snapshots });
    }
    service.copy = started.copy;
    service.snapshot = { sequence: started.copy.folded, atMs: (yield* ask({ do: 'now' })).monotonicMs };
  }
  if (status.fold === 'reread') yield* ask({ do: 'follow', after: service.copy.folded });
  service.take({ type: 'fold-started' });
  service.fold(yield* ask({ do: 'catch-up', after: service.copy.folded }));
  service.take({ type: 'caught-up' });
}

/** The start of a term: read the whole ledger, check and write every view, and only then take inputs. */
function* takeOver<S, I, N extends Need, G>(service: ServiceCopy<S, I, N, G>, term: number): Life<I> {
  const { core } = service;
  const isOver = (): boolean => service.status.phase !== 'taking-over' || service.status.term !== term;
  const views = yield* ask({ do: 'load-views' });
  // Read this after the views, so that it includes everything that correct views show.
  service.fold(yield* ask({ do: 'catch-up', after: service.copy.folded }));
  const { state, folded } = service.copy;
  const ahead = views.find(({ ledger }) => ledger > folded);
  if (ahead !== undefined)
    return yield* halt(service, viewsAhead(ahead, folded), { cause: 'views-ahead', view: ahead });
  core.takeTouched(state);
  const writes: ViewWrite[] = [];
  for (const text of core.viewKeys(state)) {
    yield PAUSE;
    const key = parseViewKey(text);
    const value = core.view(state, key);
    if (value !== undefined) writes.push({ key, value });
  }
  writes.push(...(yield* forgotten(core, writes)));
  const atMs = yield* ask({ do: 'views', writes, ledger: folded });
  if (isOver()) return;
  for (const { key } of writes) core.onViewWritten?.(state, key, atMs);
  const reason = inputLost(yield* ask({ do: 'input-end' }), service.cursor);
  if (reason !== undefined) return yield* halt(service, reason, { cause: 'input-lost' });
  if (isOver()) return;
  service.due = true;
  service.take({ type: 'took-over' });
}

/** Deletes the values that an earlier leader should have deleted. */
function* forgotten<S, I, N extends Need, G>(
  { forgets = [] }: Core<S, I, N, G>,
  writes: readonly ViewWrite[],
): Life<I, readonly ViewWrite[]> {
  const known = new Set(writes.map(({ key }) => viewKey(key.bucket, key.key)));
  const found: ViewWrite[] = [];
  for (const bucket of forgets)
    for (const key of yield* ask({ do: 'loaded-keys', bucket }))
      if (!known.has(viewKey(bucket, key))) found.push({ key: { bucket, key }, value: undefined });
  return found;
}

/** Runs turns when they are due, for as long as this term lasts. */
function* lead<S, I, N extends Need, G>(
  service: ServiceCopy<S, I, N, G>,
  { term, behind }: LeadershipStatus & { readonly phase: 'leading' },
): Life<I> {
  const isOver = (): boolean => !service.leading || service.status.term !== term;
  if (behind) {
    service.fold(yield* ask({ do: 'catch-up', after: service.copy.folded }));
    service.take({ type: 'caught-up' });
  }
  if (!service.due) {
    service.fold(yield* ask({ do: 'read', after: service.copy.folded }));
    const { wakeAtMs } = service.copy;
    if (wakeAtMs !== undefined && wakeAtMs <= (yield* ask({ do: 'now' })).monotonicMs) service.due = true;
  }
  if (isOver()) return;
  if (service.due) {
    service.due = false;
    const steps = turn(service.copy);
    for (let next = steps.next(); next.done !== true;) {
      let effect = next.value;
      if (effect.do === 'read') {
        // Between two decisions of a turn.
        yield* doChores(service);
        effect = { do: 'read', after: service.copy.folded };
      }
      if (isOver()) return;
      const answer = yield effect;
      if (isOver()) return;
      next = steps.next(answer);
    }
  }
  yield* doChores(service);
  if (!isOver()) yield* ask({ do: 'show-state' });
}

/** Work that must not wait for the end of a turn, which can take long under load. */
function* doChores<S, I, N extends Need, G>(service: ServiceCopy<S, I, N, G>): Life<I> {
  const { queries, snapshots } = service;
  if (queries.length > 0) {
    // Answer only the queries that were asked before this read. Later ones may need to see more.
    const waiting = [...queries];
    service.fold(yield* ask({ do: 'catch-up', after: service.copy.folded }));
    for (const query of waiting.filter((one) => queries.includes(one))) {
      queries.splice(queries.indexOf(query), 1);
      query.ask(service.copy.state);
    }
  }
  if (snapshots === undefined || service.copy.folded <= service.snapshot.sequence) return;
  const { monotonicMs } = yield* ask({ do: 'now' });
  const facts = service.copy.folded - service.snapshot.sequence;
  if (facts < snapshots.everyFacts && monotonicMs - service.snapshot.atMs < snapshots.everyMs) return;
  yield* ask({ do: 'keep', snapshot: yield* takeSnapshot(service, monotonicMs) });
}

/** A snapshot of the current fold, to be written. */
export function takeSnapshot<S, I, N extends Need, G>(
  service: ServiceCopy<S, I, N, G>,
  nowMs: number,
): Steps<NewSnapshot> {
  service.snapshot = { sequence: service.copy.folded, atMs: nowMs };
  return snapshotOf(service.copy);
}

function* recover<S, I, N extends Need, G>(service: ServiceCopy<S, I, N, G>, error: unknown): Life<I> {
  service.failures += 1;
  service.due = true;
  const { failures } = service;
  if (error instanceof UnreadableFactError || error instanceof FoldError) {
    // If folding threw an error, the state may be half changed.
    const source = error instanceof FoldError ? 'ledger' : 'reread';
    return yield* halt(service, error.message, { cause: 'unreadable-fact', sequence: error.sequence, fold: source });
  }
  if (error instanceof RefoldError) {
    yield* ask({ do: 'log', level: 'warn', text: 'the fold starts over', details: { reason: error.message } });
    return service.take({ type: 'fold-lost' });
  }
  if (error instanceof UnreachableError) {
    const text = 'the NATS server failed to carry out a step; trying again';
    yield* ask({ do: 'log', level: 'warn', text, details: { error: error.cause } });
    return yield* ask({ do: 'back-off', tries: failures, leastMs: 50, mostMs: 3_000 });
  }
  yield* ask({
    do: 'log',
    level: 'error',
    text: 'a decision failed, which is a bug; its inputs are returned and tried again',
    details: { error },
  });
  if (failures > 1)
    service.take({
      type: 'blocked',
      reason: `its decisions keep failing (${(error as Error).message}), because of a bug or of a fact that no service wrote; its log has the stack trace`,
    });
  yield* ask({ do: 'give-back', error: error as Error });
  yield* ask({ do: 'back-off', tries: failures, leastMs: 500, mostMs: 30_000 });
  service.due = true;
}

function* halt<S, I, N extends Need, G>(service: ServiceCopy<S, I, N, G>, reason: string, why: Halt): Life<I> {
  service.take({ type: 'halted', reason, halt: why });
  yield* ask({ do: 'stand', stands: false });
  yield* ask({ do: 'log', level: 'error', text: `halted: ${reason}`, details: {} });
}

/** Checks now and then whether a person has fixed what made this copy stop. */
function* waitForHelp<S, I, N extends Need, G>(service: ServiceCopy<S, I, N, G>, why: Halt): Life<I> {
  yield* ask({ do: 'back-off', tries: 0, leastMs: HALT_POLL_MS, mostMs: HALT_POLL_MS });
  if (isStopped(service) || !(yield* isFixed(service, why))) return;
  yield* ask({ do: 'log', level: 'warn', text: 'the cause is fixed; this copy continues', details: {} });
  service.take({ type: 'freed' });
  yield* ask({ do: 'stand', stands: true });
}

function* isFixed<S, I, N extends Need, G>(service: ServiceCopy<S, I, N, G>, why: Halt): Life<I, boolean> {
  switch (why.cause) {
    case 'unreadable-fact':
      return yield* ask({ do: 'is-voided', sequence: why.sequence });
    case 'trimmed': {
      const snapshots = yield* ask({ do: 'list-snapshots', service: service.core.name });
      const before = new Set(why.snapshots.map(({ name, sequence }) => `${name} ${sequence}`));
      // The snapshots that existed before could not be read, so only a new one helps.
      return candidates(service.core, snapshots, yield* ask({ do: 'bounds' })).some(
        ({ name, sequence }) => !before.has(`${name} ${sequence}`),
      );
    }
    case 'views-ahead': {
      const highest = yield* ask({ do: 'highest-view', view: why.view });
      return highest <= (yield* ask({ do: 'bounds' })).last;
    }
    case 'input-lost':
      return inputLost(yield* ask({ do: 'input-end' }), service.cursor) === undefined;
  }
}

/** A view is ahead of the ledger: the ledger was restored from an older backup, and nothing may be appended to it. */
function viewsAhead({ bucket, key, ledger }: ViewPosition, end: number): string {
  const [view, remedy] =
    key === undefined
      ? [bucket, '']
      : [
          `${bucket}/${key}`,
          ` (if somebody wrote this value by hand, run nats kv del ${bucket} ${key}: the service then writes it again)`,
        ];
  return `the view ${view} shows ${ledger}, but the ledger ends at ${end}: the ledger was restored from an older backup, so nothing is appended to it${remedy}`;
}

/** The input stream must not end before its cursor: new messages up to the cursor would never be read. */
function inputLost(
  end: { readonly stream: string; readonly last: number } | undefined,
  cursor: number,
): string | undefined {
  if (end === undefined || end.last >= cursor) return undefined;
  const { stream, last } = end;
  return (
    `the stream ${stream} ends at sequence ${last}, but was already read up to ${cursor}: it was recreated or restored from an older backup, and new messages in it would be ignored. ` +
    `Restore a newer backup, or recreate the stream so that it continues after ${cursor}: save the "config" of nats stream info ${stream} --json and add "first_seq": ${cursor + 1} to it, then run nats stream rm ${stream} and nats stream add --config FILE`
  );
}
