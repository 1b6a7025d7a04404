import {
  aliveSubject,
  decodePace,
  decodeView,
  encodeReport,
  nodeToken,
  reportSubject,
  type LeaseView,
  type NodeAlive,
  type NodeReport,
  type StatusView,
} from '#libs/contracts';
import { Blobs } from './blobs.js';
import { connectBus, type Bus, type BusOptions } from './connection.js';
import type { NodeBus, Pushed } from './node-bus.js';
import { readView } from './view-reader.js';

export type NodeBusOptions = { readonly node: string } &
  /** One connection for many nodes; it is not closed with them. */
  ({ readonly connection: Bus } | (Omit<BusOptions, 'name'> & { readonly name?: string }));

/** How far the nodes of one connection spread their reads after a reconnect. */
const SPREAD_MS = 2_000;

/** Connects one node. Many may share a connection: each costs it one subscription and no consumer. */
export async function connectNodeBus(options: NodeBusOptions): Promise<NodeBus> {
  if ('connection' in options) return new NatsNodeBus(options.connection, options.node, false);
  return new NatsNodeBus(await connectBus({ name: `applier ${options.node}`, ...options }), options.node, true);
}

class NatsNodeBus implements NodeBus {
  private readonly blobs: Blobs;
  private readonly listeners: ((pushed: Pushed) => void)[] = [];
  private readonly ends: (() => void)[];
  private hint: NodeJS.Timeout | undefined;

  constructor(
    private readonly bus: Bus,
    private readonly node: string,
    private readonly owns: boolean,
  ) {
    this.blobs = new Blobs(bus);
    this.ends = [this.subscribe(), bus.onConnection((connected) => connected && this.hintLater())];
  }

  get connected(): boolean {
    return this.bus.connected;
  }

  lease(): Promise<LeaseView | undefined> {
    return readView(this.bus, 'leases', this.node);
  }

  status(): Promise<StatusView | undefined> {
    return readView(this.bus, 'status', this.node);
  }

  config(hash: string): Promise<string | undefined> {
    return this.blobs.config(this.node, hash);
  }

  async report(report: NodeReport): Promise<void> {
    // Without a message id: a report is repeated until it was taken, and the scheduler tells repetitions apart.
    await this.bus.publish(reportSubject(report.kind, this.node), encodeReport(report));
  }

  alive(alive: NodeAlive): void {
    if (this.bus.connected) this.bus.nc.publish(aliveSubject(this.node), JSON.stringify(alive));
  }

  onPush(listener: (pushed: Pushed) => void): void {
    this.listeners.push(listener);
  }

  async close(): Promise<void> {
    clearTimeout(this.hint);
    for (const end of this.ends) end();
    if (this.owns) await this.bus.close();
  }

  private subscribe(): () => void {
    const subscription = this.bus.nc.subscribe(`push.*.${nodeToken(this.node)}`, {
      callback: (error, message) => {
        if (error === null) this.tell(pushedOf(message.subject.split('.')[1] as string, message.string()));
      },
    });
    return () => subscription.unsubscribe();
  }

  /** What was pushed meanwhile is lost: a hint to read, spread so that ten thousand nodes do not read at once. */
  private hintLater(): void {
    clearTimeout(this.hint);
    this.hint = setTimeout(() => this.tell({}), Math.random() * SPREAD_MS);
    this.hint.unref();
  }

  private tell(pushed: Pushed): void {
    for (const listener of this.listeners) listener(pushed);
  }
}

/** A push that cannot be read is still a hint to read. */
function pushedOf(bucket: string, text: string): Pushed {
  try {
    if (bucket === 'leases') return { lease: decodeView('leases', text) };
    if (bucket === 'pace') return { pace: decodePace(text) };
    return bucket === 'status' ? { status: decodeView('status', text) } : {};
  } catch {
    return {};
  }
}
