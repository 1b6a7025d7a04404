import { readFileSync, statSync } from 'node:fs';

/** One pool, as the witness is told. */
export interface WatchedPool {
  readonly pool: string;
  readonly budget: number;
  readonly nodes: readonly string[];
}

interface Sample {
  /** Which journal it was: another file or another time is another one. */
  readonly stamp: string;
  /** The lease that the node works on; empty for none. */
  readonly lease: string;
  /** When this journal was written, by the file's own time. */
  readonly writtenMs: number;
}

/** A stretch of time in which a node surely worked on a lease. */
export interface Work {
  readonly node: string;
  readonly lease: string;
  /** When the first journal seen that names the lease was written, by the file's own time. */
  readonly fromMs: number;
  /** When the last look began that still found it. */
  toMs: number;
}

const EVERY_MS = 3;
/** A file's time may lag behind the clock by a tick of the kernel. */
const FILE_TIME_LAG_MS = 10;
const NOTHING: Sample = { stamp: '', lease: '', writtenMs: 0 };

/**
 * Judges from the nodes' journals alone how many nodes of a pool are mid-change at once. A node that shows the same
 * work in two looks that follow on each other was at work all the time between them, so what is counted did happen at
 * one moment.
 */
export class BudgetWitness {
  /** The most nodes of each pool that were seen mid-change at once. */
  readonly most = new Map<string, number>();
  /** Every moment at which a pool had more nodes mid-change than its budget. */
  readonly exceeded: string[] = [];
  /** All the work that was seen, in the order of its beginnings. */
  readonly works: Work[] = [];
  /** Counts the looks, so that others can wait until they were seen. */
  looks = 0;
  /** Nodes that cannot answer: they count though their journals may say nothing. */
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

  /** Resolves when two more looks were made: a test that waits for that in the middle of a change is seen there. */
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
    const begun = { node, lease, fromMs: writtenMs + FILE_TIME_LAG_MS, toMs: atMs };
    this.newest.set(node, begun);
    this.works.push(begun);
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
      return NOTHING; // it went between the two calls
    }
  }
}
