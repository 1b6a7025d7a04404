import { advance, hear, nextStep, type Heard, type State } from '../core/index.js';
import type { Performer } from './performer.js';
import type { Clock, Log } from './ports.js';
import { logStep } from './step-log.js';

const DISK_FIRST_MS = 1_000;
const DISK_LAST_MS = 60_000;
/** Node's timers end at 24 days; the core looks again sooner anyway. */
const LONGEST_SLEEP_MS = 60_000;

/** Asks the core for the next step, carries it out, tells the core, and so on until it is stopped. */
export class Runner {
  private wake: (() => void) | undefined;
  private woken = false;
  private stopping = false;
  private diskFailures = 0;

  constructor(
    private state: State,
    private readonly performer: Performer,
    private readonly clock: Clock,
    private readonly log: Log,
  ) {}

  get journal(): State['journal'] {
    return this.state.journal;
  }

  hear(heard: Heard): void {
    this.state = hear(this.state, heard, this.clock());
    this.rouse();
  }

  /** Ends after the step that is under way; what is unfinished stays in the journal. */
  stop(): void {
    this.stopping = true;
    this.rouse();
  }

  async run(): Promise<void> {
    while (!this.stopping) {
      const nowMs = this.clock();
      const step = nextStep(this.state, nowMs);
      if (step.do === 'wait') {
        await this.sleep(step.untilMs - nowMs);
        continue;
      }
      const before = this.state;
      try {
        const outcome = await this.performer.perform(step);
        this.diskFailures = 0;
        if (this.stopping && step.do !== 'write-journal') return;
        this.state = advance(this.state, step, outcome, this.clock());
        logStep(this.log, before, step, outcome);
      } catch (error) {
        this.log.error(
          { node: this.state.journal.node, step: step.do, error: (error as Error).message },
          'the state folder fails; trying again',
        );
        await this.sleep(Math.min(DISK_LAST_MS, DISK_FIRST_MS * 2 ** this.diskFailures++));
      }
    }
  }

  private sleep(ms: number): Promise<void> {
    if (this.woken || this.stopping) {
      this.woken = false;
      return Promise.resolve();
    }
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.rouse(), Math.max(1, Math.min(ms, LONGEST_SLEEP_MS)));
      this.wake = () => {
        clearTimeout(timer);
        this.wake = undefined;
        resolve();
      };
    });
  }

  private rouse(): void {
    if (this.wake !== undefined) this.wake();
    else this.woken = true;
  }
}
