import { monotonicMs } from './time.js';

/** How often the time is counted, and how much of a longer pause counts. */
const STEP_MS = 500;

/**
 * A time limit of which a pause of this process uses up little. Timers run before what has arrived meanwhile is read.
 * So after a pause of ten seconds, each answer that should take no longer than ten would count as missing.
 */
export class RunningTime {
  private readonly ending = new AbortController();
  private timer: NodeJS.Timeout | undefined;
  private countedMs = 0;
  private lastMs = monotonicMs();

  constructor(private readonly limitMs: number) {
    this.awaitStep();
  }

  /** Aborts when the time is over, with a TimeoutError. */
  get signal(): AbortSignal {
    return this.ending.signal;
  }

  /** How much of the time is over. */
  get ms(): number {
    return this.countedMs + Math.min(STEP_MS, monotonicMs() - this.lastMs);
  }

  /** The time is not needed any more. */
  end(): void {
    clearTimeout(this.timer);
  }

  private awaitStep(): void {
    const stepMs = Math.min(STEP_MS, Math.max(1, Math.ceil(this.limitMs - this.countedMs)));
    this.timer = setTimeout(() => this.step(), stepMs).unref();
  }

  private step(): void {
    this.countedMs = this.ms;
    this.lastMs = monotonicMs();
    if (this.countedMs < this.limitMs) return this.awaitStep();
    this.ending.abort(new DOMException('The operation was aborted due to timeout', 'TimeoutError'));
  }
}
