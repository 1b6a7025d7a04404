import type { NodeAlive } from '#libs/contracts';
import { patienceMs } from './pace.js';

/** The lives of one node's appliers: a new one begins with each incarnation and nonce. */
interface Lives {
  readonly last: string;
  /** When the last one was last heard, monotonic, and the time between its heartbeats. */
  readonly heardMs: number;
  readonly everyMs: number;
  /** The earlier ones, the latest first. */
  readonly before: readonly string[];
}

/** Each of two appliers begins a new life at least once a minute. */
const MOST_LIVES = 8;
/** How long an applier may be late that does not say how often it sends heartbeats. */
const LATE_MS = 60_000;

/**
 * Which node names are used by two appliers at once. An applier that restarts begins a new life, and its old one is
 * never heard from again. If it is, another applier has the same name. Known from heartbeats only, and not part of the
 * fold.
 */
export class SharedNames {
  private readonly lives = new Map<string, Lives>();
  /** For each shared name, when the less recent of its two appliers was last heard, and how late it may be. */
  private readonly shared = new Map<string, { readonly heardMs: number; readonly lateMs: number }>();

  /** Records a heartbeat. */
  hear({ node, incarnation, nonce, everyMs }: NodeAlive, nowMs: number): void {
    const last = `${incarnation} ${nonce}`;
    const entry = this.lives.get(node);
    const isOther = entry !== undefined && entry.last !== last;
    if (isOther && entry.before.includes(last))
      this.shared.set(node, { heardMs: entry.heardMs, lateMs: lateMs(entry.everyMs) });
    const before = isOther ? [entry.last, ...entry.before.filter((one) => one !== last)] : (entry?.before ?? []);
    this.lives.set(node, { last, heardMs: nowMs, everyMs, before: before.slice(0, MOST_LIVES) });
  }

  /** The names that two appliers use, sorted. One that has just stopped may only be late, so its name stays a while. */
  names(nowMs: number): readonly string[] {
    for (const [node, other] of this.shared) if (nowMs - other.heardMs >= other.lateMs) this.shared.delete(node);
    return [...this.shared.keys()].sort();
  }

  /** How long the last of these names may stay after one of its two appliers has stopped. */
  get patienceMs(): number {
    return Math.max(0, ...[...this.shared.values()].map((other) => other.lateMs));
  }
}

/** An applier that is not heard for this time has missed some heartbeats in a row: it has stopped. */
const lateMs = (everyMs: number): number => (everyMs === 0 ? LATE_MS : patienceMs(everyMs, 0));
