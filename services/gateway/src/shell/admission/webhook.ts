import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { WEBHOOK_PATH } from '#libs/manifests';
import { SettingsError, type Logger, type Settings } from '#libs/process';
import {
  answerAdmission,
  answerSteering,
  certificateLine,
  readReview,
  reviewOf,
  rightsNeeded,
  type AdmissionAnswer,
  type AdmissionRequest,
  type CertificateStatus,
  type PurposeRight,
  type RolloutRequest,
  type DesiredState,
} from '../../core/index.js';
import type { Certificate } from './certificate.js';

/** The port of the webhook, and its certificate. */
export interface WebhookSettings {
  readonly port: number;
  readonly certFile: string;
  readonly keyFile: string;
}

/** Undefined if there is no webhook. Throws if a part is missing. */
export function webhookFrom({ webhookPort, webhookCertFile, webhookKeyFile }: Settings): WebhookSettings | undefined {
  if (webhookPort === undefined) return undefined;
  if (webhookCertFile === undefined || webhookKeyFile === undefined)
    throw new SettingsError(
      'SLUICE_WEBHOOK_PORT needs SLUICE_WEBHOOK_CERT_FILE and SLUICE_WEBHOOK_KEY_FILE: the API server uses TLS only',
    );
  return { port: webhookPort, certFile: webhookCertFile, keyFile: webhookKeyFile };
}

export interface WebhookOptions {
  readonly port: number;
  readonly certificate: Certificate;
  readonly desired: DesiredState;
  /** Asks the API server. */
  readonly mayUse: (who: Requester, right: PurposeRight) => Promise<boolean>;
  readonly logger: Logger;
  /** How often to check for a new certificate. */
  readonly lookMs?: number;
}

export type Requester = Pick<AdmissionRequest, 'user' | 'groups'>;

const LOOK_MS = 10_000;
/** The new and the old object, each as large as etcd accepts, and the review around them. */
const MOST_BYTES = 8 * 1_024 * 1_024;

/**
 * The admission webhook: the API server calls it before it stores an object. The core decides the answer from the
 * desired state.
 */
export class Webhook {
  private server: Server | undefined;
  private timer: NodeJS.Timeout | undefined;
  private isClosed = false;

  constructor(private readonly options: WebhookOptions) {}

  /**
   * Resolves when it listens. Without a certificate it resolves too, and listens as soon as there is one. Rejects if
   * the port is in use.
   */
  async start(): Promise<this> {
    await this.look();
    this.timer = setInterval(
      () =>
        void this.look().catch((error: unknown) =>
          this.options.logger.error({ error }, 'the webhook cannot listen; trying again'),
        ),
      this.options.lookMs ?? LOOK_MS,
    ).unref();
    return this;
  }

  /** The port that it listens on; 0 while it does not. */
  get port(): number {
    return (this.server?.address() as AddressInfo | null | undefined)?.port ?? 0;
  }

  get certificateStatus(): CertificateStatus {
    return this.options.certificate.certificateStatus;
  }

  async close(): Promise<void> {
    this.isClosed = true;
    clearInterval(this.timer);
    const { server } = this;
    if (server === undefined) return;
    server.close();
    server.closeAllConnections();
    if (server.listening) await once(server, 'close');
  }

  private async look(): Promise<void> {
    const certificate = await this.options.certificate.read();
    if (certificate === undefined || this.isClosed) return;
    if (this.server !== undefined) return this.server.setSecureContext(certificate);
    const server = createServer(certificate, (request, response) => void this.take(request, response));
    this.server = server;
    try {
      server.listen(this.options.port);
      await once(server, 'listening');
    } catch (error) {
      this.server = undefined;
      this.options.certificate.forget();
      throw error;
    }
    this.options.logger.info({ port: this.port }, 'the webhook listens');
  }

  private async take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const path = new URL(request.url ?? '/', 'https://webhook').pathname;
      if (path === '/healthz') return this.tellHealth(response);
      if (path !== WEBHOOK_PATH || request.method !== 'POST')
        return tell(response, 404, 'text/plain', `use POST ${WEBHOOK_PATH} or GET /healthz\n`);
      const body = await bodyOf(request);
      if (body === undefined) return tell(response, 413, 'text/plain', `the body has more than ${MOST_BYTES} bytes\n`);
      await this.tellReview(response, body);
    } catch (error) {
      this.options.logger.error({ error }, 'a request of the API server failed');
      if (!response.headersSent) tell(response, 500, 'text/plain', `${(error as Error).message}\n`);
    }
  }

  private tellHealth(response: ServerResponse): void {
    const { isReady } = this.options.desired;
    const trouble = certificateLine(this.certificateStatus);
    tell(
      response,
      isReady ? 200 : 503,
      'text/plain',
      `${isReady ? 'ok' : 'still reading the desired state'}${trouble === '' ? '' : `; ${trouble}`}\n`,
    );
  }

  private async tellReview(response: ServerResponse, body: string): Promise<void> {
    const request = readReview(parsed(body));
    if (request === undefined)
      return tell(response, 400, 'text/plain', 'the body is not an AdmissionReview of admission.k8s.io/v1\n');
    const trouble = certificateLine(this.certificateStatus);
    const answer =
      request.operation === 'other'
        ? ({ is: 'allowed', warnings: [] } as const)
        : isRollout(request)
          ? answerSteering(request, this.options.desired)
          : await this.answer(request, trouble === '' ? [] : [trouble]);
    const review = reviewOf(request, answer);
    // Without an answer, the failure policy of the webhook decides.
    if (review === undefined) return tell(response, 503, 'text/plain', 'still reading the desired state\n');
    if (answer.is !== 'allowed') this.options.logger.info({ ...about(request), because: answer.is }, 'refused');
    tell(response, 200, 'application/json', JSON.stringify(review));
  }

  private async answer(request: AdmissionRequest, notes: readonly string[]): Promise<AdmissionAnswer> {
    const { desired, mayUse, logger } = this.options;
    try {
      for (const right of rightsNeeded(request, desired))
        if (!(await mayUse(request, right))) return answerAdmission(request, desired, { lacks: right });
    } catch (error) {
      logger.warn({ error }, 'the API server does not say who may use which purpose');
      return { is: 'unready' };
    }
    return answerAdmission(request, desired, { notes });
  }
}

const isRollout = (request: AdmissionRequest | RolloutRequest): request is RolloutRequest => 'paused' in request;

const about = (request: NonNullable<ReturnType<typeof readReview>>): object =>
  request.operation === 'other'
    ? {}
    : { operation: request.operation, object: `${request.kind}/${request.name}`, user: request.user };

function tell(response: ServerResponse, code: number, type: string, text: string): void {
  response.writeHead(code, { 'content-type': type, 'content-length': Buffer.byteLength(text) });
  response.end(text);
}

/** The body; undefined if it is too large. */
async function bodyOf(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MOST_BYTES) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
