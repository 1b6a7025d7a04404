import { parseViewKey, type Core, type Decision, type Need, type Now } from './core.js';
import type { GatherPort } from './gathering.js';
import type { ClockPort, LedgerPort, RequestPort, Tail, ViewPort, ViewWrite } from './ports.js';
import { asker, PAUSE, type Effects, type Program } from './steps.js';

/** The effects of a turn. */
type TurnPort<I> = Pick<LedgerPort, 'read' | 'catch-up' | 'append'> &
  Pick<ClockPort, 'now' | 'back-off'> &
  GatherPort &
  Pick<ViewPort, 'views'> &
  Pick<RequestPort<I>, 'settle'>;
export type TurnEffect<I> = Effects<TurnPort<I>>;
const ask = asker<TurnPort<never>>();

/** The memory of one copy of a service: its fold and its pending work. All of it can be lost at any moment. */
export interface Copy<S, I, N extends Need, G> {
  readonly core: Core<S, I, N, G>;
  state: S;
  /** Sequence of the last fact that was folded. */
  folded: number;
  /** Inputs in order of arrival. They are removed when they are settled. */
  readonly inputs: I[];
  readonly gathered: Map<string, G>;
  /** When to decide again even if nothing happens, monotonic. */
  wakeAtMs: number | undefined;
}

/** How many inputs are decided together. The size of a batch limits them anyway. */
const MAX_INPUTS = 500;
/** How many gathered results are kept. Each turn looks at all of them. */
const MAX_KEPT = 100;
/** After this many refused appends in a row, another service is busy: wait a moment, with jitter. */
const REFUSALS_BEFORE_BACK_OFF = 5;

export function newCopy<S, I, N extends Need, G>(core: Core<S, I, N, G>): Copy<S, I, N, G> {
  return { core, state: core.initial(), folded: 0, inputs: [], gathered: new Map(), wakeAtMs: undefined };
}

/**
 * A fact that could not be folded, because of a bug or because nobody should have written it. The state must not be
 * used any more.
 */
export class FoldError extends Error {
  override readonly name = 'FoldError';
  constructor(
    readonly sequence: number,
    cause: unknown,
  ) {
    super(
      `sequence ${sequence} of the ledger cannot be folded: ${cause instanceof Error ? cause.message : String(cause)}`,
      { cause },
    );
  }
}

/** Folds new facts and returns how many there were. Facts that were already folded change nothing. */
export function fold<S, I, N extends Need, G>(copy: Copy<S, I, N, G>, tail: Tail): number {
  let count = 0;
  for (const entry of tail.entries) {
    if (entry.sequence <= copy.folded) continue;
    try {
      copy.core.evolve(copy.state, entry);
    } catch (error) {
      throw new FoldError(entry.sequence, error);
    }
    copy.folded = entry.sequence;
    count += 1;
  }
  copy.folded = Math.max(copy.folded, tail.upTo);
  return count;
}

type Turn<I> = Program<TurnEffect<I>>;

/**
 * One turn of a leader, the same for every service: fold new facts, decide, append (if refused: fold and decide again),
 * write views, settle inputs. It ends when nothing is left to decide.
 */
export function* turn<S, I, N extends Need, G>(copy: Copy<S, I, N, G>): Turn<I> {
  let refusals = 0;
  for (;;) {
    // Each decision is short, but a turn can have many. This lets the rest of the process run between them.
    yield PAUSE;
    fold(copy, yield* ask({ do: 'read', after: copy.folded }));
    const inputs = copy.inputs.slice(0, MAX_INPUTS);
    let decision = decide(copy, inputs, yield* ask({ do: 'now' }));
    if (copy.core.gathersFirst === true && decision.facts.length > 0 && decision.needs.length > 0) {
      yield* gather(copy, decision.needs);
      decision = decide(copy, inputs, yield* ask({ do: 'now' }));
    }
    if (decision.facts.length > 0) {
      const separate = copy.core.separable?.(decision.facts) === true;
      const result = yield* ask({ do: 'append', facts: decision.facts, expected: copy.folded, separate });
      if (result.outcome !== 'appended') {
        refusals += 1;
        if (refusals >= REFUSALS_BEFORE_BACK_OFF)
          yield* ask({ do: 'back-off', tries: refusals - REFUSALS_BEFORE_BACK_OFF, leastMs: 20, mostMs: 1_000 });
        fold(copy, yield* ask({ do: 'catch-up', after: copy.folded }));
        // Show appliers the facts that were appended, even if other services keep winning the next appends.
        if (separate) yield* writeViews(copy);
        continue;
      }
      refusals = 0;
      fold(copy, result);
    } else if (inputs.length > decision.waiting.size) {
      // A decision without facts is final only if no unread fact could change it.
      if (fold(copy, yield* ask({ do: 'catch-up', after: copy.folded })) > 0) continue;
    }
    yield* writeViews(copy);
    copy.wakeAtMs = decision.wakeAtMs;
    const settled = new Set(inputs.filter((input) => !decision.waiting.has(input)));
    if (settled.size > 0) {
      yield { do: 'settle', inputs: [...settled], answers: decision.answers };
      copy.inputs.splice(0, copy.inputs.length, ...copy.inputs.filter((input) => !settled.has(input)));
    }
    if (decision.needs.length > 0) {
      yield* gather(copy, decision.needs);
      continue;
    }
    forgetGathered(copy);
    if (decision.facts.length === 0 && !decision.more && settled.size === 0) return;
  }
}

function decide<S, I, N extends Need, G>(copy: Copy<S, I, N, G>, inputs: readonly I[], now: Now): Decision<I, N> {
  const { core, state, gathered } = copy;
  const decision = core.decide(state, inputs, gathered, now);
  core.remember?.(state, decision.memory);
  return decision;
}

function* gather<S, I, N extends Need, G>(copy: Copy<S, I, N, G>, needs: readonly N[]): Turn<I> {
  const { core, state } = copy;
  if (core.gather === undefined) throw new Error(`${core.name} asks for something that it cannot gather`);
  const results = yield* core.gather(needs, state);
  for (const [key, result] of results) copy.gathered.set(key, result);
}

/** Drops the gathered results, except those that the core keeps. */
function forgetGathered<S, I, N extends Need, G>({ core, gathered }: Copy<S, I, N, G>): void {
  if (gathered.size > MAX_KEPT) gathered.clear();
  for (const [key, result] of gathered) if (core.keeps?.(result) !== true) gathered.delete(key);
}

function* writeViews<S, I, N extends Need, G>(copy: Copy<S, I, N, G>): Turn<I> {
  const writes: ViewWrite[] = [];
  for (const text of copy.core.takeTouched(copy.state)) {
    const key = parseViewKey(text);
    const value = copy.core.view(copy.state, key);
    if (value !== undefined || copy.core.forgets?.includes(key.bucket) === true) writes.push({ key, value });
  }
  if (writes.length === 0) return;
  const atMs = yield* ask({ do: 'views', writes, ledger: copy.folded });
  for (const { key } of writes) copy.core.onViewWritten?.(copy.state, key, atMs);
}
