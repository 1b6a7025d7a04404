import { EMPTY_HASH } from '#libs/contracts';
import {
  ApplierRun,
  CALL_TIMEOUT_MS,
  LostTargetError,
  Ownership,
  SILENT,
  start,
  type Journal,
  type Notice,
  type Step,
  type StepAnswer,
  type StepOf,
} from '../../../services/applier/src/core/index.js';
import { NO_ANSWER } from '../../../services/applier/src/testing/memory-node.js';
import { Disk } from './disk.js';
import { JournalServer } from './journal-server.js';
import { PausableProcess } from './pausable-process.js';
import { driftOf, perform, probed, unavailableBecause, type Trouble } from './performer.js';
import { HEARTBEAT_MS, KINDS } from './sim-node.js';
import type { TargetHost } from './target-host.js';
import { firstJournal, JOURNAL_TEXT, TARGET_BOOT } from './target-journal.js';

/** As in the shell: how long to wait after a failed claim, and after another copy has taken over. */
const CLAIM_AGAIN_MS = 1_000;
const LOST_AGAIN_MS = 6_000;

/** A step that changes the target. */
type WriteStep = StepOf<'apply' | 'restore' | 'act'>;
const isWrite = (step: Step): step is WriteStep => step.do === 'apply' || step.do === 'restore' || step.do === 'act';

/** Actions that need nothing from a target. */
const FREE_ACTIONS: readonly string[] = ['none', 'drain'];

/** Every second target is like another fleet: its copies do not wait for the end of a lease. */
const isRepeatable = (node: string): boolean => Number(/\d+/.exec(node)?.[0]) % 2 === 1;

/** One claim of the target, and the applier that runs after it. */
interface Run {
  applier?: ApplierRun;
  ownership?: Ownership;
  steps?: ReturnType<ApplierRun['steps']>;
}

/**
 * A copy of the applier of one target. What it has sent arrives, whatever becomes of it. Who owns the target is decided
 * by the code that ships.
 */
export class TargetCopy extends PausableProcess {
  connected = true;
  /** Until then it believes that it leads, whatever the election says. */
  stubbornUntilMs = 0;
  readonly disk: Disk;
  private readonly journals: JournalServer;
  private leads = false;
  private run: Run | undefined;
  private endWait = (): void => undefined;

  constructor(
    private readonly target: TargetHost,
    readonly index: number,
    /** The error of its clock. */
    private readonly skewMs: number,
  ) {
    super(`${target.name}/${index}`, target.world.clock);
    this.journals = new JournalServer(target, this);
    this.disk = new Disk(target.name, new Map());
    this.disk.files = target.disk.files;
  }

  // ---- what the performer of steps sees ----

  get name(): string {
    return this.target.name;
  }

  get world(): TargetHost['world'] {
    return this.target.world;
  }

  get machine(): TargetHost['machine'] {
    return this.target.machine;
  }

  get kept(): TargetHost['kept'] {
    return this.target.kept;
  }

  get inversion(): TargetHost['inversion'] {
    return this.target.inversion;
  }

  get wallSkewMs(): number {
    return this.target.wallSkewMs;
  }

  /** Its own disk is never full: only the target's. */
  get trouble(): Trouble {
    return { ...this.target.trouble, full: false };
  }

  /** The time of the server, as this copy knows it. */
  get bootMs(): number {
    return this.target.bootMs + this.skewMs;
  }

  // ---- what may happen to it ----

  /** It can lead. */
  get isServing(): boolean {
    return this.alive && this.connected && !this.isPaused;
  }

  get isLeading(): boolean {
    return this.leads;
  }

  protected override get isRollingBack(): boolean {
    const journal = this.run?.applier?.journal;
    return journal !== undefined && (!journal.sound || journal.work?.phase === 'rolling-back');
  }

  override start(): void {
    if (this.alive || this.target.scrapped) return;
    super.start();
    this.world.trace(() => `${this.process ?? ''} starts`);
    this.begin();
  }

  override kill(): void {
    this.world.trace(() => `${this.process ?? ''} killed`);
    super.kill();
    [this.run, this.leads] = [undefined, false];
    this.target.disturbed();
  }

  override pause(ms: number): void {
    this.world.trace(() => `${this.process ?? ''} paused for ${Math.round(ms)} ms`);
    super.pause(ms);
    this.target.disturbed();
  }

  lead(): void {
    this.leads = true;
    this.begin();
  }

  /** A lease that has begun is finished, or rolled back, before another copy gets the target. */
  follow(): void {
    if (!this.leads) return;
    this.leads = false;
    this.run?.applier?.retire();
  }

  hear(notice: Notice): void {
    this.after(0, () => this.run?.applier?.hear(notice));
  }

  /** It has lost its folder with configs. */
  loseConfigs(): void {
    this.disk.configs.clear();
  }

  // ---- what it does ----

  /** Claims the target, unless that is done or under way. */
  private begin(): void {
    const { process } = this;
    if (!this.leads || process === undefined || this.run !== undefined) return;
    const run: Run = {};
    this.run = run;
    const { name: node } = this;
    const claim = Ownership.claim({
      node,
      owner: process,
      codec: JOURNAL_TEXT,
      first: firstJournal(node),
      isRepeatable: isRepeatable(node),
    });
    this.journals.carry(
      claim,
      (ownership) => this.claimed(run, ownership),
      () => {
        this.run = undefined;
        this.after(CLAIM_AGAIN_MS, () => this.begin());
      },
      true,
    );
  }

