import type { Msg } from '@nats-io/nats-core';
import {
  aliveSubject,
  decodePathQuery,
  decodePace,
  decodeView,
  encodeReport,
  nodeInbox,
  nodeToken,
  reportSubject,
  type LeaseView,
  type NodeAlive,
  type PathAnswer,
  type PathQuery,
  type NodePace,
  type NodeReport,
  type StatusView,
} from '#libs/contracts';
import {
  Blobs,
  connectBus,
  isMissingStream,
  isWithoutJetStream,
  MISSING_STREAM,
  Objects,
  readNearbyView,
  type Bus,
  type BusOptions,
  type ObjectInfo,
} from '#libs/nats/lean';

/** A push for a node; an empty one is a hint to read. */
export interface NodePush {
  /** After a reconnect: another server answers, which may lag behind what was read before. */
  readonly mayLag?: boolean;
  readonly lease?: LeaseView;
  readonly status?: StatusView;
  readonly pace?: NodePace;
  /** What exists at these paths, and what would the node refuse? */
  readonly query?: { readonly request: PathQuery; answer(answer: PathAnswer): void };
  /** What does it do now, and why does that take so long? */
  readonly why?: { answer(answer: WorkAnswer): void };
}

/** What the applier of a target does now. Empty if there is nothing to say. */
export interface WorkAnswer {
  readonly text: string;
}

/** What an applier needs: its own keys and subjects. Reads throw when there is no connection. */
export interface NodeBus {
  /** The node's lease, as any server of the stream has it; undefined if it never had one. */
  lease(): Promise<LeaseView | undefined>;
  /** Which of this node's reports the scheduler has processed, as any server of the stream has it. */
  status(): Promise<StatusView | undefined>;
  /** The text of the config with this hash (bucket `configs`, key `<node>.<hash>`); undefined when there is none. */
  config(hash: string): Promise<string | undefined>;
  /** What the object store knows of an object; undefined when it does not have it. */
  object(sha256: string): Promise<ObjectInfo | undefined>;
  /** A chunk of an object, counted from 0; undefined when it is not there. Its content is not checked. */
  chunk(sha256: string, n: number): Promise<Uint8Array | undefined>;
  /** Stores a report in REPORTS; resolves when the server has it. */
  report(report: NodeReport): Promise<void>;
  /** Sends a heartbeat over core NATS. It is dropped silently without a connection. */
  alive(alive: NodeAlive): void;
  /** Calls back with each push, and with undefined after a reconnect, as a hint to read. */
  onPush(listener: (pushed: NodePush) => void): void;
  readonly connected: boolean;
  close(): Promise<void>;
}

/** No server answers the node's requests. */
export class NoStreamsError extends Error {
  override readonly name = 'NoStreamsError';
  /** As the server says it to those that may ask. */
  readonly code = MISSING_STREAM;
  constructor(server: string, cause: unknown) {
    super(
      `the nats-server at ${server} has no streams of Sluice for this user: start the services, which create them. ` +
        'If they run, the account of this user needs JetStream, or what accounts of nodes import',
      { cause },
    );
  }
}

export type NodeBusOptions = { readonly node: string } &
  /** One connection for many nodes. Closing a node does not close it. */
  ({ readonly connection: Bus } | (Omit<BusOptions, 'name'> & { readonly name?: string }));

/** The time over which the nodes of one connection spread their reads after a reconnect. */
const SPREAD_MS = 2_000;

/** Connects one node. Many nodes may share a connection. Each adds one subscription and no consumer. */
export async function connectNodeBus(options: NodeBusOptions): Promise<NodeBus> {
  if ('connection' in options) return new NatsNodeBus(options.connection, options.node, false);
  const { node, name = `applier ${node}`, inboxPrefix = nodeInbox(node) } = options;
  return new NatsNodeBus(await connectBus({ ...options, name, inboxPrefix }), node, true);
}

