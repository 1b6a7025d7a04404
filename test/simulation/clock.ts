/** Simulated time and what is to happen: events in order of time, then of their making. */
export class Clock {
  nowMs = 0;
  private made = 0;
  private readonly heap: { readonly atMs: number; readonly order: number; readonly run: () => void }[] = [];

  /** Lets `run` happen after `delayMs`. */
  after(delayMs: number, run: () => void): void {
    this.push({ atMs: this.nowMs + Math.max(0, delayMs), order: this.made++, run });
  }

  /** Lets the next event happen; false when there is none before `untilMs`. */
  step(untilMs: number): boolean {
    const first = this.heap[0];
    if (first === undefined || first.atMs > untilMs) return false;
    this.pop();
    this.nowMs = first.atMs;
    first.run();
    return true;
  }

  private push(event: { readonly atMs: number; readonly order: number; readonly run: () => void }): void {
    const { heap } = this;
    heap.push(event);
    let at = heap.length - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!this.before(at, parent)) break;
      this.swap(at, parent);
      at = parent;
    }
  }

  private pop(): void {
    const { heap } = this;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    heap[0] = last;
    let at = 0;
    for (;;) {
      let least = at;
      for (const child of [2 * at + 1, 2 * at + 2]) if (child < heap.length && this.before(child, least)) least = child;
      if (least === at) return;
      this.swap(at, least);
      at = least;
    }
  }

  private before(a: number, b: number): boolean {
    const [x, y] = [this.heap[a], this.heap[b]];
    if (x === undefined || y === undefined) return false;
    return x.atMs < y.atMs || (x.atMs === y.atMs && x.order < y.order);
  }

  private swap(a: number, b: number): void {
    const [x, y] = [this.heap[a], this.heap[b]];
    if (x === undefined || y === undefined) return;
    this.heap[a] = y;
    this.heap[b] = x;
  }
}
