import { REMOTE_APPLIER, type LeaseView, type StatusView } from '#libs/contracts';
import type { Journal, Notice, Self, StepAnswer, StepOf } from '../../../services/applier/src/core/index.js';
import { MemoryFiles } from '../../../services/applier/src/testing/memory-node.js';
import { Chance } from './chance.js';
import { perform, unavailableBecause } from './performer.js';
import { SimNode } from './sim-node.js';
import type { Surroundings as World } from './surroundings.js';
import { TargetCopy } from './target-copy.js';
import type { TargetHost } from './target-host.js';
import { journalIn, TARGET_BOOT } from './target-journal.js';

/** How often the copies elect a leader. */
const ELECT_MS = 5_000;
/** The clocks of two copies differ by less than what the product assumes. */
const MOST_SKEW_MS = 1_500;

/** What is on the target. The originals are in the journal, so nothing of it is ever tidied up there. */
class TargetFiles extends MemoryFiles {
  override tidy(): void {
    return undefined;
  }
}

/**
 * A target elsewhere, such as a network function, which several copies of an applier share. Its journal is a value in a
 * bucket. It never reboots, and what is on it survives everything that happens to the copies.
 */
export class SimTarget extends SimNode implements TargetHost {
  override readonly canReboot = false;
  readonly chance: Chance;
  readonly copies: readonly TargetCopy[];
  readonly kept = new Map<string, string>();
  /** Since when one and the same copy could work on it, undisturbed. */
  ableSinceMs: number | undefined;
  private elected: TargetCopy | undefined;
  private isElecting = false;
  private known: { readonly text: string; readonly journal: Journal } | undefined;

  constructor(world: World, name: string, labels: Readonly<Record<string, string>>, copies: number) {
    const chance = new Chance(world.seed, `target ${name}`);
    super(world, name, labels, false, chance.integer(0, 10_000_000));
    this.chance = chance;
    this.isTarget = true;
    this.bootId = TARGET_BOOT;
    this.disk.files = new TargetFiles(this.originals, this.disk.files.digestOf);
    this.copies = Array.from({ length: copies }, (_, i) => new TargetCopy(this, i, chance.next() * MOST_SKEW_MS));
  }

  get self(): Self {
    return { labels: this.labels, capabilities: this.capabilities, version: '1', fresh: false };
  }

  override get alive(): boolean {
    return !this.scrapped && this.copies.every((copy) => copy.alive);
  }

  override get journal(): Journal {
    const text = this.world.bus.journals.get(this.name)?.text ?? '';
    if (this.known?.text !== text) this.known = { text, journal: journalIn(this.name, text) };
    return this.known.journal;
  }

  override start(): void {
    if (this.scrapped) return;
    for (const copy of this.copies) copy.start();
    if (this.isElecting) return;
    this.isElecting = true;
    this.elect();
  }

  /** One of its copies is killed. */
  override kill(): void {
    this.chance.pick(this.copies).kill();
  }

  /** It never loses what it has, but a copy of its applier may lose its folder. */
  override lose(): void {
    this.chance.pick(this.copies).loseConfigs();
  }

  override replaceDisk(): void {
    this.lose();
  }

  override reboot(): void {
    this.machine.booted();
  }

  override scrap(): void {
    this.scrapped = true;
    for (const copy of this.copies) copy.kill();
  }

  override dieAfter(steps: number, _how: 'killed' | 'torn', onDeath: () => void): void {
    const copy = this.elected ?? this.chance.pick(this.copies);
    copy.strikeAfter(steps, () => {
      copy.kill();
      onDeath();
    });
  }

  /** An applier elsewhere has no guard: a copy that hangs is one that is paused. */
  override hangAfter(): void {
    return undefined;
  }

  override disconnect(): void {
    super.disconnect();
    for (const copy of this.copies) this.cutOff(copy);
  }

  /** The copy has no connection to the server. */
  cutOff(copy: TargetCopy): void {
    copy.connected = false;
    this.disturbed();
  }

  override reconnect(): void {
    super.reconnect();
    for (const copy of this.copies) this.connect(copy);
  }

  connect(copy: TargetCopy): void {
    copy.connected = true;
    copy.hear({ kind: 'connected', mayLag: false });
  }

