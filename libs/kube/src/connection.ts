import type { KubeConfig } from '@kubernetes/client-node';
import { monotonicMs, SILENT, Turns, type Logger } from '#libs/process';
import { KubeUnreachableError, refusalOf } from './errors.js';
import { parseKubeconfig } from './kubeconfig-text.js';
import { loadClient, readKubeconfig, type Client } from './kubeconfig.js';
import type { RawList, RawObject } from './objects.js';
import { MissingRights, rightOf, rightWords } from './request-rights.js';
import { Slowness } from './slowness.js';

type Undici = typeof import('undici');
type Dispatcher = import('undici').Dispatcher;
type Response = import('undici').Response;

export interface KubeOptions {
  /** A kubeconfig file. Default: the one that kubectl would use, or the pod's service account. */
  readonly kubeconfig?: string | undefined;
  /** The content of a kubeconfig, instead of a file. It must not refer to commands or files. */
  readonly content?: string;
  /** A context of the kubeconfig. Default: its current one. */
  readonly context?: string | undefined;
  readonly env?: NodeJS.ProcessEnv;
  /** A server that takes longer than this counts as unreachable. */
  readonly timeoutMs?: number;
  /** Logs which rights are missing, and when the server becomes slow. */
  readonly logger?: Logger;
  /** Called with a message when the server becomes slow, and with undefined when it is fast again. */
  readonly onSlow?: (words: string | undefined) => void;
}

export interface KubeRequest {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE';
  readonly path: string;
  readonly body?: object;
  /** Of the body; JSON by default. */
  readonly type?: string;
  /** The answer is no JSON, and its text is returned. */
  readonly isText?: true;
  /** How long it may take, if that is less than for other requests. */
  readonly timeoutMs?: number;
  /** One of many requests that are sent at once: it is queued, so that other requests need not wait. */
  readonly isOfMany?: boolean;
}

const DEFAULT_TIMEOUT_MS = 20_000;
/** Each eviction takes a connection, and more of them do not make an API server faster. */
const ASKED_AT_ONCE = 32;
/** Certificates are renewed while a service runs, so they are read again after this time. */
const DISPATCHER_MS = 5 * 60_000;
const PAGE = 500;
const MERGE_PATCH = 'application/merge-patch+json';
/** Shown in managedFields, so that everyone sees which fields Sluice has set. */
export const FIELD_MANAGER = 'sluice';

/** A connection to one API server. Unlike the client library, it keeps HTTP connections open. */
export class KubeConnection {
  private readonly rights: MissingRights;
  private dispatcher: { readonly of: Dispatcher; readonly sinceMs: number } | undefined;

  private readonly turns = new Turns(ASKED_AT_ONCE);
  private readonly slowness = new Slowness();
  private lapsing: NodeJS.Timeout | undefined;
  private readonly timeoutMs: number;
  private readonly logger: Logger;

  private constructor(
    private readonly client: Client,
    private readonly undici: Undici,
    private readonly config: KubeConfig,
    private readonly options: KubeOptions,
  ) {
    this.timeoutMs = options.timeoutMs ?? DEFAULT_TIMEOUT_MS;
    this.logger = options.logger ?? SILENT;
    this.rights = new MissingRights(this.logger);
  }

  /** Reads the kubeconfig, but sends nothing yet. Throws KubeConfigError. */
  static async open(options: KubeOptions = {}): Promise<KubeConnection> {
    const [client, undici] = await Promise.all([loadClient(), import('undici')]);
    const config =
      options.content === undefined
        ? readKubeconfig(client, options.kubeconfig, options.env ?? process.env, options.context)
        : parseKubeconfig(client, options.content);
    return new KubeConnection(client, undici, config, options);
  }

  get server(): string {
    return this.config.getCurrentCluster()?.server ?? '';
  }

  /** The URL of the API server in another kubeconfig, written in one way. Throws KubeConfigError. */
  serverIn(kubeconfig: string): string {
    return new URL(parseKubeconfig(this.client, kubeconfig).getCurrentCluster()?.server ?? '').href;
  }

  /** The JSON of the answer. Throws KubeError if the server refuses, KubeUnreachableError if it does not answer. */
  ask(request: KubeRequest): Promise<unknown> {
    return request.isOfMany === true ? this.turns.take(() => this.perform(request)) : this.perform(request);
  }

  private perform(request: KubeRequest): Promise<unknown> {
    const timeoutMs = Math.min(this.timeoutMs, request.timeoutMs ?? Infinity);
    const signal = AbortSignal.timeout(Math.max(1, Math.ceil(timeoutMs)));
    const startMs = monotonicMs();
    return this.reached(async () => {
      const response = await this.send(request, signal);
      const text = await response.text();
      this.took(request, monotonicMs() - startMs);
      this.judge(request, response, text);
      if (request.isText === true) return text;
      return text === '' ? {} : (JSON.parse(text) as unknown);
    });
  }

  get(path: string): Promise<unknown> {
    return this.ask({ method: 'GET', path });
  }

