import { FACT_VERSION, type Fact, type NewFact, type Targets } from '#libs/contracts';
import { MAX_BATCH, type Answer, type Decision, type Entry, type Need, type Now } from './core.js';
import type { UndoLog } from './table.js';

/**
 * The most work of one decision, in bytes that it reads, writes or hashes. Other slow work counts as a number of bytes.
 * The limit is about 20 ms, because nothing else in the process runs during a decision. It counts work and not time, so
 * the same facts and inputs always lead to the same decision.
 */
export const MAX_DECISION_BYTES = 512 * 1024;
/** Leaves room in a batch for the few facts that must be in the same batch as the last one. */
const ROOM = 50;
/** The sequence of facts in a draft, higher than that of any folded fact. */
const TRIED_FROM = Number.MAX_SAFE_INTEGER - 100_000;

/** What a state needs so that a decision can fold its own facts and undo them. */
export interface DraftState {
  readonly undo: UndoLog;
  readonly touched: Set<string>;
}

/** A decision in progress. Each fact is folded at once, so that the next step sees it. */
export class Draft<S extends DraftState, I, N extends Need> {
  readonly facts: NewFact[] = [];
  readonly answers = new Map<I, Answer>();
  readonly waiting = new Set<I>();
  readonly needs = new Map<string, N>();
  more = false;
  private spentBytes = 0;
  private wakeAtMs: number | undefined;

  constructor(
    readonly state: S,
    readonly now: Now,
    private readonly evolve: (state: S, entry: Entry) => void,
  ) {}

  /** Adds a fact to the decision. `targets` belong to `config.rendered`; the reader of the ledger attaches the same. */
  emit(fact: NewFact, targets?: Targets): void {
    this.facts.push(fact);
    const folded = { ...fact, v: FACT_VERSION, at: '' } as Fact;
    this.evolve(this.state, {
      sequence: TRIED_FROM + this.facts.length,
      readMs: this.now.monotonicMs,
      fact: folded,
      ...(targets === undefined ? {} : { targets }),
    });
  }

  need(need: N): void {
    if (!this.needs.has(need.key)) this.needs.set(need.key, need);
  }

  /** Counts work against the limit of this decision. */
  spend(bytes: number): void {
    this.spentBytes += bytes;
  }

  /** The batch or the work has reached its limit. The next decision does the rest. */
  get full(): boolean {
    return this.facts.length >= MAX_BATCH - ROOM || this.spentBytes >= MAX_DECISION_BYTES;
  }

  /** Asks to decide again at this time, even if nothing happens until then. */
  wakeAt(monotonicMs: number): void {
    this.wakeAtMs = this.wakeAtMs === undefined ? monotonicMs : Math.min(this.wakeAtMs, monotonicMs);
  }

  get decision(): Decision<I, N> {
    const { facts, answers, waiting, needs, wakeAtMs } = this;
    return { facts, answers, waiting, needs: [...needs.values()], more: this.more || this.full, wakeAtMs };
  }
}

/** Runs `steps` to fill a draft, and leaves the state unchanged. */
export function decided<S extends DraftState, I, N extends Need>(
  state: S,
  now: Now,
  evolve: (state: S, entry: Entry) => void,
  steps: (draft: Draft<S, I, N>) => void,
): Decision<I, N> {
  const touched = new Set(state.touched);
  const decision = state.undo.dryRun(() => {
    const draft = new Draft<S, I, N>(state, now, evolve);
    steps(draft);
    return draft.decision;
  });
  state.touched.clear();
  for (const key of touched) state.touched.add(key);
  return decision;
}

/** The keys of views that were touched since the last call. */
export function takeTouched(state: Pick<DraftState, 'touched'>): ReadonlySet<string> {
  const touched = new Set(state.touched);
  state.touched.clear();
  return touched;
}
