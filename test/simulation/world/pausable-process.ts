import type { Clock } from './clock.js';

/**
 * A process that can be paused or killed between any two of its steps. What comes for a paused one is handled when it
 * continues.
 */
export abstract class PausableProcess {
  /** Identifies the current process, and no earlier one; undefined if there is none. */
  process: string | undefined;
  /** It was paused since it was started. */
  protected wasPaused = false;
  private processes = 0;
  private pausedUntilMs = 0;
  /** What it does when it continues. */
  private waiting: (() => void)[] = [];
  private fated: { steps: number; readonly strike: () => void; readonly inRollback: boolean } | undefined;

  constructor(
    private readonly title: string,
    private readonly clock: Clock,
  ) {}

  get alive(): boolean {
    return this.process !== undefined;
  }

  get isPaused(): boolean {
    return this.pausedUntilMs > this.clock.nowMs;
  }

  protected abstract get isRollingBack(): boolean;

  start(): void {
    this.processes += 1;
    this.process = `${this.title}.${this.processes}`;
  }

  kill(): void {
    [this.process, this.fated, this.pausedUntilMs, this.wasPaused] = [undefined, undefined, 0, false];
    this.waiting = [];
  }

  pause(ms: number): void {
    this.pausedUntilMs = this.clock.nowMs + ms;
    this.wasPaused = true;
    this.clock.after(ms, () => this.wake());
  }

  /** It continues now, with everything that came for it. */
  endPause(): void {
    this.pausedUntilMs = 0;
    this.clock.after(0, () => this.wake());
  }

  /** Something happens to it after this many more of its steps, or of those in which it rolls back. */
  strikeAfter(steps: number, strike: () => void, inRollback = false): void {
    this.fated = { steps, strike, inRollback };
  }

  /** Continues later in this process, unless that is killed before. */
  after(ms: number, run: () => void): void {
    const { process } = this;
    this.clock.after(ms, () => this.proceed(process, run));
  }

  private proceed(process: string | undefined, run: () => void): void {
    if (process !== this.process) return;
    const { fated } = this;
    const counts = fated !== undefined && !this.isPaused && (!fated.inRollback || this.isRollingBack);
    if (counts && fated.steps-- <= 0) {
      this.fated = undefined;
      fated.strike();
      if (process !== this.process) return;
    }
    if (this.isPaused) this.waiting.push(() => this.proceed(process, run));
    else run();
  }

  private wake(): void {
    if (this.isPaused) return;
    for (const proceed of this.waiting.splice(0)) proceed();
  }
}
