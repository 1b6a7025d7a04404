/** Everybody who waits for it notices. */
const SLOW_MS = 2_000;
const QUICK_MS = 1_000;
/** One quick answer between slow ones is no change. */
const QUICK_ANSWERS = 5;
/** Who asks for nothing any more cannot know; it is not slow for anybody here. */
const LAPSES_MS = 60_000;

/** Notices slow answers. They end with a few quick ones in a row, or when none was slow for a while. */
export class Slowness {
  private isSlow = false;
  private quick = 0;
  private slowAtMs = 0;

  /** Takes the time of an answer; returns what to tell if that changes something. */
  took(ms: number, nowMs: number): 'slow' | 'quick' | undefined {
    this.quick = ms < QUICK_MS ? this.quick + 1 : 0;
    if (this.quick === 0) this.slowAtMs = nowMs;
    if (!this.isSlow && ms >= SLOW_MS) {
      this.isSlow = true;
      return 'slow';
    }
    return this.quick < QUICK_ANSWERS ? undefined : this.over();
  }

  /** `quick` when nothing was slow for long enough; else when to ask again, if at all. */
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

/** What to tell people while answers are slow. */
export const slownessNote = (words: string | undefined) =>
  words === undefined
    ? undefined
    : ({
        state: 'note',
        words,
        todo: 'the API server answers slowly: check its load, its etcd and its webhooks',
      } as const);
