import { EMPTY_HASH, type LeaseView, type StatusView } from '#libs/contracts';
import {
  ApplierRun,
  SILENT,
  start,
  type Journal,
  type Notice,
  type Step,
  type StepAnswer,
} from '../../../services/applier/src/core/index.js';
import { MEMORY_KINDS } from '../../../services/applier/src/testing/memory-node.js';
import { Disk } from './disk.js';
import { Machine } from './machine.js';
import { NO_TROUBLE, perform, type Trouble } from './performer.js';
import type { Surroundings as World } from './surroundings.js';

const CAPABILITIES = ['action:reboot', 'action:restart', 'kind:File', 'kind:Probe'];
const HEARTBEAT_MS = 30_000;
/** As the shell has it: how long an applier may say nothing. */
const HUNG_SHARE = 1 / 6;
const SHORTEST_HUNG_MS = 10_000;

/** How an applier ends; one that hangs is killed by its guard. */
type Death = 'killed' | 'torn' | 'hung';

/** A machine with an applier: the machine lasts, the applier can be killed between any two steps. */
export class SimNode {
  disk: Disk;
  readonly machine: Machine;
  connected = true;
  /** Switched off for good. */
  scrapped = false;
  bootId = 'boot-1';
  /** By how much its wall clock is wrong. */
  wallSkewMs = 0;
  trouble: Trouble = NO_TROUBLE;
  /**
   * The lease that an old copy of its disk was in the middle of: it is rolled back, no matter who has drained since.
   */
  revived: string | undefined;
  /** What was there before Sluice. */
  readonly originals = new Map([['/etc/app', 'ok original']]);
  private applier: ApplierRun | undefined;
  /** Ends the wait that is under way. */
  private rouse = (): void => undefined;
  private fated:
    | { steps: number; readonly how: Death; readonly untilMs?: number; readonly onDeath: () => void }
    | undefined;
  /** A guard rolls back in the place of its applier, and has no bus. */
  private guarding = false;
  private startsAgain = false;
  private isHung = false;

  constructor(
    readonly world: World,
    readonly name: string,
    public labels: Readonly<Record<string, string>>,
    readonly fresh: boolean,
    private readonly skewMs: number,
  ) {
    this.disk = new Disk(name, this.originals);
    this.machine = new Machine(this);
  }

  get alive(): boolean {
    return this.applier !== undefined;
  }

  /** Milliseconds since boot, by the machine's own clock. */
  get bootMs(): number {
    return this.world.clock.nowMs + this.skewMs;
  }

  get journal(): Journal {
    return this.disk.readJournal();
  }

  start(): void {
    // It waits until the guard lets go of the state folder.
    if (this.guarding) this.startsAgain = true;
    if (this.alive || this.scrapped) return;
    this.world.trace(() => `${this.name} starts`);
    const applier = this.begin();
    this.beat(applier);
  }

  private begin(): ApplierRun {
    const settings = { kinds: MEMORY_KINDS, emptyHash: EMPTY_HASH, readEveryMs: 60_000, driftCheckMs: 120_000 };
    const self = { labels: this.labels, capabilities: CAPABILITIES, version: '1', fresh: this.fresh };
    const random = this.world.chance.whole(1, 4_000_000_000);
    const state = start(settings, self, this.journal, {
      bootId: this.bootId,
      nowMs: this.bootMs,
      random,
      hang: this.disk.hang,
    });
    const applier = new ApplierRun(
      state,
      () => this.bootMs,
      SILENT,
      () => this.rouse(),
    );
    this.applier = applier;
    this.run(applier, applier.steps());
    return applier;
  }

  kill(): void {
    this.fated = undefined;
    this.applier = undefined;
    [this.guarding, this.startsAgain, this.isHung] = [false, false, false];
    this.world.trace(() => `${this.name} killed`);
  }

  reboot(): void {
    this.kill();
    this.bootId = `boot-${Number(this.bootId.slice(5)) + 1}`;
    this.machine.booted();
  }

  /** Switched off for good; nobody says so. */
  scrap(): void {
    this.kill();
    this.scrapped = true;
  }

  /** A new disk: neither journal nor files of before. */
  lose(): void {
    this.replaceDisk(new Disk(this.name, this.originals));
  }

  /** Another disk takes the place of this one: an empty one, or an old copy. */
  replaceDisk(disk: Disk): void {
    if (this.alive) this.kill();
    this.disk = disk;
    this.revived = this.journal.work?.lease;
    this.machine.booted();
    this.world.trace(() => `${this.name} has another disk`);
  }

