import {
  jetstream,
  jetstreamManager,
  type ClusterInfo,
  type JetStreamClient,
  type JetStreamManager,
  type JetStreamPublishOptions,
  type LastForMsgRequest,
  type PubAck,
  type SeqMsgRequest,
  type StoredMsg,
  type StreamInfo,
  type StreamInfoRequestOptions,
} from '@nats-io/jetstream';
import {
  createInbox,
  nanos,
  type Msg,
  type MsgHdrs,
  type NatsConnection,
  type Payload,
  type Status,
} from '@nats-io/nats-core';
import { isAtLeast, OLDEST_NATS_SERVER, SILENT, type Logger } from '#libs/process';
import { AckInbox, type StreamAnswer } from './ack-inbox.js';
import type { ConnectionOptions } from './connecting/connection-options.js';
import { dial } from './connecting/dialer.js';
import {
  ConnectionLostError,
  isAccountWithoutJetStream,
  isMissingStream,
  isNoResponders,
  isWithoutJetStream,
  isWithoutLeader,
  MissingStreamError,
  NoLeaderError,
  ServerTooOldError,
  type JetStreamLack,
} from './errors.js';
import { growingMs, pause } from './signal.js';

export interface BusOptions extends ConnectionOptions {
  /** Shown in the server's list of connections. */
  readonly name: string;
  /** Whether to wait at the start until a server is reachable; otherwise that is an error. Default: true. */
  readonly waitOnFirstConnect?: boolean;
  /** How long a request may take. */
  readonly timeoutMs?: number;
  readonly logger?: Logger;
}

/** The servers of a cluster exchange heartbeats every second, and elect a new leader after this at the earliest. */
const HEARD_MS = 4_000;
const DEFAULT_TIMEOUT_MS = 5_000;

/** A connection to NATS with JetStream, which reconnects forever. */
export class Bus {
  readonly js: JetStreamClient;
  private readonly acks: AckInbox;
  private readonly listeners = new Set<(connected: boolean) => void>();
  private readonly requests = new Set<() => void>();
  private up = true;

  constructor(
    readonly nc: NatsConnection,
    readonly jsm: JetStreamManager,
    readonly logger: Logger,
    readonly timeoutMs: number,
    private readonly inboxPrefix?: string,
  ) {
    this.js = jetstream(nc, { timeout: timeoutMs });
    this.acks = new AckInbox(nc, timeoutMs, this.inbox());
    void this.listen();
  }

  get connected(): boolean {
    return this.up && !this.nc.isClosed();
  }

  get server(): string {
    return this.nc.isClosed() ? '' : this.nc.getServer();
  }

  /** Whether the server belongs to a cluster. */
  get isClustered(): boolean {
    return this.nc.info?.cluster !== undefined;
  }