  /** Nothing disturbs its copies any more. */
  calm(): void {
    for (const copy of this.copies) {
      copy.endPause();
      copy.stubbornUntilMs = 0;
      this.connect(copy);
    }
    this.start();
  }

  override pushed(lease: LeaseView | undefined, status: StatusView | undefined): void {
    for (const copy of this.copies) {
      if (!copy.connected) continue;
      if (status !== undefined) copy.hear({ kind: 'status', status });
      if (lease !== undefined) copy.hear({ kind: 'lease', lease });
    }
  }

  protected override get capabilities(): readonly string[] {
    return ['action:restart', 'kind:File', 'kind:Layer2Network', 'kind:Probe', 'kind:Vrf', REMOTE_APPLIER];
  }

  protected override notify(notice: Notice): void {
    for (const copy of this.copies) copy.hear(notice);
  }

  disturbed(): void {
    this.ableSinceMs = undefined;
  }

  // ---- what its copies use ----

  delayMs(): number {
    return this.chance.next() * this.world.conditions.delayMs;
  }

  requestMs(): number {
    const { delayMs, journalLateMs } = this.world.conditions;
    return this.chance.next() * (journalLateMs > 0 && this.chance.flip(0.3) ? journalLateMs : delayMs);
  }

  requestFate(): 'done' | 'lost' | 'answer-lost' {
    const { journalLost } = this.world.conditions;
    if (journalLost === 0 || !this.chance.flip(journalLost)) return 'done';
    this.world.fire('lagging-journals');
    return this.chance.pick(['lost', 'answer-lost']);
  }

  transitMs(timeoutMs: number): { readonly thereMs: number; readonly backMs: number } {
    const { callLate } = this.world.conditions;
    if (callLate === 0 || !this.chance.flip(callLate))
      return { thereMs: Math.min(this.delayMs(), timeoutMs / 2), backMs: this.delayMs() };
    this.world.fire('late-calls');
    return { thereMs: this.chance.next() * timeoutMs, backMs: this.chance.next() * timeoutMs };
  }

  arrive(owner: string, step: StepOf<'apply' | 'restore' | 'act'>): StepAnswer {
    this.world.trace(() => `${owner} writes to ${this.name}: ${JSON.stringify(step)}`);
    const outcome = perform(this, step);
    if (!this.trouble.gone) this.world.onTargetWrite(this, owner);
    return outcome;
  }

  store(by: string, text: string, revision: number, isClaim: boolean): number | 'overtaken' {
    const { bus, mutant } = this.world;
    const named = mutant?.overwritesJournals === true ? (bus.journals.get(this.name)?.revision ?? 0) : revision;
    const stored = bus.putJournal(this.name, text, named);
    if (stored === undefined) return 'overtaken';
    const { journal } = this;
    this.world.trace(() => `${by} writes the journal of ${this.name}: ${JSON.stringify({ ...journal, originals: 0 })}`);
    this.world.onOwned(this, { by, isClaim, isGivenUp: text.startsWith('\n'), journal });
    this.world.onJournal(this, journal);
    return stored;
  }

  /** A copy that can lead does. One that does not any more notices that, unless it is paused. */
  private elect(): void {
    const { clock } = this.world;
    if (this.elected?.isServing !== true) this.elected = this.copies.find((copy) => copy.isServing);
    for (const copy of this.copies) {
      if (copy === this.elected) copy.lead();
      else if (!copy.isPaused && copy.stubbornUntilMs <= clock.nowMs) copy.follow();
    }
    this.measure();
    this.world.onTarget(this);
    clock.after(ELECT_MS, () => this.elect());
  }

  /** Another copy is elected, and this one hands over. */
  moveOn(): void {
    this.elected = this.copies.find((copy) => copy !== this.elected && copy.isServing) ?? this.elected;
    this.disturbed();
  }

  private measure(): void {
    const isAble =
      this.elected?.isServing === true &&
      !this.copies.some((copy) => copy !== this.elected && copy.isLeading) &&
      unavailableBecause(this.trouble) === undefined &&
      !this.trouble.full &&
      this.trouble.readOnly.length === 0;
    this.ableSinceMs = isAble ? (this.ableSinceMs ?? this.world.clock.nowMs) : undefined;
  }
}
