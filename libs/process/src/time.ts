import { setImmediate as untilOthersRan } from 'node:timers/promises';

/** Monotonic milliseconds: for deadlines and distances, never for showing. */
export const monotonicMs = (): number => performance.now();

/** The time of day as facts carry it: RFC 3339 in UTC with milliseconds. */
export const wallTime = (): string => new Date().toISOString();

const SLICE_MS = 20;

/** Cuts long work into slices: whatever else waits in this process has its turn between two of them. */
export class Slices {
  private untilMs: number;

  constructor(private readonly sliceMs = SLICE_MS) {
    this.untilMs = monotonicMs() + sliceMs;
  }

  /** Called where the work may be interrupted; undefined while the slice lasts. */
  pause(): Promise<void> | undefined {
    return monotonicMs() < this.untilMs ? undefined : this.giveWay();
  }

  private async giveWay(): Promise<void> {
    await untilOthersRan();
    this.untilMs = monotonicMs() + this.sliceMs;
  }
}
