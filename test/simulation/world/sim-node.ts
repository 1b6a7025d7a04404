import { EMPTY_HASH, READS_OBJECTS, REMOTE_APPLIER, type LeaseView, type StatusView } from '#libs/contracts';
import {
  type Kinds,
  ApplierRun,
  SILENT,
  start,
  type Journal,
  type Notice,
  type Step,
  type StepAnswer,
  type StepOf,
} from '../../../services/applier/src/core/index.js';
import { MEMORY_KINDS, NO_ANSWER } from '../../../services/applier/src/testing/memory-node.js';
import { Disk } from './disk.js';
import { Machine } from './machine.js';
import {
  driftOf,
  NO_TROUBLE,
  perform,
  probed,
  takenDigest,
  unavailableBecause,
  type LaggingServer,
  type Trouble,
} from './performer.js';
import type { Surroundings as World } from './surroundings.js';

/** Kinds with references, and what they become. Machines of this world do nothing with them. */
const REFERRING_KINDS = ['Vrf', 'Layer2Network', 'CNFNAT', 'KubeObjects'];
/** What a machine can do, also if its applier runs elsewhere. */
const CAPABILITIES = [
  'action:reboot',
  'action:restart',
  READS_OBJECTS,
  ...['File', 'Probe', ...REFERRING_KINDS].map((kind) => `kind:${kind}`),
];
const RUNS_COMMANDS = 'kind:Exec';
/** Files have an owner and a mode besides their content, so leases save what they touch. */
export const KINDS: Kinds = {
  ...MEMORY_KINDS,
  snapshots: ['File'],
  entries: ({ fragments }) => fragments.filter(({ kind }) => !REFERRING_KINDS.includes(kind)),
};
export const HEARTBEAT_MS = 30_000;
/** As in the shell: how long an applier may be unresponsive. */
const HUNG_SHARE = 1 / 6;
const SHORTEST_HUNG_MS = 10_000;
/** When the time of a change is over, a restarted applier may act first. */
const GUARD_TURN_MS = 1_000;

/** How an applier ends. An applier that hangs is killed by its guard. */
type Death = 'killed' | 'torn' | 'hung';

/** A machine with an applier. The machine lasts, and the applier can be killed between any two steps. */
export class SimNode {
  disk: Disk;
  readonly machine: Machine;
  connected = true;
  /** The server that it is connected to; undefined if that has everything. */
  server: LaggingServer | undefined;
  /** When its applier started, or moved to another server. */
  contactMs = 0;
  /** Switched off for good. */
  scrapped = false;
  bootId = 'boot-1';
  /** The error of its wall clock. */
  wallSkewMs = 0;
  trouble: Trouble = NO_TROUBLE;
  /** Its applier runs elsewhere. */
  isTarget = false;
  readonly canReboot: boolean = true;
  readonly inversion = { lastMs: -1 };
  /**
   * The lease that was in progress on an old copy of its disk. It is rolled back, even if the node was drained again
   * since.
   */
  revived: string | undefined;
  /** What existed before Sluice. */
  readonly originals = new Map([['/etc/app', 'ok original']]);
  private applier: ApplierRun | undefined;
  /** Ends the current wait. */
  private endWait = (): void => undefined;
  private fated:
    | { steps: number; readonly how: Death; readonly untilMs?: number; readonly onDeath: () => void }
    | undefined;
  /** A guard rolls back in place of its applier. It has no bus. */
  private guarding = false;
  private startsAgain = false;
  private isHung = false;
  private pauseMs = 0;
  /** The last lease in which its applier was paused. */
  pausedIn: string | undefined;

  constructor(
    readonly world: World,
    readonly name: string,
    public labels: Readonly<Record<string, string>>,
    readonly fresh: boolean,
    private readonly skewMs: number,
  ) {
    this.disk = this.newDisk();
    this.machine = new Machine(this);
  }

  get alive(): boolean {
    return this.applier !== undefined;
  }

  /** Milliseconds since boot, by the clock of the machine. */
  get bootMs(): number {
    return this.world.clock.nowMs + this.skewMs;
  }

  get journal(): Journal {
    return this.disk.readJournal();
  }

  start(): void {
    // It waits until the guard releases the state folder.
    if (this.guarding) this.startsAgain = true;
    if (this.alive || this.scrapped) return;
    this.world.trace(() => `${this.name} starts`);
    this.contactMs = this.world.clock.nowMs;
    const applier = this.begin();
    this.beat(applier);
  }

