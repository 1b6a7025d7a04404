import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { FunctionConfig, type Refused } from './stand-in-config.js';
import { COLLECTIONS } from './stand-in-schema.js';

const BASE = ['cgi-bin', 'luci'];
const SERVICE_NAMES = ['mwan3', 'firewall', 'ipsec'];
const ACTIONS = ['start', 'stop', 'restart', 'reload'];
/** LuCI's limit for a body, about. */
const MOST_BYTES = 100_000;

/** Troubles of a replica. All may be combined, and changed while it runs. */
export interface Troubles {
  /** Each answer takes so long. */
  delayMs: number;
  /** Everything is answered with this error of the server, such as 500. */
  status: number | undefined;
  /** The next calls are carried out, and then the connection ends without an answer. */
  silent: number;
  /** After so many more calls, each one is cut off before anything is done. With `isLastDone`, the last one is done. */
  deadAfterCalls: number;
  isLastDone: boolean;
  /** The same for calls that change something. */
  deadAfterWrites: number;
  /** The next PUTs delete the object, and then fail with 500. */
  losePuts: number;
  /** The next calls end without an answer, and nothing is done. */
  resets: number;
  /** Calls of services fail with 500, so many times. */
  failServices: number;
  /** Collections, such as `mwan3/v1/policies`, that are answered with this, so many times. */
  collections: Readonly<Record<string, { readonly status: number; readonly text: string; times: number }>>;
}

const NO_TROUBLES: Troubles = {
  delayMs: 0,
  status: undefined,
  silent: 0,
  deadAfterCalls: Infinity,
  isLastDone: false,
  deadAfterWrites: Infinity,
  losePuts: 0,
  resets: 0,
  failServices: 0,
  collections: {},
};

export interface StandInOptions {
  readonly port?: number;
  readonly password?: string;
  readonly tls?: { readonly key: string; readonly cert: string };
}

/** A network function (SD-EWAN CNF) that does what the real one does, with its bugs. */
export class FunctionStandIn {
  readonly config = new FunctionConfig();
  readonly troubles: Troubles = { ...NO_TROUBLES };
  /** Is told each call before it is carried out. */
  onCall: (call: string) => void = () => undefined;
  /** Every call, as `PUT mwan3/v1/policies/a`. */
  readonly calls: string[] = [];
  /** What it says about itself, by module. */
  readonly modules: Record<string, unknown> = {
    conntrack: { count: 0 },
    interface: [{ name: 'wan1', ip: '192.0.2.1' }],
    ipsec: { InitConnection: 'success', details: [] },
    route: [],
    rule: [],
    wan: [{ name: 'wan1', status: 'online' }],
  };
  /** Every service action, as `restart mwan3`. */
  readonly services: string[] = [];
  logins = 0;
  baseUrl = '';
  private sessions = new Set<string>();
  private readonly sockets = new Set<Socket>();

  private constructor(
    private readonly server: Server,
    private readonly options: StandInOptions,
  ) {}