  /** Calls back whenever the connection is lost or restored. Returns a function that stops it. */
  onConnection(listener: (connected: boolean) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** A new subject for answers that this client may subscribe to. */
  inbox(): string {
    return createInbox(this.inboxPrefix);
  }

  /** Stores a message. Resolves when the server has it. */
  publish(subject: string, body: Payload, options: Partial<JetStreamPublishOptions> = {}): Promise<PubAck> {
    return this.unlessLost(() => this.js.publish(subject, body, options));
  }

  /** Stores one of many messages. Calls back once, later. */
  store(subject: string, text: string, head: MsgHdrs, onAnswer: (answer: StreamAnswer | Error) => void): void {
    if (this.connected) this.acks.publish(subject, text, head, onAnswer);
    else queueMicrotask(() => onAnswer(new ConnectionLostError('the connection to the server was lost')));
  }

  /** Publishes to the current subscribers. Without a connection or a subscriber, the message is lost. */
  broadcast(subject: string, text: string): void {
    if (this.connected) this.nc.publish(subject, text);
  }

  request(
    subject: string,
    text: string,
    options: { readonly headers?: MsgHdrs; readonly timeout?: number } = {},
  ): Promise<Msg> {
    return this.unlessLost(() => this.nc.request(subject, text, { timeout: this.timeoutMs, ...options }));
  }

  /** One stored message, as the stream's leader has it. */
  stored(stream: string, query: SeqMsgRequest | LastForMsgRequest): Promise<StoredMsg | null> {
    return this.unlessLost(() => this.jsm.streams.getMessage(stream, query)).catch(named(stream));
  }

  /** The last message of a subject, as any server of the stream has it. That server may lag. */
  async nearest(stream: string, subject: string): Promise<StoredMsg | null> {
    try {
      return await this.unlessLost(() => this.jsm.direct.getMessage(stream, { last_by_subj: subject }));
    } catch (error) {
      throw isNoResponders(error) ? new MissingStreamError(stream, { cause: error }) : error;
    }
  }

  /** The stream as its leader has it. Throws NoLeaderError if another server answered. */
  async streamInfo(stream: string, options: Partial<StreamInfoRequestOptions> = {}): Promise<StreamInfo> {
    const info = await this.unlessLost(() => this.jsm.streams.info(stream, options)).catch(named(stream));
    if (isLed(info.cluster)) return info;
    throw new NoLeaderError(
      `the stream ${stream} has no leader with a majority behind it: too few servers of the cluster are up, or they are electing one`,
    );
  }

  /** Why this user cannot use JetStream. Undefined if it can, or if the server does not say. */
  async whyNoJetStream(): Promise<JetStreamLack | undefined> {
    try {
      await this.unlessLost(() => this.jsm.getAccountInfo());
      return undefined;
    } catch (error) {
      if (!isWithoutJetStream(error)) return undefined;
      if (isAccountWithoutJetStream(error as Error)) return 'account';
      return this.nc.info?.jetstream === true ? undefined : 'server';
    }
  }

  /** Repeats a read while its stream elects a leader, for as long as a request may take. */
  async whileElecting<T>(read: () => Promise<T>): Promise<T> {
    const untilMs = performance.now() + this.timeoutMs;
    for (let tries = 0; ; tries += 1) {
      try {
        return await read();
      } catch (error) {
        const isPassing = isWithoutLeader(error) || (isWithoutJetStream(error) && this.isClustered);
        if (!isPassing || performance.now() > untilMs) throw error;
        await pause(growingMs(tries, 50, 500));
      }
    }
  }

  /** Rejects as soon as the connection is lost, when the client library would keep waiting. */
  unlessLost<T>(ask: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const lose = (): void => reject(new ConnectionLostError('the connection to the server was lost'));
      if (!this.connected) return lose();
      this.requests.add(lose);
      ask()
        .then(resolve, reject)
        .finally(() => this.requests.delete(lose));
    });
  }

  /** Flushes pending messages and closes the connection. */
  async close(): Promise<void> {
    if (this.nc.isClosed()) return;
    // Without a server, nothing can be flushed.
    if (this.connected) await this.nc.drain().catch(() => this.nc.close());
    else await this.nc.close();
  }

  private async listen(): Promise<void> {
    for await (const status of this.nc.status()) this.note(status);
    this.tell(false);
  }

  private note(status: Status): void {
    if (status.type === 'disconnect') {
      this.logger.warn({ server: status.server }, 'connection lost');
      this.tell(false);
    } else if (status.type === 'reconnect') {
      this.logger.info({ server: status.server }, 'connected again');
      this.tell(true);
    } else if (status.type === 'error') {
      this.logger.warn({ error: status.error }, 'the server reports an error');
    }
  }

  private tell(connected: boolean): void {
    if (this.up === connected) return;
    this.up = connected;
    if (!connected) {
      for (const lose of this.requests) lose();
      this.acks.lose();
    }
    for (const listener of this.listeners) listener(connected);
  }
}

/**
 * Connects, and reconnects whenever the connection is lost. Refuses a server that is too old. Throws AccessError if a
 * server answers the first time, but credentials, certificates or TLS settings are wrong.
 */
export async function connectBus(options: BusOptions): Promise<Bus> {
  const { inboxPrefix, logger = SILENT, timeoutMs = DEFAULT_TIMEOUT_MS, waitOnFirstConnect = true } = options;
  const { nc, reset } = await dial({ ...options, logger, timeoutMs, waitOnFirstConnect });
  requireVersion(nc);
  const jsm = await jetstreamManager(nc, { timeout: timeoutMs, checkAPI: false });
  const bus = new Bus(nc, jsm, logger, timeoutMs, inboxPrefix);
  reset();
  bus.onConnection((connected) => {
    if (connected) reset();
  });
  return bus;
}

/** Throws the error, and names the stream if that does not exist: the answer of the server does not. */
const named =
  (stream: string) =>
  (error: unknown): never => {
    throw isMissingStream(error) ? new MissingStreamError(stream, { cause: error }) : error;
  };

/** Whether the answer is from a leader that recently heard from a majority. Without a cluster it always is. */
export function isLed(cluster: ClusterInfo | undefined): boolean {
  if (cluster === undefined) return true;
  const replicas = cluster.replicas ?? [];
  const onAnswer = replicas.filter(({ active }) => active < nanos(HEARD_MS)).length;
  return Boolean(cluster.leader) && (onAnswer + 1) * 2 > replicas.length + 1;
}

function requireVersion(nc: NatsConnection): void {
  const version = nc.info?.version ?? '0.0.0';
  if (isAtLeast(version, OLDEST_NATS_SERVER)) return;
  void nc.close();
  throw new ServerTooOldError(
    `the nats-server at ${nc.getServer()} is ${version}; Sluice needs ${OLDEST_NATS_SERVER} or newer`,
  );
}
