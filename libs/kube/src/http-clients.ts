import { TLSSocket } from 'node:tls';
import type { KubeConfig } from '@kubernetes/client-node';
import { monotonicMs, Turns } from '#libs/process';
import type { Client } from './kubeconfig.js';

export type Undici = typeof import('undici');
type Dispatcher = import('undici').Dispatcher;

/** How a request is sent. */
export interface Sending {
  readonly headers: Readonly<Record<string, string>>;
  /** Undefined: plain HTTP, for which the default of undici is right. */
  readonly dispatcher: Dispatcher | undefined;
}

/** The credentials for one API server, and the connections to it. */
export interface HttpClients {
  /** `shares`: on a connection that other requests use too. Only for requests without consequences. */
  for(shares: boolean): Promise<Sending>;
  /** Carries out a request when it is its turn. */
  inTurn<T>(perform: () => Promise<T>): Promise<T>;
  /** The server did not answer in time: the connection may be dead without anyone having noticed. */
  distrust(): void;
  close(): Promise<void>;
}

/** Certificates are renewed while a service runs, so they are read again after this time. */
const DISPATCHER_MS = 5 * 60_000;
/** Requests at once on one HTTP/2 connection. API servers allow 100 to 250. More of them open another connection. */
const STREAMS = 100;
/**
 * Requests to all clusters that are sent together, and how long one may keep the next from being sent. If a thousand
 * clusters answered at once, this process would be busy for seconds, and would lose the leases that it renews.
 */
const SENT_AT_ONCE = 64;
const SENT_MS = 500;
const TURNS = new Turns(SENT_AT_ONCE);

/** For credentials that may change at any time: tokens in files, and those of commands. */
export class RenewedClients implements HttpClients {
  private dispatcher: { readonly of: Dispatcher; readonly sinceMs: number } | undefined;

  constructor(
    private readonly client: Client,
    private readonly config: KubeConfig,
  ) {}

  async for(): Promise<Sending> {
    const { headers, dispatcher } = await credentials(this.client, this.config);
    return { headers, dispatcher: this.reused(dispatcher) };
  }

  inTurn<T>(perform: () => Promise<T>): Promise<T> {
    return perform();
  }

  distrust(): void {
    // Without HTTP/2, a request that is given up ends its connection.
  }

  async close(): Promise<void> {
    const { dispatcher } = this;
    this.dispatcher = undefined;
    await dispatcher?.of.destroy();
  }

  /** Reuses the dispatcher: the client library creates one for each request, and with it a connection. */
  private reused(fresh: Dispatcher | undefined): Dispatcher | undefined {
    const nowMs = monotonicMs();
    if (this.dispatcher !== undefined && nowMs - this.dispatcher.sinceMs < DISPATCHER_MS) return this.dispatcher.of;
    // Requests in progress finish on the old one.
    void this.dispatcher?.of.close();
    this.dispatcher = fresh === undefined ? undefined : { of: fresh, sinceMs: nowMs };
    return fresh;
  }
}

/**
 * For a kubeconfig that contains everything itself. One process talks to a thousand clusters, so all that is read from
 * one, watches included, shares one HTTP/2 connection if the server speaks that. Writes have others: undici does not
 * send them next to a request that is in progress.
 */
export class FixedClients implements HttpClients {
  private opened: Promise<{ readonly write: Sending; readonly connect: object | undefined }> | undefined;
  private reads: Dispatcher | undefined;
  private hasHttp2 = true;

  constructor(
    private readonly client: Client,
    private readonly undici: Undici,
    private readonly config: KubeConfig,
  ) {}

  async for(shares: boolean): Promise<Sending> {
    this.opened ??= this.open();
    const { write, connect } = await this.opened;
    if (!shares || connect === undefined || !this.hasHttp2) return write;
    this.reads ??= new this.undici.Agent({
      connect: this.http2Only(connect),
      allowH2: true,
      pipelining: STREAMS,
    });
    return { headers: write.headers, dispatcher: this.reads };
  }

  inTurn<T>(perform: () => Promise<T>): Promise<T> {
    return TURNS.start(perform, SENT_MS);
  }

  /** The next request opens another connection. Those in progress, such as watches, notice themselves. */
  distrust(): void {
    void this.reads?.close();
    this.reads = undefined;
  }

  async close(): Promise<void> {
    const { reads } = this;
    this.reads = undefined;
    await Promise.all([reads?.destroy(), (await this.opened)?.write.dispatcher?.destroy()]);
  }

  /** With HTTP/1.1, a request would wait for the end of the watch before it. */
  private http2Only(connect: object): Connector {
    const connector = this.undici.buildConnector({ ...connect, allowH2: true });
    return (options, callback) =>
      connector(options, (...[error, socket]) => {
        if (error !== null) return callback(error, null);
        if (socket instanceof TLSSocket && socket.alpnProtocol === 'h2') return callback(null, socket);
        this.hasHttp2 = false;
        socket?.destroy();
        callback(new Error(NO_HTTP2), null);
      });
  }

  private async open(): Promise<{ readonly write: Sending; readonly connect: object | undefined }> {
    const write = await credentials(this.client, this.config);
    const { server = '', proxyUrl } = this.config.getCurrentCluster() ?? {};
    if (proxyUrl !== undefined || !server.startsWith('https:')) return { write, connect: undefined };
    const { ca, cert, key, rejectUnauthorized, servername } = await tlsOf(this.config);
    const given = Object.entries({ ca, cert, key, rejectUnauthorized, servername });
    const tls = Object.fromEntries(given.filter(([, value]) => value !== undefined));
    return { write, connect: { ...tls, keepAlive: true, keepAliveInitialDelay: KEEP_ALIVE_MS } };
  }
}

type Connector = ReturnType<Undici['buildConnector']>;

const NO_HTTP2 = 'the server does not speak HTTP/2';

/**
 * Whether a request on a shared connection may have got no answer only because it was shared. An API server that ends a
 * connection, as it does with a 401, still answers, but undici drops that answer.
 */
export const isOfSharing = (error: unknown): boolean =>
  (error as Error).message === NO_HTTP2 || /GOAWAY/.test((error as Error).message);

/** As in the client library: before a load balancer ends an idle connection. */
const KEEP_ALIVE_MS = 30_000;

type TlsOptions = Parameters<KubeConfig['applyToHTTPSOptions']>[0];

async function tlsOf(config: KubeConfig): Promise<TlsOptions> {
  const options: TlsOptions = {};
  await config.applyToHTTPSOptions(options);
  return options;
}

async function credentials({ RequestContext, HttpMethod }: Client, config: KubeConfig): Promise<Sending> {
  const context = new RequestContext(config.getCurrentCluster()?.server ?? '', HttpMethod.GET);
  await config.applySecurityAuthentication(context);
  return { headers: context.getHeaders(), dispatcher: context.getDispatcher() as Dispatcher | undefined };
}