  /** A JSON merge patch; with a resourceVersion in it, it is a compare-and-set. */
  patch(path: string, body: object, manager = FIELD_MANAGER): Promise<unknown> {
    return this.ask({ method: 'PATCH', path: `${path}?fieldManager=${manager}`, body, type: MERGE_PATCH });
  }

  /** Server-side apply: removes the fields that this manager set before and does not set now. */
  apply(path: string, body: object, manager = FIELD_MANAGER, more = ''): Promise<unknown> {
    const query = `fieldManager=${manager}&force=true${more}`;
    return this.ask({ method: 'PATCH', path: `${path}?${query}`, body, type: 'application/apply-patch+yaml' });
  }

  async *pages<T extends RawObject>(path: string, query = ''): AsyncGenerator<RawList<T>> {
    let next = '';
    do {
      const more = next === '' ? '' : `&continue=${encodeURIComponent(next)}`;
      const page = (await this.get(`${path}?${query === '' ? '' : `${query}&`}limit=${PAGE}${more}`)) as RawList<T>;
      yield page;
      next = page.metadata?.continue ?? '';
    } while (next !== '');
  }

  /** Calls back with each line of the answer as it arrives. Resolves when the answer ends. */
  async lines(path: string, signal: AbortSignal, onLine: (line: string) => void): Promise<void> {
    await this.reached(async () => {
      const request = { method: 'GET', path } as const;
      const response = await this.send(request, signal);
      this.judge(request, response, response.ok ? '' : await response.text());
      const decoder = new TextDecoder();
      let rest = '';
      for await (const chunk of response.body ?? []) {
        const lines = (rest + decoder.decode(chunk as Uint8Array, { stream: true })).split('\n');
        rest = lines.pop() ?? '';
        for (const line of lines) onLine(line);
      }
    });
  }

  async close(): Promise<void> {
    const { dispatcher } = this;
    clearTimeout(this.lapsing);
    this.dispatcher = undefined;
    await dispatcher?.of.destroy();
  }

  /** Reports slow answers, so that operators know what they are waiting for. */
  private took(request: KubeRequest, ms: number): void {
    const change = this.slowness.took(ms, monotonicMs());
    if (change === 'quick') return this.quickAgain();
    if (change === undefined) return;
    const right = rightOf(request);
    const words = `${this.server} answers slowly: ${(ms / 1_000).toFixed(1)} s ${right === undefined ? `for ${request.path}` : `to ${rightWords(right)}`}`;
    this.logger.warn({ tookMs: Math.round(ms) }, words);
    this.options.onSlow?.(words);
    this.awaitLapse();
  }

  private awaitLapse(): void {
    clearTimeout(this.lapsing);
    const nowMs = monotonicMs();
    const next = this.slowness.lapse(nowMs);
    if (next === 'quick') this.quickAgain();
    else if (next !== undefined) this.lapsing = setTimeout(() => this.awaitLapse(), next - nowMs).unref();
  }

  private quickAgain(): void {
    clearTimeout(this.lapsing);
    this.logger.info({}, `${this.server} no longer answers slowly`);
    this.options.onSlow?.(undefined);
  }

  private judge(request: KubeRequest, { ok, status, headers }: Response, text: string): void {
    if (ok) return this.rights.granted(request);
    const refusal = refusalOf(status, text, headers.get('retry-after'));
    if (refusal.lacksRight) this.rights.refused(request, refusal);
    throw refusal;
  }

  private async send(
    { method, path, body, type = 'application/json' }: KubeRequest,
    signal: AbortSignal,
  ): Promise<Response> {
    const url = this.server.replace(/\/$/, '') + path;
    const context = new this.client.RequestContext(url, this.client.HttpMethod.GET);
    await this.config.applySecurityAuthentication(context);
    const dispatcher = this.reused(context.getDispatcher() as Dispatcher | undefined);
    return this.undici.fetch(url, {
      method,
      signal,
      headers: { ...context.getHeaders(), accept: 'application/json', 'content-type': type, 'user-agent': 'sluice' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(dispatcher === undefined ? {} : { dispatcher }),
    });
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

  private async reached<T>(ask: () => Promise<T>): Promise<T> {
    try {
      return await ask();
    } catch (error) {
      if (error instanceof Error && (error.name === 'KubeError' || error.name === 'KubeConfigError')) throw error;
      throw new KubeUnreachableError(
        `${this.server} ${isOfCertificate(error) ? 'presents a certificate that the CA in the kubeconfig cannot verify' : 'does not answer'}: ${wordsOf(error)}`,
        { cause: error },
      );
    }
  }
}

/** The codes of OpenSSL and Node.js for a certificate that is not trusted. */
const isOfCertificate = (error: unknown): boolean =>
  /CERT|UNABLE_TO_(GET|VERIFY)/.test((error as { readonly cause?: { readonly code?: string } }).cause?.code ?? '');

/** undici says `fetch failed`, and the reason only in the cause. */
function wordsOf(error: unknown): string {
  const { message, cause } = error as Error & {
    readonly cause?: { readonly message?: string; readonly code?: string };
  };
  // If several addresses were tried, there is only a code.
  const why = cause?.message || cause?.code || '';
  return why === '' ? message : `${message}: ${why}`;
}
