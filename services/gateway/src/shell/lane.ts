/** A queue whose items are processed a few at a time. `work` must handle its own errors. */
export class Lane<T> {
  private readonly waiting: T[] = [];
  private working = 0;
  private stopped = false;

  /** Beyond `mostWaiting`, the oldest item is dropped. */
  constructor(
    private readonly atOnce: number,
    private readonly work: (item: T) => Promise<void>,
    private readonly mostWaiting = Infinity,
  ) {}

  add(item: T): void {
    if (this.waiting.length >= this.mostWaiting) this.waiting.shift();
    this.waiting.push(item);
    if (this.working < this.atOnce) void this.run();
  }

  /** Finishes the items in progress and starts no others. */
  stop(): void {
    this.stopped = true;
  }

  private async run(): Promise<void> {
    this.working += 1;
    for (let item = this.waiting.shift(); item !== undefined && !this.stopped; item = this.waiting.shift())
      await this.work(item);
    this.working -= 1;
  }
}