  private begin(): ApplierRun {
    const settings = {
      kinds: KINDS,
      emptyHash: EMPTY_HASH,
      readEveryMs: 60_000,
      driftCheckMs: 120_000,
      isGuard: this.guarding,
    };
    const self = { labels: this.labels, capabilities: this.capabilities, version: '1', fresh: this.fresh };
    const random = this.world.chance.integer(1, 4_000_000_000);
    const state = start(settings, self, this.journal, {
      bootId: this.bootId,
      nowMs: this.bootMs,
      random,
      hang: this.disk.hang,
    });
    const isCurrent = this.world.mutant?.trustsAnyServer === true;
    const applier = new ApplierRun(
      isCurrent ? { ...state, memory: { ...state.memory, isCurrent } } : state,
      () => this.bootMs,
      SILENT,
      () => this.endWait(),
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

  /** Switched off for good, without any notice. */
  scrap(): void {
    this.kill();
    this.scrapped = true;
  }

  /** A new disk, without the previous journal and files. */
  lose(): void {
    this.replaceDisk(this.newDisk());
  }

  private newDisk(): Disk {
    const { mutant } = this.world;
    return new Disk(this.name, this.originals, mutant?.takesChangedObjects === true ? takenDigest : undefined);
  }

  /** Replaces the disk with an empty one, or with an old copy. */
  replaceDisk(disk: Disk): void {
    if (this.alive) this.kill();
    this.disk = disk;
    this.revived = this.journal.work?.lease;
    this.machine.booted();
    this.world.trace(() => `${this.name} has another disk`);
  }

  /** Dies in the middle of its work, after this many more steps, possibly during a write of its journal. */
  dieAfter(steps: number, how: 'killed' | 'torn', onDeath: () => void): void {
    this.fated = { steps, how, onDeath };
  }

  /** Hangs during a change, after this many more steps. Has no effect after `untilMs`. */
  hangAfter(steps: number, untilMs: number, onDeath: () => void): void {
    this.fated = { steps, how: 'hung', untilMs, onDeath };
  }

  /** Its applier is paused for this long in its next step of a lease, and then continues. */
  pause(ms: number): void {
    this.pauseMs = ms;
  }

  private takePause({ lease }: ApplierRun): number {
    if (this.pauseMs === 0 || lease === undefined) return 0;
    const { pauseMs } = this;
    this.pauseMs = 0;
    this.pausedIn = lease;
    this.world.fire('paused-targets');
    this.world.trace(() => `the applier of ${this.name} is paused for ${pauseMs} ms`);
    return pauseMs;
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
    this.dieWithGuard(fated.onDeath);
    return true;
  }

  /** Its guard outlives it, unless the machine restarts, and acts when the time of the change is over. */
  private dieWithGuard(onDeath: () => void): void {
    const { bootId, world } = this;
    const { work } = this.journal;
    this.kill();
    onDeath();
    if (work === undefined || work.bootId !== bootId || this.bootId !== bootId) return;
    world.onGone(this);
    if (world.mutant?.guardSleeps === true) return;
    const waitMs = Math.max(0, work.rollBackAtMs + GUARD_TURN_MS - this.bootMs);
    world.clock.after(waitMs, () => {
      if (this.bootId === bootId && this.journal.work?.lease === work.lease) this.rollBackAsGuard();
    });
  }

  /** Only during a change: an applier that hangs without work has nothing unconfirmed. It takes no further step. */
  private hangs(step: Step, onDeath: () => void): boolean {
    const { applier, world } = this;
    const lease = applier?.lease;
    if (applier === undefined || lease === undefined) return false;
    this.fated = undefined;
    this.isHung = true;
    world.trace(() => `${this.name} hangs in ${step.do}`);
    world.onGone(this);
    world.fire('hung-appliers');
    if (world.mutant?.guardSleeps === true) return true;
    const hungMs = Math.max(SHORTEST_HUNG_MS, (this.journal.work?.applyMs ?? 0) * HUNG_SHARE);
    world.clock.after(hungMs, () => {
      if (applier !== this.applier) return;
      this.kill();
      const reason = `the applier did not respond in the step ${step.do}, so its guard killed it`;
      this.disk.hang = { lease, fault: 'fault' in step ? step.fault : 'node', reason };
      onDeath();
      // A restarted applier may be faster.
      world.clock.after(world.delayMs(), () => this.rollBackAsGuard());
    });
    return true;
  }

  /** Lets the applier continue, unless it was started meanwhile. */
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
    this.notify({ kind: 'self', labels, capabilities: this.capabilities });
  }

  becomeTarget(): void {
    this.isTarget = true;
    this.relabel(this.labels);
  }

  /** It answers its applier again, and is ready. */
  answer(): void {
    if (unavailableBecause(this.trouble) === undefined) return;
    this.trouble = { ...this.trouble, gone: false, unready: undefined };
    this.notify({ kind: 'answers' });
  }

  /** It answers its applier, but is not ready. */
  becomeUnready(reason: string): void {
    this.trouble = { ...this.trouble, unready: reason };
    this.notify({ kind: 'unavailable', reason });
  }

  /** As in the shell: a target is asked now and then, and after each call without an answer. */
  private look({ journal }: ApplierRun): void {
    if (!this.isTarget) return;
    const reason = unavailableBecause(this.trouble);
    if (reason !== undefined) this.notify({ kind: 'unavailable', reason });
    else if (journal.report?.unavailable !== undefined) this.notify({ kind: 'answers' });
  }

  protected get capabilities(): readonly string[] {
    return [...CAPABILITIES, this.isTarget ? REMOTE_APPLIER : RUNS_COMMANDS];
  }

  pushed(lease: LeaseView | undefined, status: StatusView | undefined): void {
    if (!this.connected || this.server?.isCutOff === true) return;
    if (status !== undefined) this.notify({ kind: 'status', status });
    if (lease !== undefined) this.notify({ kind: 'lease', lease });
  }

  disconnect(): void {
    this.connected = false;
  }

  reconnect(): void {
    this.connected = true;
    this.notify({ kind: 'connected', mayLag: false });
  }

  /** It loses its connection, and connects to this server. */
  moveTo(server: LaggingServer | undefined): void {
    this.server = server;
    this.contactMs = this.world.clock.nowMs;
    this.notify({ kind: 'connected', mayLag: this.world.mutant?.trustsAnyServer !== true });
  }

  protected notify(notice: Notice): void {
    if (!this.guarding) this.applier?.hear(notice);
  }

  private beat(applier: ApplierRun): void {
    if (applier !== this.applier) return;
    if (!this.isHung) this.look(applier);
    const isHeard = this.connected && this.server?.isCutOff !== true && !this.isHung;
    if (isHeard && unavailableBecause(this.trouble) === undefined) this.world.alive(this.name);
    this.world.clock.after(HEARTBEAT_MS, () => this.beat(applier));
  }

  /** The results of probes in the background arrive later. */
  private probe(applier: ApplierRun, { probes, round }: StepOf<'start-probes'>): void {
    this.world.clock.after(this.world.delayMs(), () => {
      if (applier === this.applier) this.notify({ kind: 'probed', round, results: probed(this, probes) });
    });
  }

  /** It reads the node some time after it began. */
  private checkDrift(applier: ApplierRun, step: StepOf<'start-drift-check'>): void {
    this.world.clock.after(this.world.delayMs(), () => {
      if (applier === this.applier)
        this.notify({ kind: 'compared', round: step.round, differences: driftOf(this, step) });
    });
  }

  /** Carries out one step after another. The applier may be killed before each of them. */
  private run(applier: ApplierRun, steps: ReturnType<ApplierRun['steps']>, outcome?: StepAnswer): void {
    const { done, value: step } = steps.next(outcome);
    if (done === true) return;
    const isWait = step.do === 'wait';
    let started = false;
    const begin = (): void => {
      if (started || applier !== this.applier) return;
      started = true;
      if (this.guarding && this.journal.work === undefined) return this.guardEnds();
      if (isWait) return this.run(applier, steps);
      if (step.do === 'start-probes') this.probe(applier, step);
      if (step.do === 'start-drift-check') this.checkDrift(applier, step);
      if (this.dies(step)) return;
      const answer = perform(this.guarding ? withoutBus(this) : this, step);
      if (answer === NO_ANSWER) this.look(applier);
      this.run(applier, steps, answer);
    };
    if (isWait) this.endWait = begin;
    this.world.clock.after(isWait ? step.untilMs - this.bootMs : this.world.delayMs() + this.takePause(applier), begin);
  }
}

/** The node as a guard sees it. */
const withoutBus = (node: SimNode): SimNode => Object.create(node, { connected: { value: false } }) as SimNode;
