import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** One action of the drainer, logged before anything else could know of it. */
export interface DrainAction {
  readonly did: 'cordoned' | 'drained' | 'returned';
  readonly node: string;
  readonly lease: string;
  readonly atMs: number;
}

/**
 * The nodes that the drainer holds for a lease, and everything that it did. Stored in files, so that it survives the
 * drainer.
 */
export class DrainLog {
  private readonly cordons: string;
  private readonly file: string;

  constructor(data: string) {
    this.cordons = join(data, 'cordons');
    this.file = join(data, 'drainer.jsonl');
    mkdirSync(this.cordons, { recursive: true });
  }

  /** The lease for which a node is held. Undefined if it is not held. */
  heldFor(node: string): string | undefined {
    const path = join(this.cordons, node);
    return existsSync(path) ? readFileSync(path, 'utf8') : undefined;
  }

  /** Every held node, with its lease. */
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

  actions(): readonly DrainAction[] {
    // A line that was cut off by a kill was never reported.
    return existsSync(this.file)
      ? readFileSync(this.file, 'utf8')
          .split('\n')
          .flatMap((line) => (line.endsWith('}') ? [JSON.parse(line) as DrainAction] : []))
      : [];
  }

  private note(did: DrainAction['did'], node: string, lease: string): void {
    appendFileSync(this.file, `${JSON.stringify({ did, node, lease, atMs: Date.now() })}\n`);
  }
}
