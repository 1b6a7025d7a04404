import { headers } from '@nats-io/nats-core';
import { ServiceErrorCodeHeader, ServiceErrorHeader, Svcm, type Service, type ServiceMsg } from '@nats-io/services';
import type { Logger } from '#libs/runtime';
import type { Bus } from '../connection.js';
import { BadRequestError } from '../errors.js';
import { outcomeOf, refusalOf, type Refusal } from './answers.js';

export type RequestHandler = (body: object, headers: Readonly<Record<string, string>>) => Promise<unknown>;

/** How a copy shows itself to `nats micro ls`, and whether it answers requests. */
export interface Shown {
  readonly leading: boolean;
  /** Why it decides no more, or empty. */
  readonly halted: string;
  readonly answers: boolean;
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
      metadata: { leader: String(as.leading), ...(as.halted === '' ? {} : { halted: as.halted }) },
    });
    this.service = service;
    if (as.answers) {
      for (const [subject, handle] of handlers) {
        service.addEndpoint(subject.replaceAll('.', '-'), { subject, handler: (error, message) => void (error === null && this.answer(handle, message)) });
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

  private async answer(handle: RequestHandler, message: ServiceMsg): Promise<void> {
    try {
      const outcome = outcomeOf(await handle(bodyOf(message), headersOf(message)));
      if ('status' in outcome) refuse(message, outcome);
      else message.respond(JSON.stringify(outcome.body));
    } catch (error) {
      const refusal = refusalOf(error);
      if (refusal.code === 'internal') this.options.logger.error({ error, subject: message.subject }, 'a request failed');
      refuse(message, refusal);
    }
  }
}

function refuse(message: ServiceMsg, { status, code, message: text }: Refusal): void {
  const refused = headers();
  refused.set(ServiceErrorCodeHeader, String(status));
  refused.set(ServiceErrorHeader, text.replaceAll(/[\r\n]+/g, ' ').slice(0, 500));
  message.respond(JSON.stringify({ error: { code, message: text } }), { headers: refused });
}

function bodyOf(message: ServiceMsg): object {
  if (message.data.length === 0) return {};
  let body: unknown;
  try {
    body = JSON.parse(message.string());
  } catch (error) {
    throw new BadRequestError(`the request is not JSON: ${(error as Error).message}`);
  }
  if (typeof body !== 'object' || body === null || Array.isArray(body)) throw new BadRequestError('the request must be a JSON object');
  return body;
}

const headersOf = (message: ServiceMsg): Readonly<Record<string, string>> =>
  message.headers === undefined ? {} : Object.fromEntries(message.headers.keys().map((key) => [key, message.headers?.get(key) ?? '']));
