/** Everybody who waits for it notices. */
const SLOW_MS = 2_000;
const QUICK_MS = 1_000;
/** One quick answer between slow ones is no change. */
const QUICK_ANSWERS = 5;

/** Notices whether answers are slow: from the first that takes long to the last of a few in a row that do not. */
export class Slowness {
  private isSlow = false;
  private quick = 0;

  /** Takes how long an answer took. What to tell if that changes something: that it is slow, or that it no longer is. */
  took(ms: number): 'slow' | 'quick' | undefined {
    this.quick = ms < QUICK_MS ? this.quick + 1 : 0;
    if (!this.isSlow && ms >= SLOW_MS) {
      this.isSlow = true;
      return 'slow';
    }
    if (!this.isSlow || this.quick < QUICK_ANSWERS) return undefined;
    this.isSlow = false;
    return 'quick';
  }
}

/** What to tell people while answers are slow. */
export const slownessNote = (words: string | undefined) =>
  words === undefined ? undefined : ({ state: 'note', words, todo: 'whatever needs the API server takes as long: see to its load, its etcd, and the webhooks that it asks' } as const);
