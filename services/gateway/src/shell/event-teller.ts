import type { Kube, ObjectEvent } from '#libs/kube';
import type { Logger } from '#libs/runtime';

/** So many wait at most: who looks at thousands of objects looks at their status. */
const MOST_WAITING = 1_000;
const AT_ONCE = 2;

/** Tells events, a few at a time and beside all else: one that cannot be told is lost, and holds up nothing. */
export class EventTeller {
  private readonly waiting: ObjectEvent[] = [];
  private working = 0;
  private stopped = false;
  private complaint = '';

  constructor(
    private readonly kube: Kube,
    private readonly manager: string,
    private readonly logger: Logger,
  ) {}

  tell(event: ObjectEvent): void {
    if (this.waiting.length >= MOST_WAITING) this.waiting.shift();
    this.waiting.push(event);
    if (this.working < AT_ONCE) void this.work();
  }

  stop(): void {
    this.stopped = true;
  }

  private async work(): Promise<void> {
    this.working += 1;
    for (let event = this.waiting.shift(); event !== undefined && !this.stopped; event = this.waiting.shift())
      await this.one(event);
    this.working -= 1;
  }

  private async one(event: ObjectEvent): Promise<void> {
    try {
      await this.kube.tellEvent(event, this.manager);
      this.complaint = '';
    } catch (error) {
      const { message } = error as Error;
      // The same for thousands of them is said once.
      if (message !== this.complaint)
        this.logger.warn({ error, event: event.name }, `events cannot be told: ${message}`);
      this.complaint = message;
    }
  }
}
