import { Server, type CustomTransportStrategy, type MessageHandler } from '@nestjs/microservices';
import { isObservable, lastValueFrom } from 'rxjs';
import {
  InputStream,
  RequestEndpoints,
  type BusMessage,
  type InputSource,
  type LedgerService,
  type RequestEndpointsOptions,
  type RequestHandler,
  type ServiceNotes,
} from '#libs/nats';
import { BusContext } from './requests.js';

export interface JetStreamServerOptions extends Omit<RequestEndpointsOptions, 'handlers'> {
  readonly notes: ServiceNotes;
  /** Serves only while this copy leads. A service without a ledger always serves. */
  readonly ledger: LedgerService | undefined;
}

/**
 * Nest's transport over NATS: `@EventPattern(subject, source)` reads inputs while this copy leads, `@MessagePattern`
 * answers `ops.*`. There are no acknowledgements: when a handler's promise resolves, the result is in the ledger.
 */
export class JetStreamServer extends Server implements CustomTransportStrategy {
  override readonly transportId = Symbol('NATS');
  /** Nest 12 calls this with a handler's error. Otherwise it would log and drop it. */
  override readonly propagatesEventHandlerErrors = true;
  readonly ledger: LedgerService | undefined;
  private inputs: readonly InputStream[] = [];
  private readonly endpoints: RequestEndpoints;
  private readonly requests = new Map<string, RequestHandler>();
  private servedTerm: number | undefined;
  private closed = false;
  private changes: Promise<void> = Promise.resolve();

  constructor(private readonly options: JetStreamServerOptions) {
    super();
    this.ledger = options.ledger;
    this.initializeSerializer({} as never);
    this.initializeDeserializer({} as never);
    this.endpoints = new RequestEndpoints({ ...options, handlers: this.requests });
  }

  override on(): never {
    throw new Error('this transport emits no events');
  }

  override unwrap<T>(): T {
    return this.options.bus.nc as T;
  }

  override async listen(callback: (error?: unknown) => void): Promise<void> {
    try {
      for (const [subject, handler] of this.messageHandlers) {
        if (handler.isEventHandler !== true)
          this.requests.set(subject, (body, headers) => settled(handler, body, new BusContext(subject, headers)));
      }
      this.ledger?.onLeadershipChange(() => void this.follow());
      this.options.notes.onChange(() => void this.follow());
      await this.ledger?.start();
      await this.follow();
      callback();
    } catch (error) {
      callback(error);
    }
  }

  override async close(): Promise<void> {
    if (this.closed) return;
    this.closed = true;
    this.stopInputs();
    await this.ledger?.stop();
    await this.changes;
    await this.endpoints.close();
  }

  /** Starts and stops inputs and endpoints to match the leadership of this copy, one change at a time. */
  private follow(): Promise<void> {
    this.changes = this.changes
      .then(async () => {
        if (this.closed) return;
        const { leadingTerm, halted, stuck, otherLeads } = this.ledger ?? ALWAYS_LEADING;
        if (leadingTerm !== this.servedTerm) {
          this.stopInputs();
          this.servedTerm = leadingTerm;
          if (leadingTerm !== undefined) this.startInputs();
        }
        await this.endpoints.show({
          notes: this.options.notes.all,
          leading: leadingTerm !== undefined,
          halted: halted ?? stuck ?? '',
          // Where all copies have stopped deciding, at least one says why.
          answers: leadingTerm !== undefined || (halted !== undefined && !otherLeads),
        });
      })
      .catch((error: unknown) => this.options.logger.error({ error }, 'the endpoints could not be changed'));
    return this.changes;
  }

  private startInputs(): void {
    const events = [...this.messageHandlers].filter(([, handler]) => handler.isEventHandler === true);
    this.inputs = events.map(([subject, handler]) => this.input(subject, handler));
    for (const input of this.inputs) input.start();
  }

  private stopInputs(): void {
    for (const input of this.inputs) input.stop();
    this.inputs = [];
  }

  private input(subject: string, handler: MessageHandler): InputStream {
    const source = (handler.extras ?? {}) as InputSource;
    if (source.stream === undefined && source.core !== true)
      throw new Error(`@EventPattern('${subject}') must name a stream, or core NATS`);
    const context = new BusContext(subject, {});
    return new InputStream({
      bus: this.options.bus,
      subject,
      source,
      cursor: this.ledger?.cursor ?? 0,
      handle: async (batch: readonly BusMessage[]) => void (await settled(handler, batch, context)),
      logger: this.options.logger,
    });
  }
}

const ALWAYS_LEADING: Pick<LedgerService, 'leadingTerm' | 'halted' | 'stuck' | 'otherLeads'> = {
  leadingTerm: 1,
  halted: undefined,
  stuck: undefined,
  otherLeads: false,
};

async function settled(handler: MessageHandler, payload: unknown, context: BusContext): Promise<unknown> {
  const result: unknown = await handler(payload, context);
  return isObservable(result) ? lastValueFrom(result, { defaultValue: undefined }) : result;
}
