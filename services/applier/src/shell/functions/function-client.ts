import { isIP, type LookupFunction } from 'node:net';
import { Agent, interceptors, request, type Dispatcher } from 'undici';
import { RefusedError, UnreachableError } from '../ports.js';

/** How to reach one replica of a network function. */
export interface FunctionAddress {
  /** The place of its LuCI, such as `https://10-0-0-7.sdewan.pod.cluster.local/cgi-bin/luci`. */
  readonly baseUrl: string;
  /** Where to connect, if the host of the URL is only a name in its certificate. Default: what it resolves to. */
  readonly ip?: string | undefined;
  readonly user: string;
  readonly password: string;
  /** The authorities that its certificate may come from, as PEM. Default: those of the system. */
  readonly ca?: string | undefined;
  /** How long one call may take. */
  readonly callTimeoutMs: number;
}

export type Method = 'GET' | 'POST' | 'PUT' | 'DELETE';

/** What a replica answered: 2xx, or 4xx with its message. */
export interface FunctionAnswer {
  readonly status: number;
  /** Undefined if it is no JSON. */
  readonly body: unknown;
  readonly message: string;
  /** Whether it has the form in which a function answers: JSON, or its message. Another server has one of its own. */
  readonly isUnderstood: boolean;
}

/** The replica works, and failed at this call. */
export class FailedCallError extends RefusedError {
  constructor(message: string) {
    super('node', message);
  }
}

/** The services of a replica: a cheap question that every working replica answers. */
export const SERVICES = 'sdewan/v1/services';

/** Much more than a replica with thousands of objects answers. */
const MOST_BYTES = 32 * 1024 * 1024;
/** A replica may close an idle connection just when it is used again. Only reads are repeated. */
const ONCE_MORE = {
  maxRetries: 1,
  minTimeout: 1,
  maxTimeout: 1,
  methods: ['GET' as const],
  statusCodes: [],
  errorCodes: ['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE'],
};
/** What people see of an answer. */
const MOST_WORDS = 300;
/** What a server in between answers when it is too busy. No function does. */
const BUSY = [408, 425, 429];
/** LuCI's name of the cookie, and those of later versions. */
const COOKIE = /^(sysauth(?:_https?)?=[^;]+)/;

/** Resolves every name to this address. */
function lookupOf(address: string): LookupFunction {
  const family = isIP(address);
  return (_host, options, callback) =>
    options.all === true ? callback(null, [{ address, family }]) : callback(null, address, family);
}

/** Calls one replica of a network function. It logs in on its own. Each call has a timeout, each answer a limit. */
export class FunctionClient {
  private readonly agent: Agent;
  private readonly dispatcher: Dispatcher;
  private readonly base: string;
  private session: Promise<string> | undefined;
  private lateUntilMs = 0;

  constructor(
    private readonly address: FunctionAddress,
    /** Ends running calls when the applier is stopped. */
    private readonly ending?: AbortSignal,
  ) {
    this.base = address.baseUrl.replace(/\/+$/, '');
    const { callTimeoutMs: timeout, ca, ip } = address;
    this.agent = new Agent({
      connect: {
        timeout,
        ...(ca === undefined ? {} : { ca }),
        ...(ip === undefined ? {} : { lookup: lookupOf(ip) }),
      },
      maxResponseSize: MOST_BYTES,
    });
    this.dispatcher = this.agent.compose(interceptors.retry(ONCE_MORE));
  }

  get callTimeoutMs(): number {
    return this.address.callTimeoutMs;
  }

  /**
   * For a path such as `sdewan/mwan3/v1/policies`. Throws Unreachable, also if it is not let in or something else
   * answers there; Refused if only this call fails. After the timeout, which includes a login, nothing more is sent.
   */
  async call(method: Method, path: string, body?: unknown, timeoutMs = this.callTimeoutMs): Promise<FunctionAnswer> {
    try {
      const answer = await this.withSession(method, path, body, timeoutMs);
      const failure = isOfFunction(path, answer) ? undefined : await this.failure(method, path, answer);
      if (failure !== undefined) throw failure;
      return answer;
    } catch (error) {
      // The replica may have received a call that it did not answer, and carry it out later.
      if (method !== 'GET' && error instanceof UnreachableError) this.expectLateWrites();
      throw error;
    }
  }

  /** A call without an answer, or a copy that was paused, may still change something during one call timeout. */
  expectLateWrites(): void {
    this.lateUntilMs = performance.now() + this.callTimeoutMs;
  }

  /** Resolves when no late write is expected any more: whether it had to wait for that. */
  async settled(): Promise<boolean> {
    for (let waited = false; ; waited = true) {
      const leftMs = this.lateUntilMs - performance.now();
      if (leftMs <= 0 || this.ending?.aborted === true) return waited;
      await new Promise((resolve) => setTimeout(resolve, leftMs));
    }
  }

  async close(): Promise<void> {
    await this.agent.destroy();
  }

  /** A session may have ended, so one 403 leads to a new login. */
  private async withSession(method: Method, path: string, body: unknown, timeoutMs: number): Promise<FunctionAnswer> {
    const endMs = performance.now() + timeoutMs;
    const exchange = async (session: Promise<string>): Promise<Received> => {
      const cookie = await session.catch((error: unknown) => this.loggedOut(session, error));
      const leftMs = endMs - performance.now();
      if (leftMs <= 0)
        throw new UnreachableError(
          `${method} ${this.base}/${path} was not answered within ${Math.round(timeoutMs)} ms`,
        );
      return this.exchange(method, path, { headers: { cookie }, body, timeoutMs: leftMs });
    };
    const session = (this.session ??= this.login());
    const first = await exchange(session);
    if (first.status !== 403) return first;
    if (this.session === session) this.session = this.login();
    return exchange(this.session ?? this.login());
  }

