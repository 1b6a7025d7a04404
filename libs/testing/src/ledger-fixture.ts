import {
  configKey,
  decodeFact,
  encodeFact,
  factSubject,
  type Config,
  type Fact,
  type NewFact,
  type ViewBucket,
  type ViewValues,
} from '#libs/contracts';
import {
  atOnce,
  MAX_BATCH,
  parseViewKey,
  type Answer,
  type Core,
  type Decision,
  type Entry,
  type GatherPort,
  type Handlers,
  type Need,
  type Now,
} from '#libs/engine';
import { pictureOf, pictureTextOf } from './state-picture.js';
import { blobOf, targetsOf } from './fact-builders.js';

/** More rounds than any decision should need. A core that needs more has a bug. */
const ROUNDS = 50;

/** The configs and targets to which facts of a ledger in memory refer. */
class MemoryBlobs {
  readonly configs = new Map<string, Config>();
  /** What is in the object store, by sha256. */
  readonly objects = new Set<string>();
  readonly port: Handlers<GatherPort> = {
    'read-configs': ({ names }) => names.map(({ node, hash }) => this.configs.get(configKey(node, hash))),
    'put-configs': ({ configs }) => {
      for (const { node, hash, text } of configs) this.configs.set(configKey(node, hash), JSON.parse(text) as Config);
    },
    'put-targets': ({ targets }) => [blobOf(targets)],
    'missing-objects': ({ hashes }) => new Set(hashes.filter((sha256) => !this.objects.has(sha256))),
    'input-end': () => undefined,
    pause: () => undefined,
  };
}

/** The ledger, in memory: one order of facts, and appends only at the end that the decision was based on. */
export class MemoryLedger {
  readonly facts: Fact[] = [];
  readonly blobs = new MemoryBlobs();

  get last(): number {
    return this.facts.length;
  }

  /** All or nothing. Facts are encoded and decoded as in the stream. */
  append(facts: readonly NewFact[], expected = this.last): boolean {
    if (expected !== this.last) return false;
    for (const fact of facts)
      this.facts.push(
        decodeFact(factSubject(fact), encodeFact(fact, `2026-01-01T00:00:00.${String(this.last).padStart(3, '0')}Z`)),
      );
    return true;
  }

  entries(after: number, readMs: number, reads: readonly string[]): readonly Entry[] {
    return this.facts
      .slice(after)
      .map((fact, i): Entry => {
        const targets = targetsOf(fact);
        return { sequence: after + i + 1, readMs, fact, ...(targets === undefined ? {} : { targets }) };
      })
      .filter(({ fact }) => reads.includes(fact.type));
  }
}

/**
 * One copy of a core on a ledger in memory. `given` appends facts, `when` sends inputs and returns the resulting facts.
 * Every decision is checked: it fits into a batch, it leaves the state unchanged, and a fold that is loaded from the
 * dump is the same, including its indexes.
 */
export class LedgerCopy<S, I, N extends Need = never, G = never> {
  state: S;
  folded = 0;
  nowMs = 1_000;
  leadingSinceMs: number | undefined = 0;
  answers: Answer[] = [];
  /** How many facts were folded at the last check of the snapshot. */
  private checked = -1;

  constructor(
    readonly core: Core<S, I, N, G>,
    readonly ledger = new MemoryLedger(),
    /** The results of gathering, if the spec provides them and not the core. */
    private readonly result: ((needs: readonly N[], state: S) => ReadonlyMap<string, G>) | undefined = undefined,
  ) {
    this.state = core.initial();
  }

  /** Appends facts of other services and folds them. */
  given(...facts: readonly NewFact[]): this {
    this.ledger.append(facts);
    return this.read();
  }

  /** Folds the new facts of the ledger. */
  read(): this {
    for (const entry of this.ledger.entries(this.folded, this.nowMs, this.core.reads))
      this.core.evolve(this.state, entry);
    this.folded = this.ledger.last;
    return this;
  }

