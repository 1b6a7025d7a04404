import { Agent, request, type RequestOptions } from 'node:https';
import type { IncomingMessage } from 'node:http';

/** An object of the API server, as far as tests look into it. */
export interface KubeObject {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly uid?: string;
    readonly resourceVersion?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly deletionTimestamp?: string;
  };
  // What the test asks for is what it knows.
  readonly spec?: Readonly<Record<string, unknown>>;
  readonly status?: Readonly<Record<string, unknown>>;
}

interface Reply {
  readonly code: number;
  readonly body: unknown;
  /** What the server warns of, as kubectl shows it. */
  readonly warnings: readonly string[];
}

/** How to reach an API server, and as whom. */
export interface KubeAccess {
  readonly server: string;
  readonly ca: string;
  readonly token: string;
}

/** A client of the tests' own, so that what they see does not come by way of what they test. */
export class KubeApi {
  private readonly agent: Agent;
  private readonly watches: Agent;

  /** `timeoutMs`: of a call; a server that is only just starting may take one and never answer it. */
  constructor(
    private readonly access: KubeAccess,
    private readonly timeoutMs = 15_000,
  ) {
    this.agent = new Agent({ ca: access.ca, keepAlive: true, maxSockets: 16 });
    this.watches = new Agent({ ca: access.ca });
  }

  close(): void {
    this.agent.destroy();
    this.watches.destroy();
  }

  /** The object, or undefined where there is none. */
  async get(path: string): Promise<KubeObject | undefined> {
    const reply = await this.call('GET', path);
    return reply.code === 404 ? undefined : (wanted(reply, `GET ${path}`) as KubeObject);
  }

  async list(path: string): Promise<readonly KubeObject[]> {
    return (wanted(await this.call('GET', path), `GET ${path}`) as { readonly items: readonly KubeObject[] }).items;
  }

  async create(path: string, body: object): Promise<KubeObject> {
    return wanted(await this.call('POST', path, body), `POST ${path}`) as KubeObject;
  }

  /** A JSON merge patch, as kubectl's own commands send it. */
  async patch(path: string, body: object, manager = 'kubectl'): Promise<KubeObject> {
    const full = `${path}${path.includes('?') ? '&' : '?'}fieldManager=${manager}`;
    return wanted(await this.call('PATCH', full, body, 'application/merge-patch+json'), `PATCH ${path}`) as KubeObject;
  }

  /** Deletes at once; what is gone already is fine. */
  async remove(path: string, options: object = {}): Promise<void> {
    const reply = await this.call('DELETE', path, {
      kind: 'DeleteOptions',
      apiVersion: 'v1',
      gracePeriodSeconds: 0,
      ...options,
    });
    if (reply.code !== 404 && reply.code !== 409) wanted(reply, `DELETE ${path}`);
  }

  /** `as`: somebody and their groups, in whose name it is asked; the administrator may do that. */
  call(
    method: string,
    path: string,
    body?: object,
    type = 'application/json',
    as: readonly string[] = [],
  ): Promise<Reply> {
    const [user, ...groups] = as;
    const impersonated =
      user === undefined
        ? {}
        : { 'impersonate-user': user, ...(groups.length === 0 ? {} : { 'impersonate-group': groups }) };
    return new Promise((resolve, reject) => {
      const sent = this.send(
        method,
        path,
        body,
        { agent: this.agent, headers: { 'content-type': type, ...impersonated } },
        (message) => {
          let text = '';
          message.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
          message.once('error', reject).once('end', () =>
            resolve({
              code: message.statusCode ?? 0,
              body: parsed(text),
              warnings: (message.headersDistinct['warning'] ?? []).map(warningOf),
            }),
          );
        },
        reject,
      );
      sent.setTimeout(this.timeoutMs, () =>
        sent.destroy(new Error(`${method} ${path}: no answer within ${this.timeoutMs} ms`)),
      );
    });
  }

  /** Calls back for each event until the watch ends, or is ended by what this returns. */
  watch(path: string, heard: (type: string, object: KubeObject) => void, ended: () => void): () => void {
    const sent = this.send(
      'GET',
      path,
      undefined,
      { agent: this.watches },
      (message) => {
        let rest = '';
        message.setEncoding('utf8').on('data', (chunk: string) => {
          const lines = (rest + chunk).split('\n');
          rest = lines.pop() ?? '';
          for (const line of lines) {
            const { type, object } = JSON.parse(line) as { readonly type: string; readonly object: KubeObject };
            heard(type, object);
          }
        });
        message.once('close', ended).once('error', () => undefined);
      },
      ended,
    );
    return () => sent.destroy();
  }

  private send(
    method: string,
    path: string,
    body: object | undefined,
    options: RequestOptions,
    heard: (message: IncomingMessage) => void,
    failed: (error: Error) => void,
  ) {
    const text = body === undefined ? '' : JSON.stringify(body);
    // Without a length Node sends the body of a DELETE in a way that garbles the next request of that connection.
    const headers = {
      authorization: `Bearer ${this.access.token}`,
      'content-length': Buffer.byteLength(text),
      ...options.headers,
    };
    const sent = request(this.access.server + path, { ...options, method, headers }, heard);
    sent.once('error', failed);
    sent.end(text);
    return sent;
  }
}

/** `299 - "words"`, with quotes and backslashes in the words escaped. */
const warningOf = (header: string): string => header.replace(/^\d+ \S+ "(.*)"$/s, '$1').replace(/\\(.)/g, '$1');

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function wanted({ code, body }: Reply, what: string): unknown {
  if (code >= 200 && code < 300) return body;
  throw new Error(`${what}: ${code} ${JSON.stringify(body).slice(0, 500)}`);
}
