import type { KubeConfig } from '@kubernetes/client-node';
import { monotonicMs, RunningTime, SILENT, Turns, type Logger } from '#libs/process';
import { KubeUnreachableError, refusalOf } from './errors.js';
import { FixedClients, isOfSharing, RenewedClients, type HttpClients, type Undici } from './http-clients.js';
import { parseKubeconfig } from './kubeconfig-text.js';
import { loadClient, readKubeconfig, type Client } from './kubeconfig.js';
import type { RawList, RawObject } from './objects.js';
import { MissingRights, rightOf, rightWords } from './request-rights.js';
import { Slowness } from './slowness.js';

type Answer = Awaited<ReturnType<Undici['request']>>;

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
  /** The form of the answer; JSON by default. */
  readonly accept?: string;
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
const PAGE = 500;
const JSON_TYPE = 'application/json';
const MERGE_PATCH = 'application/merge-patch+json';
/** Shown in managedFields, so that everyone sees which fields Sluice has set. */
export const FIELD_MANAGER = 'sluice';

/** A connection to one API server. Unlike the client library, it keeps HTTP connections open. */
export class KubeConnection {
  private readonly rights: MissingRights;
  private readonly turns = new Turns(ASKED_AT_ONCE);
  private readonly slowness = new Slowness();
  private lapsing: NodeJS.Timeout | undefined;
  private readonly timeoutMs: number;
  private readonly logger: Logger;

  private constructor(
    private readonly client: Client,
    private readonly undici: Undici,
    private readonly config: KubeConfig,
    private readonly clients: HttpClients,
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
    const clients =
      options.content === undefined ? new RenewedClients(client, config) : new FixedClients(client, undici, config);
    return new KubeConnection(client, undici, config, clients, options);
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
    if (request.isOfMany === true) return this.turns.take(() => this.perform(request, 0));
    const askedMs = monotonicMs();
    return this.clients.inTurn(() => this.perform(request, monotonicMs() - askedMs));
  }

  private async perform(request: KubeRequest, waitedMs: number): Promise<unknown> {
    // A caller that has only so much time has less now.
    const timeoutMs = Math.min(this.timeoutMs, (request.timeoutMs ?? Infinity) - waitedMs);
    if (timeoutMs <= 0)
      throw new KubeUnreachableError(`${this.server} was not asked in time, because this process is too busy`);
    const running = new RunningTime(isHarmless(request) ? timeoutMs : Infinity);
    // After a pause of this process, what may have consequences must not be sent later than its caller believes.
    const signal = isHarmless(request) ? running.signal : AbortSignal.timeout(Math.max(1, Math.ceil(timeoutMs)));
    try {
      return await this.reached(signal, async () => {
        const { answer, text } = await this.answerTo(request, signal);
        this.took(request, running.ms);
        this.judge(request, answer, text);
        if (request.isText === true) return text;
        return text === '' ? {} : (JSON.parse(text) as unknown);
      });
    } finally {
      running.end();
    }
  }