  /** Dies in the middle of what it does: after so many steps more, perhaps in the middle of writing its journal. */
  dieAfter(steps: number, how: 'killed' | 'torn', onDeath: () => void): void {
    this.fated = { steps, how, onDeath };
  }

  /** Hangs in a change, after so many steps more; at that time no more. */
  hangAfter(steps: number, untilMs: number, onDeath: () => void): void {
    this.fated = { steps, how: 'hung', untilMs, onDeath };
  }

  private dies(step: Step): boolean {
    const { fated } = this;
    const torn = step.do === 'write-journal' ? step.journal : undefined;
    if (fated === undefined || this.guarding || fated.steps-- > 0 || (fated.how === 'torn' && torn === undefined))
      return false;
    if (fated.how === 'hung') return this.world.clock.nowMs < (fated.untilMs ?? 0) && this.hangs(step, fated.onDeath);
    if (fated.how === 'torn' && torn !== undefined) {
      this.disk.tearJournal(torn);
      this.world.fire('torn-journals');
    }
    this.kill();
    fated.onDeath();
    return true;
  }

  /** In a change only: what hangs at rest holds nothing that was not confirmed. It takes no step any more. */
  private hangs(step: Step, onDeath: () => void): boolean {
    const { applier, world } = this;
    const lease = applier?.lease;
    if (applier === undefined || lease === undefined) return false;
    this.fated = undefined;
    this.isHung = true;
    world.trace(() => `${this.name} hangs in ${step.do}`);
    world.onHang(this);
    world.fire('hung-appliers');
    if (world.mutant?.guardSleeps === true) return true;
    const hungMs = Math.max(SHORTEST_HUNG_MS, (this.journal.work?.applyMs ?? 0) * HUNG_SHARE);
    world.clock.after(hungMs, () => {
      if (applier !== this.applier) return;
      this.kill();
      const reason = `the applier did not respond in the step ${step.do}, so its guard killed it`;
      this.disk.hang = { lease, fault: step.do === 'run-probes' ? 'content' : 'node', reason };
      onDeath();
      // An applier that was started again may be faster.
      world.clock.after(world.delayMs(), () => this.rollBackAsGuard());
    });
    return true;
  }

  /** The applier has its turn again, if it was not started by then. */
  private guardEnds(): void {
    const { startsAgain } = this;
    this.kill();
    if (startsAgain) this.start();
  }

  private rollBackAsGuard(): void {
    if (this.alive || this.scrapped || this.journal.work === undefined) return;
    this.world.trace(() => `the guard of ${this.name} rolls back`);
    this.guarding = true;
    this.begin();
  }

  relabel(labels: Readonly<Record<string, string>>): void {
    this.labels = labels;
    this.hear({ heard: 'self', labels, capabilities: CAPABILITIES });
  }

  pushed(lease: LeaseView | undefined, status: StatusView | undefined): void {
    if (!this.connected) return;
    if (status !== undefined) this.hear({ heard: 'status', status });
    if (lease !== undefined) this.hear({ heard: 'lease', lease });
  }

  disconnect(): void {
    this.connected = false;
  }

  reconnect(): void {
    this.connected = true;
    this.hear({ heard: 'connected' });
  }

  private hear(notice: Notice): void {
    if (!this.guarding) this.applier?.hear(notice);
  }

  private beat(applier: ApplierRun): void {
    if (applier !== this.applier) return;
    if (this.connected && !this.isHung) this.world.alive(this.name);
    this.world.clock.after(HEARTBEAT_MS, () => this.beat(applier));
  }

  /** Carries out step after step; before each of them the applier may be killed. */
  private run(applier: ApplierRun, steps: ReturnType<ApplierRun['steps']>, outcome?: StepAnswer): void {
    const { done, value: step } = steps.next(outcome);
    if (done === true) return;
    const isWait = step.do === 'wait';
    let begun = false;
    const begin = (): void => {
      if (begun || applier !== this.applier) return;
      begun = true;
      if (this.guarding && this.journal.work === undefined) return this.guardEnds();
      if (isWait) return this.run(applier, steps);
      if (!this.dies(step)) this.run(applier, steps, perform(this.guarding ? withoutBus(this) : this, step));
    };
    if (isWait) this.rouse = begin;
    this.world.clock.after(isWait ? step.untilMs - this.bootMs : this.world.delayMs(), begin);
  }
}

/** The node as a guard sees it. */
const withoutBus = (node: SimNode): SimNode => Object.create(node, { connected: { value: false } }) as SimNode;