class NatsNodeBus implements NodeBus {
  private readonly blobs: Blobs;
  private readonly objects: Objects;
  private readonly listeners: ((pushed: NodePush) => void)[] = [];
  private readonly ends: (() => void)[];
  private hint: NodeJS.Timeout | undefined;

  constructor(
    private readonly bus: Bus,
    private readonly node: string,
    private readonly owns: boolean,
  ) {
    this.blobs = new Blobs(bus, { fromLeader: false });
    this.objects = new Objects(bus);
    this.ends = [this.subscribe(), bus.onConnection((connected) => connected && this.hintLater())];
  }

  get connected(): boolean {
    return this.bus.connected;
  }

  lease(): Promise<LeaseView | undefined> {
    return this.explained(readNearbyView(this.bus, 'leases', this.node));
  }

  status(): Promise<StatusView | undefined> {
    return this.explained(readNearbyView(this.bus, 'status', this.node));
  }

  config(hash: string): Promise<string | undefined> {
    return this.explained(this.blobs.config(this.node, hash));
  }

  object(sha256: string): Promise<ObjectInfo | undefined> {
    return this.explained(this.objects.find(sha256));
  }

  chunk(sha256: string, n: number): Promise<Uint8Array | undefined> {
    return this.explained(this.objects.chunk(sha256, n));
  }

  async report(report: NodeReport): Promise<void> {
    // Without a message id: a report is repeated until it was processed, and the scheduler detects repetitions.
    await this.explained(this.bus.publish(reportSubject(report.kind, this.node), encodeReport(report)));
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

  /** The applier logs why it cannot use NATS, and waits until somebody fixes that. */
  private async explained<T>(asked: Promise<T>): Promise<T> {
    try {
      return await asked;
    } catch (error) {
      // What the server says is the same, and a node may not ask it for more.
      throw isWithoutJetStream(error) || isMissingStream(error) ? new NoStreamsError(this.bus.server, error) : error;
    }
  }

  private subscribe(): () => void {
    const subscription = this.bus.nc.subscribe(`push.*.${nodeToken(this.node)}`, {
      callback: (error, message) => {
        const pushed = error === null ? pushedOf(message.subject.split('.')[1] as string, message) : undefined;
        if (pushed !== undefined && isAbout(this.node, pushed)) this.tell(pushed);
      },
    });
    return () => subscription.unsubscribe();
  }

  /**
   * Pushes during the outage are lost, so this is a hint to read. It is spread, so that ten thousand nodes do not read
   * at once.
   */
  private hintLater(): void {
    clearTimeout(this.hint);
    this.hint = setTimeout(() => this.tell({ mayLag: this.bus.isClustered }), Math.random() * SPREAD_MS);
    this.hint.unref();
  }

  private tell(pushed: NodePush): void {
    for (const listener of this.listeners) listener(pushed);
  }
}

/** Undefined if it cannot be read. The node reads its lease and status again in a minute at the latest. */
function pushedOf(bucket: string, message: Msg): NodePush | undefined {
  try {
    const text = message.string();
    if (bucket === 'paths') return { query: queryOf(text, message) };
    if (bucket === 'why') return { why: { answer: (answer) => void message.respond(JSON.stringify(answer)) } };
    if (bucket === 'leases') return { lease: decodeView('leases', text) };
    if (bucket === 'pace') return { pace: decodePace(text) };
    return bucket === 'status' ? { status: decodeView('status', text) } : undefined;
  } catch (error) {
    const { message: text } = error as Error;
    if (bucket === 'paths') message.respond(JSON.stringify({ error: { code: 'bad-request', message: text } }));
    return undefined;
  }
}

/** Another node can have the answer to one of its requests sent here, but reads nothing that is about this node. */
const isAbout = (name: string, { lease, status }: NodePush): boolean =>
  [lease, status].every((view) => view === undefined || view.node === name);

const queryOf = (text: string, message: Msg): NodePush['query'] => ({
  request: decodePathQuery(text),
  answer: (answer) => void message.respond(JSON.stringify(answer)),
});
