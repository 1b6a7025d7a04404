import { FACT_VERSION, type Fact, type NewFact, type Targets } from '#libs/contracts';
import { MAX_BATCH, type Answer, type Decision, type Entry, type Need, type Now } from './core.js';
import type { UndoLog } from './table.js';

/** Leaves room in a batch for the few facts that must stand in it together with the last. */
const ROOM = 50;
/** Facts that are only being tried come after everything that was folded. */
const TRIED_FROM = Number.MAX_SAFE_INTEGER - 100_000;

/** What a state must have so that a decision can fold its own facts and take them back. */
export interface Triable {
  readonly undo: UndoLog;
  readonly touched: Set<string>;
}

/** A decision in the making: each fact is folded as it is decided, so that the next one sees it. */
export class Draft<S extends Triable, I, N extends Need> {
  readonly facts: NewFact[] = [];
  readonly answers = new Map<I, Answer>();
  readonly held = new Set<I>();
  readonly needs = new Map<string, N>();
  more = false;
  private wakeAtMs: number | undefined;

  constructor(
    readonly state: S,
    readonly now: Now,
    private readonly evolve: (state: S, entry: Entry) => void,
  ) {}

  /** Decides a fact. `targets` go with `config.rendered`, as the ledger's reader will attach them. */
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

  /** The batch is as long as it may become: what is left is decided in the next one. */
  get full(): boolean {
    return this.facts.length >= MAX_BATCH - ROOM;
  }

  /** Asks to decide again at this time, though nothing may happen. */
  wakeAt(monotonicMs: number): void {
    this.wakeAtMs = this.wakeAtMs === undefined ? monotonicMs : Math.min(this.wakeAtMs, monotonicMs);
  }

  get decision(): Decision<I, N> {
    const { facts, answers, held, needs, wakeAtMs } = this;
    return { facts, answers, held, needs: [...needs.values()], more: this.more || this.full, wakeAtMs };
  }
}

/** Lets `steps` fill a draft, and leaves the state as it was. */
export function decided<S extends Triable, I, N extends Need>(
  state: S,
  now: Now,
  evolve: (state: S, entry: Entry) => void,
  steps: (draft: Draft<S, I, N>) => void,
): Decision<I, N> {
  const touched = new Set(state.touched);
  const decision = state.undo.tried(() => {
    const draft = new Draft<S, I, N>(state, now, evolve);
    steps(draft);
    return draft.decision;
  });
  state.touched.clear();
  for (const key of touched) state.touched.add(key);
  return decision;
}

/** The keys of views touched since this was last asked. */
export function takeTouched(state: Pick<Triable, 'touched'>): ReadonlySet<string> {
  const touched = new Set(state.touched);
  state.touched.clear();
  return touched;
}
