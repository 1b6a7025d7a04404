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
  private fated: { steps: number; readonly how: 'killed' | 'torn'; readonly onDeath: () => void } | undefined;

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
    if (this.alive || this.scrapped) return;
    this.world.trace(() => `${this.name} starts`);
    const settings = { kinds: MEMORY_KINDS, emptyHash: EMPTY_HASH, readEveryMs: 60_000, driftCheckMs: 120_000 };
    const self = { labels: this.labels, capabilities: CAPABILITIES, version: '1', fresh: this.fresh };
    const random = this.world.chance.whole(1, 4_000_000_000);
    const state = start(settings, self, this.journal, { bootId: this.bootId, nowMs: this.bootMs, random });
    this.applier = new ApplierRun(
      state,
      () => this.bootMs,
      SILENT,
      () => this.rouse(),
    );
    this.run(this.applier, this.applier.steps());
    this.beat(this.applier);
  }

  kill(): void {
    this.fated = undefined;
    this.applier = undefined;
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

  private dies(step: Step): boolean {
    const { fated } = this;
    const torn = step.do === 'write-journal' ? step.journal : undefined;
    if (fated === undefined || fated.steps-- > 0 || (fated.how === 'torn' && torn === undefined)) return false;
    if (fated.how === 'torn' && torn !== undefined) {
      this.disk.tearJournal(torn);
      this.world.fire('torn-journals');
    }
    this.kill();
    fated.onDeath();
    return true;
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
    this.applier?.hear(notice);
  }

  private beat(applier: ApplierRun): void {
    if (applier !== this.applier) return;
    if (this.connected) this.world.alive(this.name);
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
      if (isWait) return this.run(applier, steps);
      if (!this.dies(step)) this.run(applier, steps, perform(this, step));
    };
    if (isWait) this.rouse = begin;
    this.world.clock.after(isWait ? step.untilMs - this.bootMs : this.world.delayMs(), begin);
  }
}
