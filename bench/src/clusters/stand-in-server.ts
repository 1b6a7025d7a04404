import type { IncomingMessage, ServerResponse } from 'node:http';
import { createSecureServer, type Http2SecureServer } from 'node:http2';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { Refusal, StandInCluster, type Place, type Stored, type StoredEvent } from './stand-in-cluster.js';
import { KINDS, type ServedKind } from './stand-in-kinds.js';

type Fields = Record<string, unknown>;

export interface Call {
  readonly method: string;
  readonly path: string;
  readonly type: string;
  readonly body: string;
}

export interface ServerOptions {
  readonly key: string;
  readonly cert: string;
  readonly token: string;
  /** How often a watch gets a bookmark. Default: every minute, like kube-apiserver. */
  readonly bookmarkMs?: number;
}

/** What a call is, as `kubectl` would name it. */
export type Verb = 'ready' | 'kinds' | 'get' | 'list' | 'watch' | 'dry-run' | 'apply' | 'patch' | 'delete';

/** What the server says about a group that it does not serve. */
const NO_PAGE = '404 page not found';
const NAMESPACES = KINDS.find(({ kind }) => kind === 'Namespace') as ServedKind;

/** One API server of a cluster. */
class StandIn {
  readonly cluster = new StandInCluster(NAMESPACES);
  readonly watches = new Set<Watch>();
  /** Kept only of those that are asked for. */
  calls: Call[] | undefined;

  constructor(readonly listener: Server) {
    this.cluster.onEvent = (event) => this.watches.forEach((watch) => watch.send(event));
  }
}

/**
 * Many API servers in one process, each with a port of its own: HTTP/2 or HTTP/1.1 over TLS, like kube-apiserver, and
 * the calls that Sluice makes of it.
 */
export class StandInServers {
  /** Since the last look, of all servers. */
  readonly counts = new Map<Verb, number>();
  connections = 0;
  private readonly byPort = new Map<number, StandIn>();
  private readonly sockets = new Set<Socket>();
  private readonly timer: NodeJS.Timeout;

  private constructor(
    private readonly server: Http2SecureServer,
    private readonly options: ServerOptions,
  ) {
    const { bookmarkMs = 60_000 } = options;
    this.timer = setInterval(() => this.sendBookmarks(bookmarkMs), Math.min(1_000, bookmarkMs / 2));
    this.timer.unref();
  }

  static async start(count: number, options: ServerOptions): Promise<StandInServers> {
    const { key, cert } = options;
    const server = createSecureServer({ key, cert, allowHTTP1: true, settings: { maxConcurrentStreams: 250 } });
    const all = new StandInServers(server, options);
    // As kube-apiserver does, it leaves it to the client to end an idle connection.
    Object.assign(server, { keepAliveTimeout: 0 });
    // What they have in common is enough.
    const serve = (request: unknown, response: unknown): void =>
      void all.serve(request as IncomingMessage, response as ServerResponse);
    server.on('request', serve);
    // A client that ends in the middle is no news.
    server.on('sessionError', () => undefined).on('tlsClientError', () => undefined);
    for (let i = 0; i < count; i += 1) await all.listen();
    return all;
  }

  get origins(): readonly string[] {
    return [...this.byPort.keys()].map((port) => `https://127.0.0.1:${port}`);
  }

  get openWatches(): number {
    return [...this.byPort.values()].reduce((all, { watches }) => all + watches.size, 0);
  }

  get openConnections(): number {
    return this.sockets.size;
  }

  /** Keeps the calls of this server from now on. */
  record(origin: string): void {
    this.at(origin).calls = [];
  }

  callsOf(origin: string): readonly Call[] {
    return this.at(origin).calls ?? [];
  }

  objectsOf(origin: string, plural: string): readonly Stored[] {
    const kind = KINDS.find((one) => one.plural === plural);
    return kind === undefined ? [] : this.at(origin).cluster.list(kind);
  }

  async close(): Promise<void> {
    clearInterval(this.timer);
    for (const socket of this.sockets) socket.destroy();
    await Promise.all(
      [...this.byPort.values()].map(({ listener }) => new Promise((resolve) => listener.close(resolve))),
    );
  }

  private async listen(): Promise<void> {
    const listener = createServer((socket) => {
      this.connections += 1;
      this.sockets.add(socket);
      socket.once('close', () => this.sockets.delete(socket));
      this.server.emit('connection', socket);
    });
    await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
    this.byPort.set((listener.address() as AddressInfo).port, new StandIn(listener));
  }

  private at(origin: string): StandIn {
    const standIn = this.byPort.get(Number(new URL(origin).port));
    if (standIn === undefined) throw new Error(`there is no server at ${origin}`);
    return standIn;
  }

