/** An answer that takes this long is slow. */
const SLOW_MS = 2_000;
const QUICK_MS = 1_000;
/** The number of quick answers in a row that ends the slow time. */
const QUICK_ANSWERS = 5;
/** Without requests, the slow time ends after this. */
const LAPSES_MS = 60_000;

/** Detects a slow server. The slow time ends with a few quick answers in a row, or after a while without a slow one. */
export class Slowness {
  private isSlow = false;
  private quick = 0;
  private slowAtMs = 0;

  /** Records the duration of an answer. Returns `slow` or `quick` if the state has changed. */
  took(ms: number, nowMs: number): 'slow' | 'quick' | undefined {
    this.quick = ms < QUICK_MS ? this.quick + 1 : 0;
    if (this.quick === 0) this.slowAtMs = nowMs;
    if (!this.isSlow && ms >= SLOW_MS) {
      this.isSlow = true;
      return 'slow';
    }
    return this.quick < QUICK_ANSWERS ? undefined : this.over();
  }

  /** `quick` if nothing was slow for long enough; otherwise when to call this again, if at all. */
  lapse(nowMs: number): 'quick' | number | undefined {
    if (!this.isSlow) return undefined;
    const atMs = this.slowAtMs + LAPSES_MS;
    return nowMs >= atMs ? this.over() : atMs;
  }

  private over(): 'quick' | undefined {
    if (!this.isSlow) return undefined;
    this.isSlow = false;
    return 'quick';
  }
}

/** The note that operators see while the server is slow. */
export const slownessNote = (words: string | undefined) =>
  words === undefined
    ? undefined
    : ({
        state: 'note',
        words,
        todo: 'the API server answers slowly: check its load, its etcd and its webhooks',
      } as const);
