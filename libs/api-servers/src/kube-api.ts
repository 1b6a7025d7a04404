import { Agent, request, type RequestOptions } from 'node:https';
import type { IncomingMessage } from 'node:http';

/** An object of the API server, with the fields that tests read. */
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
  // The test states the type of the answer.
  readonly spec?: Readonly<Record<string, unknown>>;
  readonly status?: Readonly<Record<string, unknown>>;
}

interface Reply {
  readonly code: number;
  readonly body: unknown;
  /** The server's warnings, as kubectl shows them. */
  readonly warnings: readonly string[];
}

/** The address of an API server, and the credentials. */
export interface KubeAccess {
  readonly server: string;
  readonly ca: string;
  readonly token: string;
}

/** A separate client for tests, so that they do not observe through the code that they test. */
export class KubeApi {
  private readonly agent: Agent;
  private readonly watches: Agent;

  /** `timeoutMs`: for one call. A server that is just starting may accept a request and never answer it. */
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

  /** The object; undefined if it does not exist. */
  async get(path: string): Promise<KubeObject | undefined> {
    const reply = await this.call('GET', path);
    return reply.code === 404 ? undefined : (successBody(reply, `GET ${path}`) as KubeObject);
  }

  async list(path: string): Promise<readonly KubeObject[]> {
    return (successBody(await this.call('GET', path), `GET ${path}`) as { readonly items: readonly KubeObject[] })
      .items;
  }

  async create(path: string, body: object): Promise<KubeObject> {
    return successBody(await this.call('POST', path, body), `POST ${path}`) as KubeObject;
  }

  /** A JSON merge patch, as kubectl sends it. */
  async patch(path: string, body: object, manager = 'kubectl'): Promise<KubeObject> {
    const full = `${path}${path.includes('?') ? '&' : '?'}fieldManager=${manager}`;
    return successBody(
      await this.call('PATCH', full, body, 'application/merge-patch+json'),
      `PATCH ${path}`,
    ) as KubeObject;
  }

  /** Deletes at once. It is fine if the object is already gone. */
  async remove(path: string, options: object = {}): Promise<void> {
    const reply = await this.call('DELETE', path, {
      kind: 'DeleteOptions',
      apiVersion: 'v1',
      gracePeriodSeconds: 0,
      ...options,
    });
    if (reply.code !== 404 && reply.code !== 409) successBody(reply, `DELETE ${path}`);
  }

  /** `as`: a user and their groups, to impersonate. The administrator may do that. */
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

  /** Calls back for each event until the watch ends. Returns a function that ends it. */
  watch(path: string, onEvent: (type: string, object: KubeObject) => void, onEnd: () => void): () => void {
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
            onEvent(type, object);
          }
        });
        message.once('close', onEnd).once('error', () => undefined);
      },
      onEnd,
    );
    return () => sent.destroy();
  }

  private send(
    method: string,
    path: string,
    body: object | undefined,
    options: RequestOptions,
    onResponse: (message: IncomingMessage) => void,
    onError: (error: Error) => void,
  ) {
    const text = body === undefined ? '' : JSON.stringify(body);
    // Without a length, Node.js sends the body of a DELETE in a way that corrupts the next request on that connection.
    const headers = {
      authorization: `Bearer ${this.access.token}`,
      'content-length': Buffer.byteLength(text),
      ...options.headers,
    };
    const sent = request(this.access.server + path, { ...options, method, headers }, onResponse);
    sent.once('error', onError);
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

function successBody({ code, body }: Reply, what: string): unknown {
  if (code >= 200 && code < 300) return body;
  throw new Error(`${what}: ${code} ${JSON.stringify(body).slice(0, 500)}`);
}
