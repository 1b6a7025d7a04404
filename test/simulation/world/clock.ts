/** Simulated time and scheduled events, ordered by time and then by creation. */
export class Clock {
  nowMs = 0;
  /** The next event is the last element. */
  private readonly events: { readonly atMs: number; readonly run: () => void }[] = [];

  /** Runs `run` after `delayMs`. */
  after(delayMs: number, run: () => void): void {
    const { events } = this;
    const atMs = this.nowMs + Math.max(0, delayMs);
    let [low, high] = [0, events.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((events[middle]?.atMs ?? 0) > atMs) low = middle + 1;
      else high = middle;
    }
    events.splice(low, 0, { atMs, run });
  }

  /** Runs the next event. Returns false if there is none before `untilMs`. */
  step(untilMs: number): boolean {
    const next = this.events.at(-1);
    if (next === undefined || next.atMs > untilMs) return false;
    this.events.pop();
    this.nowMs = next.atMs;
    next.run();
    return true;
  }
}
