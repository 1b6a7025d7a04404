import { setImmediate as untilOthersRan } from 'node:timers/promises';

/** Monotonic milliseconds: for deadlines and durations, never to show. */
export const monotonicMs = (): number => performance.now();

/** The wall-clock time as facts store it: RFC 3339 in UTC with milliseconds. */
export const wallTime = (): string => new Date().toISOString();

const SLICE_MS = 20;

/** Cuts long work into slices. Other work in this process runs between two of them. */
export class Slices {
  private untilMs: number;

  constructor(private readonly sliceMs = SLICE_MS) {
    this.untilMs = monotonicMs() + sliceMs;
  }

  /** Called where the work may be interrupted. Returns undefined until the slice is used up. */
  pause(): Promise<void> | undefined {
    return monotonicMs() < this.untilMs ? undefined : this.yieldLoop();
  }

  private async yieldLoop(): Promise<void> {
    await untilOthersRan();
    this.untilMs = monotonicMs() + this.sliceMs;
  }
}
