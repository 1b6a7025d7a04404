import type { NodeAlive } from '#libs/contracts';

/** The lives of one node's appliers: a new one begins with each incarnation and nonce. */
interface Lives {
  readonly last: string;
  /** The ones before, the latest first. */
  readonly before: readonly string[];
  /** When a life was last heard again after another one. */
  readonly sharedMs?: number | undefined;
}

/** Two appliers begin a new life at least once a minute, each. */
const MOST_LIVES = 8;
/** Nothing was heard for so long that points at two appliers. */
const FORGET_MS = 600_000;

/**
 * Which node names are used by two appliers at once. An applier that restarts begins a new life, and its old one is
 * never heard again. If it is, another applier has the same name. Known from heartbeats only, and not part of the fold.
 */
export class SharedNames {
  private readonly lives = new Map<string, Lives>();
  private readonly shared = new Set<string>();

  /** Notes a heartbeat. */
  hear({ node, incarnation, nonce }: NodeAlive, nowMs: number): void {
    const life = `${incarnation} ${nonce}`;
    const known = this.lives.get(node);
    if (known?.last === life) return;
    const before = known === undefined ? [] : [known.last, ...known.before.filter((one) => one !== life)];
    const isBack = known?.before.includes(life) === true;
    if (isBack) this.shared.add(node);
    this.lives.set(node, {
      last: life,
      before: before.slice(0, MOST_LIVES),
      sharedMs: isBack ? nowMs : known?.sharedMs,
    });
  }

  /** The names that were used twice in the last ten minutes, sorted. */
  names(nowMs: number): readonly string[] {
    for (const node of this.shared) {
      const { sharedMs } = this.lives.get(node) ?? {};
      if (sharedMs === undefined || nowMs - sharedMs >= FORGET_MS) this.shared.delete(node);
    }
    return [...this.shared].sort();
  }
}
