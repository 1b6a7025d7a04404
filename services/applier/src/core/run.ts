import type { Config } from '#libs/contracts';
import { advance } from './advance.js';
import { nextStep } from './next-step.js';
import { mayBeWrittenLater, type Journal } from './journal.js';
import { hear } from './notices.js';
import { type Log, type Notice, type Outcome, type Refusal, type Step, UNREACHABLE } from './ports.js';
import { inHand, leaseAtWork, type State } from './state.js';

const AGAIN_FIRST_MS = 1_000;
const AGAIN_LAST_MS = 60_000;
/** Node.js timers are limited to 24 days. The core decides again sooner anyway. */
const LONGEST_WAIT_MS = 60_000;

/** The outcome of a step. An error is a failure that is not among the outcomes of the step. */
export type StepAnswer = Outcome | typeof UNREACHABLE | Error;

/** One run of an applier, from reading its journal until it is stopped or killed. */
export class ApplierRun {
  private woken = false;
  private stopping = false;
  private retiring = false;
  private failures = 0;

  constructor(
    private state: State,
    /** Milliseconds of CLOCK_BOOTTIME. */
    private readonly clock: () => number,
    private readonly log: Log,
    /** Ends a `wait` that is under way. */
    private readonly rouse: () => void,
  ) {}

  get journal(): State['journal'] {
    return this.state.journal;
  }

  /** The config in force, if it is loaded. */
  get config(): Config | undefined {
    return inHand(this.state, this.state.journal.inForce);
  }

  /** The lease that the applier works on. */
  get lease(): string | undefined {
    return leaseAtWork(this.state);
  }

  hear(notice: Notice): void {
    this.state = hear(this.state, notice, this.clock());
    this.wake();
  }

  /** Stops after the current step. Unfinished work stays in the journal. */
  stop(): void {
    this.stopping = true;
    this.wake();
  }

  /** Stops once no lease is in progress: one that has begun is finished or rolled back first. */
  retire(): void {
    this.retiring = true;
    this.wake();
  }

  /** The steps to carry out, one after another. */
  *steps(): Generator<Step, void, StepAnswer> {
    while (!this.stopping && !(this.retiring && this.journal.work === undefined)) {
      const step = nextStep(this.state, this.clock());
      if (step.do === 'wait') {
        yield* this.wait(step.untilMs);
        continue;
      }
      const outcome = yield step;
      if (outcome instanceof Error) {
        this.log.error(
          { node: this.journal.node, step: step.do, error: outcome.message },
          'the step failed; trying again',
        );
        yield* this.wait(this.clock() + Math.min(AGAIN_LAST_MS, AGAIN_FIRST_MS * 2 ** this.failures++));
        continue;
      }
      this.failures = 0;
      if (this.stopping && step.do !== 'write-journal') return;
      const before = this.state;
      this.state = advance(before, step, outcome, this.clock());
      logStep(this.log, before, step, outcome);
    }
  }

  private *wait(untilMs: number): Generator<Step, void> {
    const nowMs = this.clock();
    if (!this.woken && !this.stopping)
      yield { do: 'wait', untilMs: nowMs + Math.max(1, Math.min(untilMs - nowMs, LONGEST_WAIT_MS)) };
    this.woken = false;
  }

  private wake(): void {
    this.woken = true;
    this.rouse();
  }
}

/** Logs what operators want to see: a change that starts, rolls back or ends. */
function logStep(log: Log, before: State, step: Step, outcome: Outcome | typeof UNREACHABLE): void {
  const node = before.journal.node;
  if (step.do === 'report' && outcome !== UNREACHABLE) {
    const { kind, lease, change, verdict, seq } = step.report;
    log.info({ node, kind, lease, change, verdict, seq }, 'reported');
  }
  if (step.do !== 'write-journal') return;
  if (isRefused(outcome) && !logUnwritten(log, before, step.journal, outcome.reason)) return;
  const { work, lastDealt, inForce } = step.journal;
  if (work !== undefined && work.phase !== before.journal.work?.phase) {
    const fields = { node, lease: work.lease, change: work.change, from: work.from, to: work.to };
    if (work.phase === 'forward') log.info(fields, 'change started');
    if (work.phase === 'confirming') log.warn(fields, 'the machine restarted; checking whether the change holds');
    if (work.phase === 'rolling-back') log.warn({ ...fields, reason: work.failure.reason }, 'rolling back');
  }
  if (lastDealt !== undefined && lastDealt.lease !== before.journal.lastDealt?.lease) {
    const fields = { node, ...lastDealt, hash: inForce, restored: step.journal.sound };
    if (step.journal.sound) log.info(fields, 'lease finished');
    else log.error(fields, 'degraded: rollback failed; trying again');
  }
  if (step.journal.sound && !before.journal.sound)
    log.info({ node, hash: inForce }, 'recovered: the rollback succeeded');
  if (step.journal.incarnation !== before.journal.incarnation)
    log.info({ node, incarnation: step.journal.incarnation }, 'new incarnation started');
}

const isRefused = (outcome: Outcome | typeof UNREACHABLE): outcome is Refusal =>
  typeof outcome === 'object' && 'fault' in outcome;

/** Logs that the journal could not be written, and whether the work continues. */
function logUnwritten(log: Log, { journal }: State, next: Journal, error: string): boolean {
  const goesOn = mayBeWrittenLater(journal.work, next.work);
  const then = goesOn ? 'continuing, and writing it later' : 'trying again';
  log.error({ node: journal.node, error }, `the journal cannot be written; ${then}`);
  return goesOn;
}
