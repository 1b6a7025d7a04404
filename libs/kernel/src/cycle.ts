import type { Fact, NewFact } from '#libs/contracts';
import {
  parseViewKey,
  type Answer,
  type Core,
  type Entry,
  type Need,
  type Now,
  type ViewBody,
  type ViewKey,
} from './core.js';

/**
 * What every service does, again and again: fold what is new, decide, append (refused: fold and decide again), write
 * views, settle inputs. A generator, because each step outside is an effect that the shell carries out: on NATS in
 * production, in a seeded world in the simulation, which may kill the copy between any two.
 */
export type Effect<I, N extends Need> =
  /** Facts that have arrived since, without waiting. */
  | { readonly do: 'read'; readonly after: number }
  /** The same, but up to the sequence that the stream's leader names now. */
  | { readonly do: 'catch-up'; readonly after: number }
  | { readonly do: 'now' }
  | { readonly do: 'gather'; readonly needs: readonly N[] }
  /** Together or not at all; or, where they are `separate`, each only behind the one before it, so that what is appended is a first part of them. */
  | { readonly do: 'append'; readonly facts: readonly NewFact[]; readonly expected: number; readonly separate: boolean }
  | { readonly do: 'views'; readonly writes: readonly ViewWrite[]; readonly ledger: number }
  | { readonly do: 'settle'; readonly inputs: readonly I[]; readonly answers: ReadonlyMap<I, Answer> }
  | { readonly do: 'back-off'; readonly refusals: number };

export interface ViewWrite {
  readonly key: ViewKey;
  readonly value: ViewBody;
}

/** A piece of the ledger as one core reads it: the facts that it uses, and the sequence up to which nothing else is left. */
export interface Tail {
  readonly entries: readonly Entry[];
  /** Facts that the core does not read are not among the entries, but count as folded. */
  readonly upTo: number;
}

/** What an append came to. After `unclear` (a time-out) it may have happened or not, and of separate facts some may stand after `refused`: the tail tells. */
export type AppendResult =
  | ({ readonly outcome: 'appended' } & Tail)
  | { readonly outcome: 'refused' }
  | { readonly outcome: 'unclear' };

/** What the world answers to each effect. */
export interface Results<G> {
  read: Tail;
  'catch-up': Tail;
  now: Now;
  gather: ReadonlyMap<string, G>;
  append: AppendResult;
  /** Monotonic, when all of them were known to be written. */
  views: number;
  settle: void;
  'back-off': void;
}

/** One copy of a service: its fold and what it still has in hand. All of it may be lost at any moment. */
export interface Copy<S, I, N extends Need, G> {
  readonly core: Core<S, I, N, G>;
  state: S;
  /** Sequence of the last fact that was folded. */
  folded: number;
  /** Inputs in the order in which they came; taken off when settled. */
  readonly inputs: I[];
  readonly gathered: Map<string, G>;
  /** When to decide again though nothing happens, monotonic. */
  wakeAtMs: number | undefined;
}

/** At most this many inputs are decided together: one batch of facts bounds them anyway. */
const MAX_INPUTS = 500;
/** So many gathered results are kept at most; each turn looks at all of them. */
const MAX_KEPT = 100;
/** After so many refusals in a row somebody else is busy on the same ledger: wait a moment, with jitter. */
const REFUSALS_BEFORE_BACK_OFF = 5;

export function newCopy<S, I, N extends Need, G>(core: Core<S, I, N, G>): Copy<S, I, N, G> {
  return { core, state: core.initial(), folded: 0, inputs: [], gathered: new Map(), wakeAtMs: undefined };
}

/** A fact that the fold could not take: a bug, or a fact that nobody should have written. That state is not to be used again. */
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

/** Folds what follows what was folded, and says how many facts that were; those folded before change nothing. */
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

type Steps<I, N extends Need, G> = Generator<Effect<I, N>, void, Results<G>[keyof Results<G>]>;

/** One turn of a copy that leads. Ends when there is nothing more to decide on what is known. */
export function* turn<S, I, N extends Need, G>(copy: Copy<S, I, N, G>): Steps<I, N, G> {
  let refusals = 0;
  for (;;) {
    fold(copy, (yield { do: 'read', after: copy.folded }) as Tail);
    const inputs = copy.inputs.slice(0, MAX_INPUTS);
    let decision = copy.core.decide(copy.state, inputs, copy.gathered, (yield { do: 'now' }) as Now);
    if (copy.core.gathersFirst === true && decision.facts.length > 0 && decision.needs.length > 0) {
      yield* gather(copy, decision.needs);
      decision = copy.core.decide(copy.state, inputs, copy.gathered, (yield { do: 'now' }) as Now);
    }
    if (decision.facts.length > 0) {
      const separate = copy.core.separable?.(decision.facts) === true;
      const result = (yield { do: 'append', facts: decision.facts, expected: copy.folded, separate }) as AppendResult;
      if (result.outcome !== 'appended') {
        refusals += 1;
        if (refusals >= REFUSALS_BEFORE_BACK_OFF) yield { do: 'back-off', refusals };
        fold(copy, (yield { do: 'catch-up', after: copy.folded }) as Tail);
        // What stands of them is for appliers to see, however long others are quicker.
        if (separate) yield* writeViews(copy);
        continue;
      }
      refusals = 0;
      fold(copy, result);
    } else if (inputs.length > decision.held.size) {
      // What yields no fact counts only once nothing that could have changed the decision is still unread.
      if (fold(copy, (yield { do: 'catch-up', after: copy.folded }) as Tail) > 0) continue;
    }
    yield* writeViews(copy);
    copy.wakeAtMs = decision.wakeAtMs;
    const settled = new Set(inputs.filter((input) => !decision.held.has(input)));
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

function* gather<S, I, N extends Need, G>(copy: Copy<S, I, N, G>, needs: readonly N[]): Steps<I, N, G> {
  const found = (yield { do: 'gather', needs }) as ReadonlyMap<string, G>;
  for (const [key, result] of found) copy.gathered.set(key, result);
}

/** What was gathered for one decision is of no use to the next, unless the core keeps it. */
function forgetGathered<S, I, N extends Need, G>({ core, gathered }: Copy<S, I, N, G>): void {
  if (gathered.size > MAX_KEPT) gathered.clear();
  for (const [key, result] of gathered) if (core.keeps?.(result) !== true) gathered.delete(key);
}

function* writeViews<S, I, N extends Need, G>(copy: Copy<S, I, N, G>): Steps<I, N, G> {
  const writes: ViewWrite[] = [];
  for (const text of copy.core.takeTouched(copy.state)) {
    const key = parseViewKey(text);
    const value = copy.core.view(copy.state, key);
    if (value !== undefined) writes.push({ key, value });
  }
  if (writes.length === 0) return;
  const atMs = (yield { do: 'views', writes, ledger: copy.folded }) as number;
  for (const { key } of writes) copy.core.shown?.(copy.state, key, atMs);
}

/** The facts as they will be read back by whoever appended them. */
export const asEntries = (facts: readonly Fact[], lastSequence: number, readMs: number): readonly Entry[] =>
  facts.map((fact, i) => ({ sequence: lastSequence - facts.length + 1 + i, readMs, fact }));
