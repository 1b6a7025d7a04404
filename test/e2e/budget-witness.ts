import { readFileSync, statSync } from 'node:fs';

/** One pool that the witness watches. */
export interface WatchedPool {
  readonly pool: string;
  readonly budget: number;
  readonly nodes: readonly string[];
}

interface Sample {
  /** Identifies the version of a journal: another file or another time is another version. */
  readonly stamp: string;
  /** The lease that the node works on. Empty if it has no work. */
  readonly lease: string;
  /** When this journal was written, according to the time of the file. */
  readonly writtenMs: number;
}

/** A period in which a node certainly worked on a lease. */
export interface Work {
  readonly node: string;
  readonly lease: string;
  /** When the first observed journal with this lease was written, according to the time of the file. */
  readonly fromMs: number;
  /** When the last look started that still saw the work. */
  toMs: number;
}

const EVERY_MS = 3;
/** The time of a file may lag behind the clock by a tick of the kernel. */
const FILE_TIME_LAG_MS = 10;
const NOTHING: Sample = { stamp: '', lease: '', writtenMs: 0 };

/**
 * Determines from the journals of the nodes alone how many nodes of a pool are in the middle of a change at once. A
 * node that shows the same work in two consecutive looks was at work all the time between them. So everything that is
 * counted did happen at the same moment.
 */
export class BudgetWitness {
  /** The largest number of nodes of each pool that were seen in the middle of a change at once. */
  readonly most = new Map<string, number>();
  /** Every moment at which more nodes of a pool were in the middle of a change than its budget allows. */
  readonly exceeded: string[] = [];
  /** All observed work, ordered by its start. */
  readonly works: Work[] = [];
  /** The number of looks so far. Tests use it to wait until their state was observed. */
  looks = 0;
  /** Nodes that cannot answer. They count, although their journals may show no work. */
  private readonly down = new Set<string>();
  private readonly seen = new Map<string, Sample>();
  private readonly newest = new Map<string, Work>();
  private timer: NodeJS.Timeout | undefined;
  private waiting: { readonly looks: number; readonly resolve: () => void }[] = [];

  constructor(
    private readonly pools: readonly WatchedPool[],
    private readonly journalOf: (node: string) => string,
  ) {}

  start(): void {
    this.timer = setInterval(() => this.look(), EVERY_MS);
  }

  stop(): void {
    clearInterval(this.timer);
    for (const { resolve } of this.waiting.splice(0)) resolve();
  }

  /** Resolves after two more looks. A test that waits for this in the middle of a change is certain to be observed. */
  seenTwice(): Promise<void> {
    return new Promise((resolve) => this.waiting.push({ looks: this.looks + 2, resolve }));
  }

  isDown(node: string): void {
    this.down.add(node);
  }
  isBack(node: string): void {
    this.down.delete(node);
  }

  private look(): void {
    for (const { pool, budget, nodes } of this.pools) {
      const busy = nodes.filter((node) => this.down.has(node) || this.isAtWork(node));
      this.most.set(pool, Math.max(this.most.get(pool) ?? 0, busy.length));
      if (busy.length > budget) this.exceeded.push(`${pool}: ${busy.join(', ')}`);
    }
    this.looks += 1;
    const due = this.waiting.filter(({ looks }) => looks <= this.looks);
    this.waiting = this.waiting.filter(({ looks }) => looks > this.looks);
    for (const { resolve } of due) resolve();
  }

  private isAtWork(node: string): boolean {
    const before = this.seen.get(node) ?? NOTHING;
    const atMs = Date.now();
    const now = this.read(node, before);
    this.seen.set(node, now);
    if (now.lease !== '') this.note(node, now, atMs);
    return now.lease !== '' && now.lease === before.lease;
  }

  private note(node: string, { lease, writtenMs }: Sample, atMs: number): void {
    const work = this.newest.get(node);
    if (work?.lease === lease) return void (work.toMs = Math.max(work.toMs, atMs));
    const newWork = { node, lease, fromMs: writtenMs + FILE_TIME_LAG_MS, toMs: atMs };
    this.newest.set(node, newWork);
    this.works.push(newWork);
  }

  private read(node: string, before: Sample): Sample {
    const file = this.journalOf(node);
    const stat = statSync(file, { bigint: true, throwIfNoEntry: false });
    if (stat === undefined) return NOTHING;
    const stamp = `${stat.ino} ${stat.mtimeNs}`;
    if (stamp === before.stamp) return before;
    try {
      const { journal } = JSON.parse(readFileSync(file, 'utf8')) as {
        readonly journal: { readonly work?: { readonly lease: string } };
      };
      return { stamp, lease: journal.work?.lease ?? '', writtenMs: Number(stat.mtimeNs / 1_000_000n) };
    } catch {
      return NOTHING; // it was removed between the two calls
    }
  }
}
