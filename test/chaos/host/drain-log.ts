import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** One thing that the drainer did, as it wrote it down before anybody else could know. */
export interface DrainDeed {
  readonly did: 'cordoned' | 'drained' | 'returned';
  readonly node: string;
  readonly lease: string;
  readonly atMs: number;
}

/** Which nodes the drainer holds for which lease, and all that it ever did: files, which outlive it. */
export class DrainLog {
  private readonly cordons: string;
  private readonly file: string;

  constructor(data: string) {
    this.cordons = join(data, 'cordons');
    this.file = join(data, 'drainer.jsonl');
    mkdirSync(this.cordons, { recursive: true });
  }

  /** The lease that a node is held for; undefined for one that is nobody's. */
  heldFor(node: string): string | undefined {
    const path = join(this.cordons, node);
    return existsSync(path) ? readFileSync(path, 'utf8') : undefined;
  }

  /** Every node that is held, with its lease. */
  held(): ReadonlyMap<string, string> {
    return new Map(
      readdirSync(this.cordons)
        .sort()
        .map((node) => [node, this.heldFor(node) ?? '']),
    );
  }

  hold(node: string, lease: string): void {
    if (this.heldFor(node) === lease) return;
    this.note('cordoned', node, lease);
    writeFileSync(join(this.cordons, node), lease);
  }

  drained(node: string, lease: string): void {
    this.note('drained', node, lease);
  }

  giveBack(node: string, lease: string): void {
    if (this.heldFor(node) !== lease) return;
    rmSync(join(this.cordons, node));
    this.note('returned', node, lease);
  }

  deeds(): readonly DrainDeed[] {
    // A line that a kill cut short was never answered for.
    return existsSync(this.file)
      ? readFileSync(this.file, 'utf8')
          .split('\n')
          .flatMap((line) => (line.endsWith('}') ? [JSON.parse(line) as DrainDeed] : []))
      : [];
  }

  private note(did: DrainDeed['did'], node: string, lease: string): void {
    appendFileSync(this.file, `${JSON.stringify({ did, node, lease, atMs: Date.now() })}\n`);
  }
}