  private claimed(run: Run, ownership: Ownership): void {
    const { journal } = ownership;
    run.ownership = ownership;
    if (!this.leads) return this.giveUp(run, journal);
    // One that never answered does not join.
    if (journal.incarnation === 0 && unavailableBecause(this.target.trouble) !== undefined)
      return this.after(CLAIM_AGAIN_MS, () => this.claimed(run, ownership));
    this.world.trace(() => `${this.process ?? ''} has taken over`);
    const settings = {
      kinds: KINDS,
      emptyHash: EMPTY_HASH,
      readEveryMs: 300_000,
      driftCheckMs: 60_000,
      isGuard: false,
    };
    const { self } = this.target;
    const random = this.target.chance.integer(1, 4_000_000_000);
    const state = start(settings, self, journal, { bootId: TARGET_BOOT, nowMs: this.bootMs, random });
    const applier = new ApplierRun(
      state,
      () => this.bootMs,
      SILENT,
      () => this.endWait(),
    );
    Object.assign(run, { applier, steps: applier.steps() });
    this.goOn(run);
    this.beat(run);
  }

  private beat(run: Run): void {
    if (run !== this.run) return;
    this.look(run);
    if (this.connected && unavailableBecause(this.target.trouble) === undefined) this.world.alive(this.name);
    this.after(HEARTBEAT_MS, () => this.beat(run));
  }

  /** As in the shell: it asks now and then, and after each call without an answer. */
  private look({ applier }: Run): void {
    const reason = unavailableBecause(this.target.trouble);
    if (reason !== undefined) applier?.hear({ kind: 'unavailable', reason });
    else if (applier?.journal.report?.unavailable !== undefined) applier.hear({ kind: 'answers' });
  }

  private goOn(run: Run, outcome?: StepAnswer): void {
    const { done, value: step } = run.steps?.next(outcome) ?? { done: true, value: undefined };
    if (done === true || step === undefined) return this.giveUp(run, run.applier?.journal);
    let started = false;
    const begin = (): void => {
      if (started || run !== this.run) return;
      started = true;
      this.endWait = () => undefined;
      if (step.do === 'wait') return this.goOn(run);
      this.perform(run, step, (answer) => {
        if (answer === NO_ANSWER) this.look(run);
        this.goOn(run, answer);
      });
    };
    if (step.do === 'wait') this.endWait = () => this.after(0, begin);
    this.after(step.do === 'wait' ? step.untilMs - this.bootMs : this.target.delayMs(), begin);
  }

  /** As in the shell: a copy that stops hands the target over. One that should still have it claims it again. */
  private giveUp(run: Run, journal: Journal | undefined): void {
    const end = (): void => {
      this.run = undefined;
      this.begin();
    };
    if (run.ownership === undefined || journal === undefined) return end();
    if (run.ownership.isLost) return this.after(LOST_AGAIN_MS, end);
    this.journals.carry(run.ownership.handOver(journal), end, end);
  }

  private perform(run: Run, step: Exclude<Step, { do: 'wait' }>, then: (outcome: StepAnswer) => void): void {
    const refuse = (error: Error): void => {
      const isLost = error instanceof LostTargetError;
      if (isLost) this.lost(run);
      then({ fault: isLost || step.do === 'write-journal' ? 'node' : 'unreachable', reason: error.message });
    };
    const { ownership } = run;
    if (ownership === undefined) return;
    if (step.do === 'write-journal')
      return this.journals.carry(ownership.write(step.journal), () => then(undefined), refuse);
    if (step.do === 'start-probes') {
      const { probes, round } = step;
      this.after(this.target.delayMs(), () => this.hear({ kind: 'probed', round, results: probed(this, probes) }));
      return then(undefined);
    }
    if (step.do === 'start-drift-check') {
      const { round } = step;
      this.after(this.target.delayMs(), () => this.hear({ kind: 'compared', round, differences: driftOf(this, step) }));
      return then(undefined);
    }
    if (step.do === 'check' && step.actions.some(({ kind }) => kind === 'reboot'))
      return then({ refusals: [{ fault: 'node', reason: 'this target cannot reboot' }], shared: {} });
    if (!isWrite(step)) return then(perform(this, step));
    if (this.isDone(step)) return then(undefined);
    const leftMs = step.do === 'apply' ? step.untilMs - this.bootMs : CALL_TIMEOUT_MS;
    if (leftMs <= 0) return then({ fault: 'unreachable', reason: 'the time is over' });
    if (this.world.mutant?.fencesNothing === true) return this.send(step, CALL_TIMEOUT_MS, then);
    this.journals.carry(
      ownership.fence(),
      (untilMs) => this.send(step, Math.min(leftMs, untilMs - this.bootMs), then),
      refuse,
    );
  }

  private isDone(step: WriteStep): boolean {
    if (step.do === 'act') return FREE_ACTIONS.includes(step.action.kind);
    if (this.target.trouble.gone) return false;
    return this.disk.files.differences([step]).length === 0;
  }

  /** What was sent arrives in this time, whatever becomes of the copy; perhaps without an answer in time. */
  private send(step: WriteStep, timeoutMs: number, then: (outcome: StepAnswer) => void): void {
    const { target, process = '' } = this;
    if (timeoutMs <= 0) return then(NO_ANSWER);
    const { thereMs, backMs } = target.transitMs(timeoutMs);
    let outcome: StepAnswer;
    this.world.clock.after(thereMs, () => (outcome = target.arrive(process, step)));
    const inTime = thereMs + backMs < timeoutMs;
    this.after(inTime ? thereMs + backMs : timeoutMs, () => then(inTime ? outcome : NO_ANSWER));
  }

  private lost(run: Run): void {
    this.world.trace(() => `${this.process ?? ''} has lost the target`);
    this.world.fire(this.wasPaused ? 'paused-copies' : 'two-owners');
    this.wasPaused = false;
    run.applier?.stop();
  }
}