  static async start(options: StandInOptions = {}): Promise<FunctionStandIn> {
    const server = options.tls === undefined ? createServer() : (createTlsServer(options.tls) as unknown as Server);
    const standIn = new FunctionStandIn(server, options);
    server.on('request', (incoming, response) => void standIn.serve(incoming, response));
    server.on('connection', (socket: Socket) => {
      standIn.sockets.add(socket);
      socket.on('close', () => standIn.sockets.delete(socket));
    });
    await new Promise<void>((resolve) => server.listen(options.port ?? 0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    standIn.baseUrl = `http${options.tls === undefined ? '' : 's'}://127.0.0.1:${port}/${BASE.join('/')}`;
    return standIn;
  }

  /** The calls that change something. */
  get writes(): readonly string[] {
    return this.calls.filter((call) => !call.startsWith('GET '));
  }

  /** As a restarted container: its config is gone, its sessions too; the kernel keeps its rules. */
  empty(): void {
    this.config.empty();
    this.sessions.clear();
  }

  endSessions(): void {
    this.sessions.clear();
  }

  heal(): void {
    Object.assign(this.troubles, NO_TROUBLES);
  }

  async close(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    if (this.server.listening) await new Promise((resolve) => this.server.close(resolve));
  }

  private async serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const { troubles } = this;
    const method = incoming.method ?? '';
    const body = await textOf(incoming);
    const segments = (incoming.url ?? '').split('/').filter((part) => part !== '');
    const isCall = segments.length > BASE.length;
    if (isCall) this.calls.push(`${method} ${segments.slice(BASE.length + 1).join('/')}`);
    if (this.isCutOff(isCall)) return void incoming.socket.destroy();
    if (troubles.delayMs > 0) await new Promise((resolve) => setTimeout(resolve, troubles.delayMs).unref());
    if (isCall) this.onCall(this.calls.at(-1) ?? '');
    const answer: Answer =
      troubles.status === undefined
        ? this.answer(method, segments, body, incoming)
        : { status: troubles.status, text: 'error' };
    if (this.isSilent(isCall && method !== 'GET')) return void incoming.socket.destroy();
    response.writeHead(answer.status, {
      'content-type': 'json' in answer ? 'application/json' : 'text/plain',
      ...('cookie' in answer ? { 'set-cookie': answer.cookie, location: '/' } : {}),
    });
    response.end('json' in answer ? JSON.stringify(answer.json ?? null) : answer.text);
  }

  /** Whether nothing is done any more. */
  private isCutOff(isCall: boolean): boolean {
    const { troubles } = this;
    if (troubles.deadAfterWrites <= 0 || troubles.deadAfterCalls <= 0) return true;
    if (isCall && troubles.resets > 0) {
      troubles.resets -= 1;
      return true;
    }
    if (isCall) troubles.deadAfterCalls -= 1;
    return troubles.deadAfterCalls <= 0 && !troubles.isLastDone;
  }

  /** Whether what was done gets no answer. */
  private isSilent(isWrite: boolean): boolean {
    const { troubles } = this;
    if (isWrite) troubles.deadAfterWrites -= 1;
    if (troubles.deadAfterCalls <= 0) return true;
    if (!isWrite || troubles.silent <= 0) return false;
    troubles.silent -= 1;
    return true;
  }

  private answer(method: string, segments: readonly string[], body: string, incoming: IncomingMessage): Answer {
    if (segments.length === BASE.length && method === 'POST') return this.login(body);
    const cookie = /sysauth=(\w+)/.exec(incoming.headers.cookie ?? '')?.[1] ?? '';
    if (!this.sessions.has(cookie)) return { status: 403, text: 'Forbidden' };
    if (body.length > MOST_BYTES) return { status: 413, text: '' };
    const [, , sdewan, ...rest] = segments;
    if (sdewan !== 'sdewan') return { status: 404, text: '' };
    if (rest.join('/') === 'v1/services') return { status: 200, json: { services: SERVICE_NAMES } };
    if (rest[0] === 'v1' && rest[1] === 'status') return this.status(method, rest[2]);
    if (rest[0] === 'v1' && rest[1] === 'service') return this.service(method, rest[2] ?? '', body);
    return this.object(method, rest, body);
  }

  private login(body: string): Answer {
    const form = new URLSearchParams(body);
    const password = this.options.password ?? 'secret';
    if (form.get('luci_username') !== 'root' || form.get('luci_password') !== password)
      return { status: 403, text: 'login' };
    this.logins += 1;
    const session = `s${this.logins}x${Math.random().toString(36).slice(2)}`;
    this.sessions.add(session);
    return { status: 302, text: '', cookie: `sysauth=${session}; path=/cgi-bin/luci` };
  }

  private service(method: string, name: string, body: string): Answer {
    if (method !== 'PUT') return refused({ code: 405, message: 'Method Not Allowed' });
    if (!SERVICE_NAMES.includes(name)) return refused({ code: 400, message: 'Bad request URI' });
    const { action } = (parsed(body) ?? {}) as { readonly action?: unknown };
    if (this.troubles.failServices > 0) {
      this.troubles.failServices -= 1;
      return { status: 500, text: '' };
    }
    if (!ACTIONS.includes(String(action)))
      return refused({ code: 400, message: 'Field[action] checked failed: wrong action' });
    this.services.push(`${String(action)} ${name}`);
    return { status: 200, text: '{"message":"success"}' };
  }

  private status(method: string, module: string | undefined): Answer {
    if (method !== 'GET') return refused({ code: 405, message: 'Method Not Allowed' });
    const all = Object.entries(this.modules).map(([name, status]) => ({ name, status }));
    if (module === undefined) return { status: 200, json: all };
    const one = all.find(({ name }) => name === module);
    return one === undefined ? refused({ code: 400, message: 'Bad request URI' }) : { status: 200, json: one };
  }

  private object(method: string, rest: readonly string[], body: string): Answer {
    const [module, version, collection, name] = rest;
    const path = `${module}/${version}/${collection}`;
    const bad = this.troubles.collections[path];
    if (bad !== undefined && bad.times > 0) {
      bad.times -= 1;
      return bad;
    }
    if (!(path in COLLECTIONS) || rest.length > 4) return refused({ code: 400, message: 'Bad request URI' });
    if ((method === 'POST') !== (name === undefined) && method !== 'GET')
      return refused({ code: 400, message: 'Bad request URI' });
    if (method === 'GET' && name === undefined)
      return { status: 200, json: { [collection ?? '']: this.config.list(path) } };
    if (method === 'GET') {
      const found = this.config.get(path, name ?? '');
      return found === undefined
        ? refused({ code: 404, message: `Cannot find ${COLLECTIONS[path]?.singular}[${name}]` })
        : { status: 200, json: found };
    }
    if (method === 'DELETE') {
      const why = this.config.delete(path, name ?? '');
      return why === undefined ? { status: 200, text: '{"message":"success"}' } : refused(why);
    }
    const object = parsed(body);
    if (object === undefined) return refused({ code: 400, message: 'Body parse error' });
    if (method === 'POST') {
      const why = this.config.post(path, object);
      return why === undefined ? { status: 201, json: this.config.get(path, String(object['name'])) } : refused(why);
    }
    if (method !== 'PUT') return refused({ code: 405, message: 'Method Not Allowed' });
    const isLost = this.troubles.losePuts > 0;
    if (isLost) this.troubles.losePuts -= 1;
    const why = this.config.put(path, name ?? '', object, isLost);
    if (isLost) return { status: 500, text: '' };
    return why === undefined ? { status: 200, json: this.config.get(path, name ?? '') } : refused(why);
  }
}

type Answer =
  | { readonly status: number; readonly json: unknown }
  | { readonly status: number; readonly text: string; readonly cookie?: string };

const refused = ({ code, message }: Refused): Answer => ({ status: code, text: `{"message":"${message}"}` });

function parsed(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value = JSON.parse(text) as unknown;
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}

async function textOf(incoming: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}