  private loggedOut(session: Promise<string>, error: unknown): never {
    if (this.session === session) this.session = undefined;
    throw error;
  }

  private async login(): Promise<string> {
    const { user, password } = this.address;
    if (password === '') throw new UnreachableError(`there is no password for ${user} at ${this.base}`);
    const form = new URLSearchParams({ luci_username: user, luci_password: password });
    const answer = await this.exchange('POST', '', {
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      text: form.toString(),
      timeoutMs: this.callTimeoutMs,
    });
    if (answer.status >= 500) throw new UnreachableError(`${this.base} answers the login with ${wordsOf(answer)}`);
    const [cookie] = answer.cookies.flatMap((line) => COOKIE.exec(line)?.[1] ?? []);
    if (answer.status === 302 && cookie !== undefined) return cookie;
    const why = answer.status === 302 ? 'it set no cookie' : `it answered ${wordsOf(answer)}`;
    throw new UnreachableError(`${this.base} does not let ${user} in: ${why}. Check the user and the password.`);
  }

  /**
   * What is wrong with this answer; undefined if it is a refusal in other words. It is about this call only if the
   * replica answers another call as a function does. If not, something else is at this address, or in between.
   */
  private async failure(method: Method, path: string, answer: FunctionAnswer): Promise<Error | undefined> {
    const { status } = answer;
    const message = `${method} ${this.base}/${path} ${this.howAnswered(answer)}`;
    if (path === SERVICES || isOfServerBetween(status)) return new UnreachableError(message);
    const other = await this.withSession('GET', SERVICES, undefined, this.callTimeoutMs);
    if (!isOfFunction(SERVICES, other)) return new UnreachableError(`${message}, and so is ${SERVICES}`);
    if (status === 403) return new RefusedError('node', message);
    return status >= 400 && status < 500 ? undefined : new FailedCallError(message);
  }

  private howAnswered(answer: FunctionAnswer): string {
    if (answer.status === 403)
      return `is forbidden, also after a new login as ${this.address.user}: check what this user may do`;
    const isOther = answer.status < 500 && !isOfServerBetween(answer.status);
    return `is answered ${wordsOf(answer)}${isOther ? ', which is no answer of a network function' : ''}`;
  }

  private async exchange(method: Method, path: string, { headers, body, text, timeoutMs }: Sent): Promise<Received> {
    const url = `${this.base}/${path}`;
    const timeout = AbortSignal.timeout(Math.max(1, Math.ceil(timeoutMs)));
    const signal = this.ending === undefined ? timeout : AbortSignal.any([timeout, this.ending]);
    try {
      const response = await request(url, {
        method,
        headers,
        dispatcher: this.dispatcher,
        signal,
        ...(body === undefined && text === undefined ? {} : { body: text ?? JSON.stringify(body) }),
      });
      const cookies = response.headers['set-cookie'] ?? [];
      return {
        status: response.statusCode,
        cookies: typeof cookies === 'string' ? [cookies] : cookies,
        ...understood(await response.body.text()),
      };
    } catch (error) {
      if (timeout.aborted)
        throw new UnreachableError(`${method} ${url} was not answered within ${Math.round(timeoutMs)} ms`);
      if ((error as { readonly code?: string }).code === 'UND_ERR_RES_EXCEEDED_MAX_SIZE')
        throw new RefusedError('node', `${method} ${url}: the answer has more than ${MOST_BYTES} bytes`);
      throw new UnreachableError(`${method} ${url}: ${reasonOf(error)}`);
    }
  }
}

interface Sent {
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: unknown;
  readonly text?: string;
  readonly timeoutMs: number;
}
interface Received extends FunctionAnswer {
  readonly cookies: readonly string[];
}

/** Errors are `{"message":"…"}` as text, whose quotes are not escaped. */
function understood(text: string): Pick<FunctionAnswer, 'body' | 'message' | 'isUnderstood'> {
  const plain = /^\s*\{\s*"message"\s*:\s*"([\s\S]*)"\s*\}\s*$/.exec(text)?.[1];
  const message = (plain ?? text).trim().slice(0, MOST_WORDS);
  try {
    return { body: JSON.parse(text) as unknown, message, isUnderstood: true };
  } catch {
    return { body: undefined, message, isUnderstood: plain !== undefined };
  }
}

/** Whether a function answers so: not if it fails, and not if something else answers at its address. */
function isOfFunction(path: string, { status, body, isUnderstood }: FunctionAnswer): boolean {
  if (!isUnderstood || status === 403 || status >= 500 || isOfServerBetween(status)) return false;
  if (path !== SERVICES) return true;
  return status === 200 && Array.isArray((body as { readonly services?: unknown } | null)?.services);
}

/** A redirect, or that the server is too busy: a function answers neither. Its own failures are 500. */
const isOfServerBetween = (status: number): boolean =>
  (status >= 300 && status < 400) || BUSY.includes(status) || status > 500;

const wordsOf = ({ status, message }: FunctionAnswer): string => `${status}${message === '' ? '' : ` (${message})`}`;

/** What OpenSSL says in words of its own. */
const TLS_WORDS: Readonly<Record<string, string>> = {
  ERR_SSL_WRONG_VERSION_NUMBER: 'what answers there does not speak TLS: check the port, or whether the URL needs http',
};

/** A connection that fails on several addresses has no message of its own. */
function reasonOf(error: unknown): string {
  const { message, code, errors } = error as {
    readonly message?: string;
    readonly code?: string;
    readonly errors?: readonly Error[];
  };
  return (
    [TLS_WORDS[code ?? ''], message, errors?.[0]?.message, code].find((text) => text !== undefined && text !== '') ??
    String(error)
  );
}