  /** Takes inputs, decides until nothing is left to decide, and returns the facts that it appended, as plain JSON. */
  when(...inputs: readonly I[]): readonly NewFact[] {
    const facts: NewFact[] = [];
    this.answers = [];
    let waiting = inputs;
    let gathered = new Map<string, G>();
    for (let round = 0; ; round++) {
      if (round > ROUNDS) throw new Error(`${this.core.name} never comes to rest: ${JSON.stringify(facts.slice(-5))}`);
      this.read();
      const decision = this.decide(waiting, gathered);
      if (!this.ledger.append(decision.facts)) throw new Error('refused');
      facts.push(...decision.facts);
      this.read();
      this.showViews();
      this.answers.push(...decision.answers.values());
      waiting = waiting.filter((input) => decision.waiting.has(input));
      gathered = decision.needs.length > 0 ? new Map([...gathered, ...this.gather(decision.needs)]) : new Map();
      if (decision.facts.length === 0 && decision.needs.length === 0 && !decision.more && waiting.length === 0)
        return facts;
    }
  }

  /** Gathers what a decision needs. */
  gather(needs: readonly N[]): ReadonlyMap<string, G> {
    if (this.result !== undefined) return this.result(needs, this.state);
    const steps = this.core.gather?.(needs, this.state);
    if (steps === undefined) throw new Error(`${this.core.name} gathers nothing`);
    return atOnce(steps, this.ledger.blobs.port);
  }

  /** Advances the time, and decides. */
  after(ms: number): readonly NewFact[] {
    this.nowMs += ms;
    return this.when();
  }

  get now(): Now {
    return { monotonicMs: this.nowMs, leadingSinceMs: this.leadingSinceMs, wallMs: this.nowMs };
  }

  /** One decision on the facts read so far, without appending it. */
  decide(inputs: readonly I[] = [], gathered: ReadonlyMap<string, G> = new Map()): Decision<I, N> {
    const before = pictureTextOf(this.state, true);
    const decision = this.core.decide(this.state, inputs, gathered, this.now);
    if (decision.facts.length > MAX_BATCH)
      throw new Error(`${decision.facts.length} facts are more than a batch may hold`);
    expect(pictureTextOf(this.state, true)).toBe(before);
    this.core.remember?.(this.state, decision.memory);
    this.checkSnapshot();
    return decision;
  }

  /**
   * Checked once per fold. The texts are compared first, because they are nearly always equal. If not, the pictures
   * show the difference.
   */
  private checkSnapshot(): void {
    if (this.checked === this.folded) return;
    this.checked = this.folded;
    const restarted = this.restarted();
    if (pictureTextOf(restarted) !== pictureTextOf(this.state))
      expect(pictureOf(restarted)).toEqual(pictureOf(this.state));
  }

  /** Decides with everything gathered, without appending. Use it to let another copy append first. */
  about(...inputs: readonly I[]): Decision<I, N> {
    const first = this.decide(inputs);
    return first.needs.length === 0 ? first : this.decide(inputs, this.gather(first.needs));
  }

  /** The state of a copy that starts from this one's snapshot. */
  restarted(): S {
    return this.core.load(JSON.parse(JSON.stringify(this.core.dump(this.state))), this.nowMs);
  }

  /** Continues as a copy that was started from a snapshot and begins to lead. A new leader first checks every view. */
  restart(): this {
    this.state = this.restarted();
    for (const text of this.core.viewKeys(this.state))
      this.core.onViewWritten?.(this.state, parseViewKey(text), this.nowMs);
    return this;
  }

  view<B extends ViewBucket>(bucket: B, key: string): Omit<ViewValues[B], 'ledger'> {
    const value = this.core.view(this.state, { bucket, key });
    if (value === undefined) throw new Error(`nothing to show in ${bucket} under ${key}`);
    return value as Omit<ViewValues[B], 'ledger'>;
  }

  /** Writes views, as a shell does after each batch. A spec may delay that. */
  showViews(): void {
    for (const text of this.core.takeTouched(this.state)) {
      this.core.onViewWritten?.(this.state, parseViewKey(text), this.nowMs);
    }
  }
}

/** One line per fact: the type, then the values of the fields that the spec asks for. */
export function linesOf(facts: readonly NewFact[], ...fields: readonly string[]): readonly string[] {
  return facts.map((fact) => {
    const values = fields
      .map((field) => (fact as unknown as Record<string, unknown>)[field])
      .filter((value) => value !== undefined && value !== '');
    return [fact.type, ...values.map((value) => (typeof value === 'string' ? value : JSON.stringify(value)))].join(' ');
  });
}
