import { ServiceErrorCodeHeader, ServiceErrorHeader, Svcm, type Service, type ServiceMsg } from '@nats-io/services';
import type { Answer } from '#libs/engine';
import type { Logger } from '#libs/process';
import type { Bus } from './connection.js';
import { BadRequestError, HaltedError, isConnectionTrouble, MissingStreamError, UnavailableError } from './errors.js';
import { headersOf, plainHeaders } from './messages.js';
import type { ServiceNote } from './service-notes.js';

export type RequestHandler = (body: object, headers: Readonly<Record<string, string>>) => Promise<unknown>;

/** What `nats micro ls` shows of a copy, and whether it answers requests. */
export interface CopyStatus {
  readonly leading: boolean;
  /** Why it has stopped deciding, or empty. */
  readonly halted: string;
  readonly answers: boolean;
  readonly notes: readonly ServiceNote[];
}

export interface RequestEndpointsOptions {
  readonly bus: Bus;
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly handlers: ReadonlyMap<string, RequestHandler>;
  readonly logger: Logger;
}

/** The requests that a service answers, as one NATS micro service. Only a copy that can answer has the endpoints. */
export class RequestEndpoints {
  private service: Service | undefined;
  private lastStatus = '';

  constructor(private readonly options: RequestEndpointsOptions) {}

  /**
   * Shows the current state of the copy. Endpoints of a micro service cannot be removed one by one, so the micro
   * service is created again.
   */
  async show(as: CopyStatus): Promise<void> {
    const text = JSON.stringify(as);
    if (text === this.lastStatus) return;
    this.lastStatus = text;
    const before = this.service;
    const { bus, name, version, description, handlers } = this.options;
    const service = await new Svcm(bus.nc).add({
      name,
      version,
      description,
      metadata: {
        leader: String(as.leading),
        ...(as.halted === '' ? {} : { halted: as.halted }),
        ...(as.notes.length === 0 ? {} : { notes: JSON.stringify(as.notes) }),
      },
    });
    this.service = service;
    if (as.answers) {
      for (const [subject, handle] of handlers) {
        service.addEndpoint(subject.replaceAll('.', '-'), {
          subject,
          handler: (error, message) => {
            if (error === null)
              void this.answer(handle, message).catch((failure: unknown) =>
                this.options.logger.warn({ error: failure, subject }, 'a request could not be answered'),
              );
          },
        });
      }
    }
    // The new one exists before the old one is removed, so that every request has a responder.
    await bus.nc.flush().catch(() => undefined);
    await before?.stop();
  }

  async close(): Promise<void> {
    this.lastStatus = 'closed';
    await this.service?.stop();
  }

  private respond(message: ServiceMsg, text: string): void {
    const most = this.options.bus.nc.info?.max_payload ?? Number.POSITIVE_INFINITY;
    const bytes = Buffer.byteLength(text);
    if (bytes <= most) message.respond(text);
    else
      refuse(message, {
        status: 409,
        code: 'too-large',
        message: `the answer has ${bytes} bytes; a message can have at most ${most}: ask for a smaller page with limit`,
      });
  }

  private async answer(handle: RequestHandler, message: ServiceMsg): Promise<void> {
    try {
      const outcome = outcomeOf(await handle(bodyOf(message), plainHeaders(message)));
      if ('status' in outcome) refuse(message, outcome);
      else this.respond(message, JSON.stringify(outcome.body));
    } catch (error) {
      const refusal = refusalOf(error);
      if (refusal.code === 'internal')
        this.options.logger.error({ error, subject: message.subject }, 'a request failed');
      refuse(message, refusal);
    }
  }
}

const UTF_8 = new TextDecoder('utf-8', { fatal: true });

/** A refusal may quote what it refuses, which may be as large as a message. */
const MOST_WORDS = 8_000;

function refuse(message: ServiceMsg, { status, code, message: text }: Refusal): void {
  const words =
    text.length <= MOST_WORDS ? text : `${text.slice(0, MOST_WORDS)}… (${text.length - MOST_WORDS} more characters)`;
  const refused = headersOf({
    [ServiceErrorCodeHeader]: String(status),
    [ServiceErrorHeader]: words.replaceAll(/[\r\n]+/g, ' ').slice(0, 500),
  });
  message.respond(JSON.stringify({ error: { code, message: words } }), { headers: refused });
}

function bodyOf(message: ServiceMsg): object {
  if (message.data.length === 0) return {};
  let body: unknown;
  try {
    body = JSON.parse(UTF_8.decode(message.data));
  } catch (error) {
    throw new BadRequestError(`the request is not JSON: ${(error as Error).message}`);
  }
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    throw new BadRequestError('the request must be a JSON object');
  return body;
}

/** A refusal on the wire: the status for tools that know HTTP, the code for programs, the message for people. */
interface Refusal {
  readonly status: number;
  readonly code: string;
  readonly message: string;
}

const STATUSES: Readonly<Record<string, number>> = {
  'bad-request': 400,
  'not-found': 404,
  unavailable: 503,
  halted: 503,
  internal: 500,
};
/** Any other refusal is caused by the current state. */
const CONFLICT = 409;

const refusal = (code: string, message: string): Refusal => ({ status: STATUSES[code] ?? CONFLICT, code, message });

/** The result of a handler: the core's answer, or any other value as the body. */
function outcomeOf(result: unknown): { readonly body: unknown } | Refusal {
  if (!isAnswer(result)) return { body: result ?? {} };
  return result.ok ? { body: result.body ?? {} } : refusal(result.code, result.message);
}

/** The error of a handler. An internal error shows no details. */
function refusalOf(error: unknown): Refusal {
  if (error instanceof BadRequestError) return refusal('bad-request', error.message);
  if (error instanceof HaltedError) return refusal('halted', error.message);
  if (error instanceof UnavailableError || error instanceof MissingStreamError || isConnectionTrouble(error))
    return refusal('unavailable', (error as Error).message);
  return refusal('internal', 'the service failed; its log says why');
}

function isAnswer(result: unknown): result is Answer {
  return typeof result === 'object' && result !== null && typeof (result as { readonly ok?: unknown }).ok === 'boolean';
}
