/** Lets so many work at once; the others wait for their turn, in their order. */
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
      // Not before the connection is free to be used again, which it is a moment after the answer: else the next one would make another.
      setImmediate(() => this.release());
    }
  }

  /** Whoever is next takes the place. */
  private release(): void {
    const next = this.waiting.shift();
    if (next === undefined) this.working -= 1;
    else next();
  }
}
