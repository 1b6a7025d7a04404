/** Runs a limited number of tasks at once; the others wait in order. */
export class Turns {
  private working = 0;
  private readonly waiting: (() => void)[] = [];

  constructor(private readonly atOnce: number) {}

  async take<T>(work: () => Promise<T>): Promise<T> {
    if (this.working >= this.atOnce) await new Promise<void>((begin) => this.waiting.push(begin));
    else this.working += 1;
    try {
      return await work();
    } finally {
      // A connection that has just answered can be reused only now: otherwise the next request would open another.
      setImmediate(() => this.release());
    }
  }

  private release(): void {
    const next = this.waiting.shift();
    if (next === undefined) this.working -= 1;
    else next();
  }
}
