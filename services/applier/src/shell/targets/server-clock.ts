import type { Clock } from '../ports.js';

/** How much the clock follows the server's at once. A server whose clock jumps must not end leases. */
const MOST_STEP_MS = 1_000;
const EVERY_MS = 60_000;

/**
 * The time of the NATS server, in milliseconds. Journals of targets contain times, and another copy, on another
 * machine, continues with them. It never runs backwards.
 */
export class ServerClock {
  private offsetMs = 0;
  private lastMs = 0;
  private timer: NodeJS.Timeout | undefined;

  private constructor(
    /** The server's time now. */
    private readonly ask: () => Promise<number>,
    private readonly now: Clock,
  ) {}

  static async start(ask: () => Promise<number>, now: Clock = () => performance.now()): Promise<ServerClock> {
    const clock = new ServerClock(ask, now);
    clock.offsetMs = await clock.measured();
    clock.timer = setInterval(() => void clock.follow(), EVERY_MS);
    clock.timer.unref();
    return clock;
  }

  readonly read: Clock = () => {
    this.lastMs = Math.max(this.lastMs, this.now() + this.offsetMs);
    return this.lastMs;
  };

  /** Without an answer it runs on. */
  async follow(): Promise<void> {
    try {
      const step = (await this.measured()) - this.offsetMs;
      this.offsetMs += Math.max(-MOST_STEP_MS, Math.min(MOST_STEP_MS, step));
    } catch {
      return;
    }
  }

  stop(): void {
    clearInterval(this.timer);
  }

  private async measured(): Promise<number> {
    const beganMs = this.now();
    const serverMs = await this.ask();
    return serverMs - (beganMs + this.now()) / 2;
  }
}
