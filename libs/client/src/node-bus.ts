import {
  aliveSubject,
  decodePace,
  decodeView,
  encodeReport,
  nodeToken,
  reportSubject,
  type LeaseView,
  type NodeAlive,
  type NodePace,
  type NodeReport,
  type StatusView,
} from '#libs/contracts';
import { Blobs, connectBus, readView, type Bus, type BusOptions } from '#libs/nats/lean';

/** What came for a node; nothing of it: a hint to read. */
export interface NodePush {
  readonly lease?: LeaseView;
  readonly status?: StatusView;
  readonly pace?: NodePace;
}

/** What an applier needs: its own keys and subjects. Reads throw when there is no connection. */
export interface NodeBus {
  /** The node's lease, read from the stream's leader; undefined when it never had one. */
  lease(): Promise<LeaseView | undefined>;
  /** What the scheduler has taken of this node's reports, from the stream's leader. */
  status(): Promise<StatusView | undefined>;
  /** The text of the config with this hash (bucket `configs`, key `<node>.<hash>`); undefined when there is none. */
  config(hash: string): Promise<string | undefined>;
  /** Stores a report in REPORTS; resolves when the server has it. */
  report(report: NodeReport): Promise<void>;
  /** Heartbeat: core NATS, dropped silently without a connection. */
  alive(alive: NodeAlive): void;
  /** Calls back with what was pushed, and with nothing after a reconnect: a hint to read. */
  onPush(listener: (pushed: NodePush) => void): void;
  readonly connected: boolean;
  close(): Promise<void>;
}

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
  private readonly listeners: ((pushed: NodePush) => void)[] = [];
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

  onPush(listener: (pushed: NodePush) => void): void {
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

  private tell(pushed: NodePush): void {
    for (const listener of this.listeners) listener(pushed);
  }
}

/** A push that cannot be read is still a hint to read. */
function pushedOf(bucket: string, text: string): NodePush {
  try {
    if (bucket === 'leases') return { lease: decodeView('leases', text) };
    if (bucket === 'pace') return { pace: decodePace(text) };
    return bucket === 'status' ? { status: decodeView('status', text) } : {};
  } catch {
    return {};
  }
}
