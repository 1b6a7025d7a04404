import type { NodeBus, NodePush, ObjectInfo } from '#libs/client';
import type { Config, LeaseView, NodeAlive, NodeReport } from '#libs/contracts';
import { hashOf } from '../shell/index.js';
import { lease, newBus, takeReports, type MemoryBus } from './memory-node.js';

/** A bus for one node, with a scheduler that processes each report at once. */
export class MemoryNodeBus implements NodeBus {
  readonly beats: NodeAlive[] = [];
  readonly reports: NodeReport[] = [];
  private readonly memory: MemoryBus = newBus();
  private readonly texts = new Map<string, string>();
  private readonly listeners: ((pushed: NodePush) => void)[] = [];
  down = false;
  /** What is in the object store, by sha256. */
  readonly objects = new Map<string, Buffer>();
  chunkBytes = 4;

  constructor(
    readonly node: string,
    /** The number of the last lease. */
    private leases = 0,
  ) {}

  get connected(): boolean {
    return !this.down;
  }

  async lease(): Promise<LeaseView | undefined> {
    this.reach();
    return this.memory.lease;
  }

  async status() {
    this.reach();
    return this.memory.status;
  }

  async config(hash: string): Promise<string | undefined> {
    this.reach();
    return this.texts.get(hash);
  }

  async object(sha256: string): Promise<ObjectInfo | undefined> {
    this.reach();
    const content = this.objects.get(sha256);
    return content === undefined
      ? undefined
      : { sha256, object: 'a.bin', bytes: content.length, chunkBytes: this.chunkBytes };
  }

  async chunk(sha256: string, n: number): Promise<Uint8Array | undefined> {
    this.reach();
    const at = n * this.chunkBytes;
    return this.objects.get(sha256)?.subarray(at, at + this.chunkBytes);
  }

  async report(report: NodeReport): Promise<void> {
    this.reach();
    this.reports.push(report);
    this.memory.reports.push(report);
    takeReports(this.memory);
    this.push(this.memory.status === undefined ? {} : { status: this.memory.status });
  }

  alive(alive: NodeAlive): void {
    this.beats.push(alive);
  }

  onPush(listener: (pushed: NodePush) => void): void {
    this.listeners.push(listener);
  }

  async close(): Promise<void> {
    this.listeners.length = 0;
  }

  /** Stores a config. Returns its hash. */
  store(config: Config): string {
    const hash = hashOf(config);
    this.texts.set(hash, JSON.stringify(config));
    return hash;
  }

  /** Nobody refers to the config any more, so it is deleted. */
  expire(config: Config): void {
    this.texts.delete(hashOf(config));
  }

  /** Grants a lease for this config, from the hash of the last report. Waits for the report on it. */
  async roll(config: Config, part: Partial<LeaseView> = {}): Promise<NodeReport> {
    const id = this.grant(config, part);
    return this.reported((report) => report.lease === id);
  }

  grant(config: Config, part: Partial<LeaseView> = {}): string {
    const id = `l${++this.leases}`;
    this.memory.lease = lease({
      ledger: 100 + this.leases,
      node: this.node,
      lease: id,
      hash: this.store(config),
      from: this.memory.status?.hash ?? '',
      applyMs: 20_000,
      ...part,
    });
    this.push({ lease: this.memory.lease });
    return id;
  }

  /** The same lease, in another phase. */
  regrant(part: Pick<LeaseView, 'phase'>): void {
    const { lease: before } = this.memory;
    if (before === undefined) throw new Error('there is no lease');
    this.memory.lease = { ...before, ledger: before.ledger + 1, ...part };
    this.push({ lease: this.memory.lease });
  }

  async reported(wanted: (report: NodeReport) => boolean, timeoutMs = 120_000): Promise<NodeReport> {
    const endMs = Date.now() + timeoutMs;
    for (;;) {
      const found = this.reports.find(wanted);
      if (found !== undefined) return found;
      if (Date.now() > endMs) throw new Error(`no such report among ${JSON.stringify(this.reports.slice(-3))}`);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  push(pushed: NodePush): void {
    for (const listener of this.listeners) listener(pushed);
  }

  private reach(): void {
    if (this.down) throw new Error('no connection');
  }
}