  private async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { headers, method = 'GET', url = '/' } = request;
    const authority = headers[':authority'] ?? headers.host;
    let body = '';
    request.setEncoding('utf8');
    for await (const chunk of request) body += chunk as string;
    try {
      const standIn = this.at(`https://${String(authority)}`);
      standIn.calls?.push({ method, path: url, type: headers['content-type'] ?? '', body });
      if (headers.authorization !== `Bearer ${this.options.token}`)
        throw new Refusal(401, 'Unauthorized', 'Unauthorized');
      this.answer(
        standIn,
        { method, url: new URL(url, 'https://stand-in'), type: headers['content-type'] ?? '', body },
        response,
      );
    } catch (error) {
      const refusal = error instanceof Refusal ? error : new Refusal(500, 'InternalError', String(error));
      if (refusal.message !== NO_PAGE) return send(response, refusal.code, statusOf(refusal));
      response.writeHead(404, { 'content-type': 'text/plain; charset=utf-8' });
      response.end(`${NO_PAGE}\n`);
    }
  }

  private answer(standIn: StandIn, { method, url, type, body }: Question, response: ServerResponse): void {
    const { pathname, searchParams: query } = url;
    const { cluster } = standIn;
    if (pathname === '/readyz') {
      this.count('ready');
      response.writeHead(200, { 'content-type': 'text/plain; charset=utf-8' });
      return void response.end('ok');
    }
    const served = kindsAt(pathname);
    if (served !== undefined) {
      this.count('kinds');
      return send(response, 200, served);
    }
    const { place, isCollection } = placeOf(pathname);
    if (isCollection && query.get('watch') !== null) {
      this.count('watch');
      return watch(standIn, place.kind, query, response);
    }
    if (isCollection) {
      this.count('list');
      return send(response, 200, listOf(cluster, place.kind, query));
    }
    const manager = query.get('fieldManager') ?? 'unknown';
    switch (method) {
      case 'GET':
        this.count('get');
        return send(response, 200, cluster.read(place));
      case 'PATCH': {
        const parsed: unknown = JSON.parse(body);
        if (type.startsWith('application/apply-patch')) {
          const applying = { manager, force: query.get('force') === 'true', isDry: query.get('dryRun') === 'All' };
          this.count(applying.isDry ? 'dry-run' : 'apply');
          const { object, isNew } = cluster.apply(place, parsed as Fields, applying);
          return send(response, isNew ? 201 : 200, object);
        }
        this.count('patch');
        if (type.startsWith('application/json-patch')) return send(response, 200, patched(cluster, place, parsed));
        return send(response, 200, cluster.patch(place, parsed as Fields, manager));
      }
      case 'DELETE': {
        this.count('delete');
        const { preconditions = {} } = (body === '' ? {} : JSON.parse(body)) as { readonly preconditions?: object };
        const { uid } = cluster.delete(place, preconditions).metadata;
        const details = { name: place.name, kind: place.kind.plural, uid };
        return send(response, 200, { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', details });
      }
      default:
        throw new Refusal(405, 'MethodNotAllowed', `the stand-in does not know ${method}`);
    }
  }

  private count(verb: Verb): void {
    this.counts.set(verb, (this.counts.get(verb) ?? 0) + 1);
  }

  private sendBookmarks(everyMs: number): void {
    const nowMs = performance.now();
    for (const { watches, cluster } of this.byPort.values())
      for (const watch of watches) watch.bookmark(cluster.version, nowMs, everyMs);
  }
}

interface Question {
  readonly method: string;
  readonly url: URL;
  readonly type: string;
  readonly body: string;
}

/** The answer to a question for the kinds of a group; undefined if it was none. */
function kindsAt(pathname: string): object | undefined {
  const [, core, group] = /^\/(?:api\/(v1)|apis\/([^/]+\/[^/]+))$/.exec(pathname) ?? [];
  const apiVersion = core ?? group;
  if (apiVersion === undefined) return undefined;
  const kinds = KINDS.filter((one) => one.apiVersion === apiVersion);
  if (kinds.length === 0) throw new Refusal(404, '', NO_PAGE);
  const resources = kinds.map(({ plural, kind, isNamespaced }) => ({
    name: plural,
    singularName: kind.toLowerCase(),
    namespaced: isNamespaced,
    kind,
    verbs: ['get', 'list', 'watch', 'patch', 'delete'],
  }));
  return { kind: 'APIResourceList', groupVersion: apiVersion, resources };
}

const PATH =
  /^\/(?:api\/(?<core>v1)|apis\/(?<group>[^/]+\/[^/]+))(?:\/namespaces\/(?<namespace>[^/]+)(?=\/))?\/(?<plural>[^/]+)(?:\/(?<name>[^/]+))?$/;

function placeOf(pathname: string): { readonly place: Place; readonly isCollection: boolean } {
  const { core, group, namespace = '', plural, name } = PATH.exec(pathname)?.groups ?? {};
  const kind = KINDS.find((one) => one.apiVersion === (core ?? group) && one.plural === plural);
  if (kind === undefined) throw new Refusal(404, '', NO_PAGE);
  return { place: { kind, namespace, name: decodeURIComponent(name ?? '') }, isCollection: name === undefined };
}

type Matching = (object: Stored | undefined) => boolean;

/** Only `key=value`, which is what Sluice sends. */
function matching(query: URLSearchParams): Matching {
  const [key, value] = (query.get('labelSelector') ?? '').split('=');
  if (key === undefined || key === '') return (object) => object !== undefined;
  return (object) => object?.metadata.labels?.[key] === value;
}

function listOf(cluster: StandInCluster, kind: ServedKind, query: URLSearchParams): object {
  // An item of a list does not name its kind.
  const items = cluster
    .list(kind)
    .filter(matching(query))
    .map(({ apiVersion: _, kind: __, ...item }) => item);
  return {
    kind: `${kind.kind}List`,
    apiVersion: kind.apiVersion,
    metadata: { resourceVersion: String(cluster.version) },
    items,
  };
}

function patched(cluster: StandInCluster, place: Place, operations: unknown): Stored {
  const [version, managers] = operations as readonly { readonly path: string; readonly value: unknown }[];
  if (version?.path !== '/metadata/resourceVersion' || managers?.path !== '/metadata/managedFields')
    throw new Refusal(422, 'Invalid', 'the stand-in knows only the JSON patch of managedFields');
  return cluster.writeManagers(place, version.value, managers.value as Parameters<StandInCluster['writeManagers']>[2]);
}

/** One open watch. */
class Watch {
  private lastMs = performance.now();

  constructor(
    private readonly kind: ServedKind,
    private readonly matches: Matching,
    private readonly write: (line: object) => void,
  ) {}

  /** With a selector, an object that ceases to match counts as deleted. */
  send({ kind, before, after }: StoredEvent): void {
    if (kind !== this.kind) return;
    const [was, is] = [this.matches(before), this.matches(after)];
    if (was && is) this.write({ type: 'MODIFIED', object: after });
    else if (is) this.write({ type: 'ADDED', object: after });
    else if (was)
      this.write({
        type: 'DELETED',
        object:
          after === undefined
            ? before
            : { ...before, metadata: { ...before?.metadata, resourceVersion: after.metadata.resourceVersion } },
      });
  }

  bookmark(version: number, nowMs: number, everyMs: number): void {
    if (nowMs - this.lastMs < everyMs) return;
    this.lastMs = nowMs;
    const { kind, apiVersion } = this.kind;
    this.write({
      type: 'BOOKMARK',
      object: { kind, apiVersion, metadata: { resourceVersion: String(version), creationTimestamp: null } },
    });
  }
}

function watch(
  { cluster, watches }: StandIn,
  kind: ServedKind,
  query: URLSearchParams,
  response: ServerResponse,
): void {
  const since = Number(query.get('resourceVersion') ?? '0');
  const oldest = cluster.events[0]?.version ?? 0;
  response.writeHead(200, { 'content-type': 'application/json' });
  const write = (line: object): void => void response.write(`${JSON.stringify(line)}\n`);
  if (since < oldest - 1 && cluster.events.length > 0) {
    const gone = new Refusal(410, 'Expired', `too old resource version: ${since} (${oldest})`);
    write({ type: 'ERROR', object: statusOf(gone) });
    return void response.end();
  }
  const own = new Watch(kind, matching(query), write);
  for (const event of cluster.events) if (event.version > since) own.send(event);
  watches.add(own);
  // The headers must not wait for the first event.
  response.flushHeaders();
  const seconds = Number(query.get('timeoutSeconds') ?? '1800');
  const timer = setTimeout(() => response.end(), seconds * 1_000);
  response.once('close', () => {
    clearTimeout(timer);
    watches.delete(own);
  });
}

function send(response: ServerResponse, code: number, body: object): void {
  response.writeHead(code, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}

const statusOf = ({ code, reason, message, causes }: Refusal): object => ({
  kind: 'Status',
  apiVersion: 'v1',
  metadata: {},
  status: 'Failure',
  message,
  reason,
  ...(causes.length === 0 ? {} : { details: { causes } }),
  code,
});
