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

  /** The same, but work that takes longer than this goes on without keeping others from starting. */
  start<T>(work: () => Promise<T>, mostMs: number): Promise<T> {
    return new Promise((resolve, reject) => {
      void this.take(() => {
        const working = work();
        working.then(resolve, reject);
        return ended(working, mostMs);
      });
    });
  }

  private release(): void {
    const next = this.waiting.shift();
    if (next === undefined) this.working -= 1;
    else next();
  }
}

/** Resolves when the work has ended, in whatever way, or after this time. */
function ended(work: Promise<unknown>, mostMs: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, mostMs);
    const end = (): void => {
      clearTimeout(timer);
      resolve();
    };
    work.then(end, end);
  });
}
