import type { NodeAlive } from '#libs/contracts';
import { patienceMs } from './pace.js';

/** The lives of one node's appliers: a new one begins with each incarnation and nonce. */
interface Lives {
  readonly last: string;
  /** The earlier ones, the latest first. */
  readonly before: readonly string[];
  /** When `last` was first heard, or heard from again after another life, monotonic. */
  readonly sinceMs: number;
  /** The time between heartbeats, of the last life and of the one that was heard before it. */
  readonly everyMs: number;
  readonly otherEveryMs: number;
}

/** Each of two appliers begins a new life at least once a minute. */
const MOST_LIVES = 8;
/** If only one life is heard for this time, or for a few heartbeats of the other, one applier has stopped. */
const ALONE_MS = 60_000;

/**
 * Which node names are used by two appliers at once. An applier that restarts begins a new life, and its old one is
 * never heard from again. If it is, another applier has the same name. Known from heartbeats only, and not part of the
 * fold.
 */
export class SharedNames {
  private readonly lives = new Map<string, Lives>();
  private readonly shared = new Set<string>();

  /** Records a heartbeat. */
  hear({ node, incarnation, nonce, everyMs }: NodeAlive, nowMs: number): void {
    const last = `${incarnation} ${nonce}`;
    const entry = this.lives.get(node);
    if (entry?.last === last) {
      if (entry.everyMs !== everyMs) this.lives.set(node, { ...entry, everyMs });
      return;
    }
    if (entry?.before.includes(last) === true) this.shared.add(node);
    const before = entry === undefined ? [] : [entry.last, ...entry.before.filter((one) => one !== last)];
    const otherEveryMs = entry?.everyMs ?? 0;
    this.lives.set(node, { last, before: before.slice(0, MOST_LIVES), sinceMs: nowMs, everyMs, otherEveryMs });
  }

  /** The names that two appliers use, sorted; also for about a minute after one of them has stopped. */
  names(nowMs: number): readonly string[] {
    for (const node of this.shared) {
      const lives = this.lives.get(node);
      if (lives === undefined || nowMs - lives.sinceMs >= patienceMs(lives.otherEveryMs, ALONE_MS))
        this.shared.delete(node);
    }
    return [...this.shared].sort();
  }
}