  get(path: string, accept?: string): Promise<unknown> {
    return this.ask({ method: 'GET', path, ...(accept === undefined ? {} : { accept }) });
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

  async *pages<T extends RawObject>(path: string, query = '', accept?: string): AsyncGenerator<RawList<T>> {
    let next = '';
    do {
      const more = next === '' ? '' : `&continue=${encodeURIComponent(next)}`;
      const url = `${path}?${query === '' ? '' : `${query}&`}limit=${PAGE}${more}`;
      const page = (await this.get(url, accept)) as RawList<T>;
      yield page;
      next = page.metadata?.continue ?? '';
    } while (next !== '');
  }

  /** Calls back with each line of the answer as it arrives. Resolves when the answer ends. */
  async lines(path: string, signal: AbortSignal, onLine: (line: string) => void): Promise<void> {
    await this.reached(signal, async () => {
      const request = { method: 'GET', path } as const;
      const answer = await this.send(request, signal);
      this.judge(request, answer, isOk(answer) ? '' : await answer.body.text());
      const decoder = new TextDecoder();
      let rest = '';
      for await (const chunk of answer.body) {
        const lines = (rest + decoder.decode(chunk as Uint8Array, { stream: true })).split('\n');
        rest = lines.pop() ?? '';
        for (const line of lines) onLine(line);
      }
    });
  }

  async close(): Promise<void> {
    clearTimeout(this.lapsing);
    await this.clients.close();
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

  private judge(request: KubeRequest, answer: Answer, text: string): void {
    if (isOk(answer)) return this.rights.granted(request);
    const refusal = refusalOf(answer.statusCode, text, answer.headers['retry-after']?.toString() ?? null);
    if (refusal.lacksRight) this.rights.refused(request, refusal);
    throw refusal;
  }

  private async answerTo(
    request: KubeRequest,
    signal: AbortSignal,
  ): Promise<{ readonly answer: Answer; readonly text: string }> {
    const answer = await this.send(request, signal);
    try {
      return { answer, text: await answer.body.text() };
    } catch (error) {
      if (request.method !== 'GET' || !isOfSharing(error)) throw error;
      const again = await this.sendOn(request, signal, false);
      return { answer: again, text: await again.body.text() };
    }
  }

  /** Only what has no consequences may be sent twice, and may share a connection. */
  private async send(request: KubeRequest, signal: AbortSignal): Promise<Answer> {
    if (request.method !== 'GET') return this.sendOn(request, signal, false);
    try {
      return await this.sendOn(request, signal, true);
    } catch (error) {
      if (isOfSharing(error)) return this.sendOn(request, signal, false);
      throw error;
    }
  }

  private async sendOn(
    { method, path, body, type = JSON_TYPE, accept = JSON_TYPE }: KubeRequest,
    signal: AbortSignal,
    shares: boolean,
  ): Promise<Answer> {
    const { headers, dispatcher } = await this.clients.for(shares);
    return this.undici.request(this.server.replace(/\/$/, '') + path, {
      method,
      signal,
      headers: { ...headers, accept, 'content-type': type, 'user-agent': 'sluice' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(dispatcher === undefined ? {} : { dispatcher }),
    });
  }

  private async reached<T>(signal: AbortSignal, ask: () => Promise<T>): Promise<T> {
    try {
      return await ask();
    } catch (error) {
      if (signal.aborted && !isStop(signal)) this.clients.distrust();
      if (error instanceof Error && (error.name === 'KubeError' || error.name === 'KubeConfigError')) throw error;
      throw new KubeUnreachableError(
        `${this.server} ${isOfCertificate(error) ? 'presents a certificate that the CA in the kubeconfig cannot verify' : 'does not answer'}: ${wordsOf(error)}`,
        { cause: error },
      );
    }
  }
}

/** Nothing is stored. */
const isHarmless = ({ method, path }: KubeRequest): boolean => method === 'GET' || path.includes('dryRun=All');

const isOk = ({ statusCode }: Answer): boolean => statusCode >= 200 && statusCode < 300;

/** The caller needs no answer any more, as opposed to having waited too long. */
const isStop = ({ reason }: AbortSignal): boolean => (reason as { readonly name?: string }).name === 'AbortError';

interface CodedError {
  readonly message?: string;
  readonly code?: string;
}
type ConnectionError = CodedError & { readonly cause?: CodedError };

/** The codes of OpenSSL and Node.js for a certificate that is not trusted. */
const isOfCertificate = (error: unknown): boolean => {
  const { code, cause } = error as ConnectionError;
  return /CERT|UNABLE_TO_(GET|VERIFY)/.test(code ?? cause?.code ?? '');
};

/** If several addresses were tried, there is only a code. Some errors of undici have the reason only in the cause. */
function wordsOf(error: unknown): string {
  const { message, code, cause } = error as ConnectionError;
  const why = cause?.message || cause?.code || '';
  return [message || code || '', why].filter((text) => text !== '').join(': ');
}
