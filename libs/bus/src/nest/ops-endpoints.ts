import { headers } from '@nats-io/nats-core';
import { ServiceErrorCodeHeader, ServiceErrorHeader, Svcm, type Service, type ServiceMsg } from '@nats-io/services';
import type { Logger } from '#libs/runtime';
import type { Bus } from '../connection.js';
import { BadRequestError } from '../errors.js';
import { plainHeaders } from '../message-headers.js';
import type { ServiceNote } from './service-notes.js';
import { outcomeOf, refusalOf, type Refusal } from './answers.js';

export type RequestHandler = (body: object, headers: Readonly<Record<string, string>>) => Promise<unknown>;

/** How a copy shows itself to `nats micro ls`, and whether it answers requests. */
export interface Shown {
  readonly leading: boolean;
  /** Why it decides no more, or empty. */
  readonly halted: string;
  readonly answers: boolean;
  readonly notes: readonly ServiceNote[];
}

export interface OpsEndpointsOptions {
  readonly bus: Bus;
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly handlers: ReadonlyMap<string, RequestHandler>;
  readonly logger: Logger;
}

/** A service's door for people and tools: one NATS micro service, whose endpoints are there only where they can be answered. */
export class OpsEndpoints {
  private service: Service | undefined;
  private shown = '';

  constructor(private readonly options: OpsEndpointsOptions) {}

  /** Shows the copy as it stands now. Endpoints of a micro service cannot be taken away one by one: it is made anew. */
  async show(as: Shown): Promise<void> {
    const text = JSON.stringify(as);
    if (text === this.shown) return;
    this.shown = text;
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
    // The new one is there before the old one goes, so that no request meets nobody.
    await bus.nc.flush().catch(() => undefined);
    await before?.stop();
  }

  async close(): Promise<void> {
    this.shown = 'closed';
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
        message: `the answer has ${bytes} bytes, and a message may have ${most}: ask for a smaller page (limit)`,
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

/** A refusal may quote what it refuses, which may be as large as a message can be. */
const MOST_WORDS = 8_000;

function refuse(message: ServiceMsg, { status, code, message: text }: Refusal): void {
  const words =
    text.length <= MOST_WORDS ? text : `${text.slice(0, MOST_WORDS)}… (${text.length - MOST_WORDS} more characters)`;
  const refused = headers();
  refused.set(ServiceErrorCodeHeader, String(status));
  refused.set(ServiceErrorHeader, words.replaceAll(/[\r\n]+/g, ' ').slice(0, 500));
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
