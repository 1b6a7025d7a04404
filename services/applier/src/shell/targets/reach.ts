import { UnreachableError } from '../ports.js';

/** `reason`: why the target does not answer; undefined if it does. */
export type OnReachChange = (answers: boolean, reason?: string) => void;

export interface ReachOptions {
  /** A cheap call. Throws UnreachableError if the target does not answer. */
  readonly ask: () => Promise<void>;
  /** Called whenever the target begins or ceases to answer, then with the reason. */
  readonly onChange: OnReachChange;
  /** How often a target is asked. */
  readonly everyMs: number;
}

const FIRST_AGAIN_MS = 500;

/**
 * Whether a target answers. While it does not, each call fails at once: a rollback with a hundred calls must not wait
 * a hundred times. Meanwhile this asks at growing intervals.
 */
export class Reach {
  private isUp = true;
  private timer: NodeJS.Timeout | undefined;
  private againMs = FIRST_AGAIN_MS;
  private reason = '';
  private isStopped = false;

  constructor(private readonly options: ReachOptions) {}

  get answers(): boolean {
    return this.isUp;
  }

  stop(): void {
    this.isStopped = true;
    clearTimeout(this.timer);
  }

  /** Passes a call on, unless the target is known not to answer. */
  async call<T>(work: () => Promise<T>): Promise<T> {
    if (!this.isUp) throw new UnreachableError(this.reason);
    try {
      return await work();
    } catch (error) {
      // One lost answer says little: the caller reads again and goes on.
      if (error instanceof UnreachableError) await this.look();
      throw error;
    }
  }

  /** Asks now, and at intervals from then on. Returns whether the target answers. */
  async look(): Promise<boolean> {
    clearTimeout(this.timer);
    try {
      await this.options.ask();
      this.up();
    } catch (error) {
      this.down(error as Error);
    }
    return this.isUp;
  }

  private up(): void {
    this.againMs = FIRST_AGAIN_MS;
    this.again(this.options.everyMs);
    if (this.isUp) return;
    this.isUp = true;
    this.options.onChange(true);
  }

  private down({ message }: Error): void {
    this.reason = message;
    this.again(this.againMs);
    this.againMs = Math.min(this.againMs * 2, this.options.everyMs);
    if (!this.isUp) return;
    this.isUp = false;
    this.options.onChange(false, message);
  }

  private again(ms: number): void {
    clearTimeout(this.timer);
    if (!this.isStopped) this.timer = setTimeout(() => void this.look(), ms);
  }
}
