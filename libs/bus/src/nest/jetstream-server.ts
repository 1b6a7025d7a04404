import { Server, type CustomTransportStrategy, type MessageHandler } from '@nestjs/microservices';
import { isObservable, lastValueFrom } from 'rxjs';
import type { Logger } from '#libs/runtime';
import type { Bus } from '../connection.js';
import type { BusMessage } from '../stream-reader.js';
import { BusContext } from './bus-context.js';
import { InputStream, type InputSource } from './input-streams.js';
import type { ServiceNotes } from './service-notes.js';
import { OpsEndpoints, type RequestHandler } from './ops-endpoints.js';

/** How a copy stands, as the strategy needs to know it: a LedgerService is one. */
export interface Standing {
  readonly leadingTerm: number | undefined;
  readonly halted: string | undefined;
  readonly stuck: string | undefined;
  readonly otherLeads: boolean;
  readonly cursor: number;
  onStanding(listener: () => void): () => void;
  start(): Promise<void>;
  stop(): Promise<void>;
}

export interface JetStreamServerOptions {
  readonly bus: Bus;
  /** Of the micro service. */
  readonly name: string;
  readonly version: string;
  readonly description?: string;
  readonly logger: Logger;
}

/**
 * Nest's way to NATS. `@EventPattern(subject, source)` reads inputs in batches while this copy leads; `@MessagePattern`
 * answers requests under `ops.`. There are no acknowledgements: what a handler's promise says is taken stands in the ledger.
 */
export class JetStreamServer extends Server implements CustomTransportStrategy {
  override readonly transportId = Symbol('NATS');
  /** Of Nest 12: a handler's error comes here, and is not logged and swallowed. */
  override readonly propagatesEventHandlerErrors = true;
  private standing: Standing | undefined;
  private notes: ServiceNotes | undefined;
  private inputs: readonly InputStream[] = [];
  private readonly ops: OpsEndpoints;
  private readonly requests = new Map<string, RequestHandler>();
  private servedTerm: number | undefined;
  private closed = false;
  private changes: Promise<void> = Promise.resolve();

  constructor(private readonly options: JetStreamServerOptions) {
    super();
    this.initializeSerializer({} as never);
    this.initializeDeserializer({} as never);
    this.ops = new OpsEndpoints({ ...options, description: options.description ?? '', handlers: this.requests });
  }

  /** Serves only while this says that the copy leads. Without one, always. */
  serve(standing: Standing): void {
    this.standing = standing;
  }

  /** Shows these with the service. */
  tell(notes: ServiceNotes): void {
    this.notes = notes;
  }

  override on(): never {
    throw new Error('there are no events to listen to');
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
      this.standing?.onStanding(() => void this.follow());
      this.notes?.onChange(() => void this.follow());
      await this.standing?.start();
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
    await this.standing?.stop();
    await this.changes;
    await this.ops.close();
  }

  /** Brings inputs and endpoints in line with how this copy stands now, one change after the other. */
  private follow(): Promise<void> {
    this.changes = this.changes
      .then(async () => {
        if (this.closed) return;
        const { leadingTerm, halted, stuck, otherLeads } = this.standing ?? {
          leadingTerm: 1,
          halted: undefined,
          stuck: undefined,
          otherLeads: false,
        };
        if (leadingTerm !== this.servedTerm) {
          this.stopInputs();
          this.servedTerm = leadingTerm;
          if (leadingTerm !== undefined) this.startInputs();
        }
        // Where all have stopped deciding, a copy at least says why.
        await this.ops.show({
          notes: this.notes?.all ?? [],
          leading: leadingTerm !== undefined,
          halted: halted ?? stuck ?? '',
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
      throw new Error(`@EventPattern('${subject}') must name a stream, or say that it is core NATS`);
    const context = new BusContext(subject, {});
    return new InputStream({
      bus: this.options.bus,
      subject,
      source,
      cursor: this.standing?.cursor ?? 0,
      handle: async (batch: readonly BusMessage[]) => void (await settled(handler, batch, context)),
      logger: this.options.logger,
    });
  }
}

async function settled(handler: MessageHandler, payload: unknown, context: BusContext): Promise<unknown> {
  const result: unknown = await handler(payload, context);
  return isObservable(result) ? lastValueFrom(result, { defaultValue: undefined }) : result;
}
