import { JetStreamApiError } from '@nats-io/jetstream';
import type { Msg } from '@nats-io/nats-core';
import {
  CHANGES,
  changeId,
  changeSequence,
  configKey,
  CONFIGS,
  decodeConfig,
  desiredSubject,
  LEDGER,
  nodeToken,
  type Config,
  type ViewBucket,
  type ViewValues,
} from '#libs/contracts';
import { SILENT } from '#libs/process';
import {
  AccessError,
  connectBus,
  growingMs,
  isConnectionTrouble,
  isNoResponders,
  isWithoutJetStream,
  kvStream,
  kvSubject,
  listViews,
  needsTls,
  NoJetStreamError,
  NoLeaderError,
  pause,
  readView,
  ServerTooOldError,
  watchViews,
  type Bus,
  type BusOptions,
  type ViewEntry,
} from '#libs/nats/lean';
import { fleetEvents, type EventsOptions, type FleetEvent } from './fleet-events.js';
import { inspect, missingServices, pingServices, type Inspection } from './fleet-inspection.js';

/** A refusal by a service: `code` is stable, `message` is for people. */
export class OpsError extends Error {
  override readonly name = 'OpsError';
  constructor(
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

/** No server, no service, or no answer in time. The message names the URL and the way out. */
export class NoConnectionError extends Error {
  override readonly name = 'NoConnectionError';
}

export interface FleetOptions extends Omit<BusOptions, 'name' | 'waitOnFirstConnect'> {
  readonly name?: string;
}

/**
 * Connects a tool to the fleet. Throws NoConnectionError when no server answers in time, and AccessError when one
 * answers, but credentials, certificates or TLS settings are wrong.
 */
export async function connectFleet(options: FleetOptions): Promise<FleetClient> {
  const url = [options.servers].flat().join(',');
  try {
    const bus = await connectBus({
      ...options,
      logger: options.logger ?? SILENT,
      name: options.name ?? 'sluice',
      waitOnFirstConnect: false,
    });
    const scheme = needsTls(options) ? 'tls' : 'nats';
    return new FleetClient(bus, bus.server === '' ? url : `${scheme}://${bus.server}`);
  } catch (error) {
    if (error instanceof ServerTooOldError || error instanceof AccessError) throw error;
    throw new NoConnectionError(`no nats-server answers at ${url}: ${(error as Error).message}`, { cause: error });
  }
}

/** What tools need of the bus: documented subjects, buckets and `ops.*`, nothing secret. */
export class FleetClient {
  constructor(
    private readonly bus: Bus,
    readonly server: string,
  ) {}

  /** Publishes to config.desired.<source>; the id follows from the acknowledged sequence. */
  async publishChange(
    source: string,
    body: string,
    messageId?: string,
  ): Promise<{ readonly change: string; readonly duplicate: boolean }> {
    const ack = await this.reached(() => this.bus.publish(desiredSubject(source), body, { msgID: messageId }));
    return { change: changeId(ack.seq), duplicate: ack.duplicate };
  }

  /** Asks a service. Throws OpsError when it refuses, NoConnectionError when none answers. */
  async request<T>(subject: string, body: object): Promise<T> {
    const untilMs = performance.now() + this.bus.timeoutMs;
    for (let tries = 0; ; tries += 1) {
      const leftMs = untilMs - performance.now();
      try {
        return answerOf<T>(await this.bus.request(subject, JSON.stringify(body), { timeout: Math.max(100, leftMs) }));
      } catch (error) {
        // A service that fails over has nobody who answers for a moment.
        const isPassing = isNoResponders(error) || (error instanceof OpsError && error.code === 'unavailable');
        if (!isPassing || leftMs < 300)
          throw error instanceof OpsError ? error : await this.unanswered(subject, error as Error);
        await pause(growingMs(tries, 50, 500));
      }
    }
  }

  /** Whether a change with this ID was published and no service has read it yet: the merger reads them in order. */
  async isUnread(change: string): Promise<boolean> {
    const sequence = changeSequence(change);
    const { state } = await this.reached(() => this.bus.streamInfo(CHANGES));
    if (sequence < state.first_seq || sequence > state.last_seq) return false;
    return [...(await this.list('changes')).keys()].every((known) => changeSequence(known) < sequence);
  }

  get<B extends ViewBucket>(bucket: B, key: string): Promise<ViewValues[B] | undefined> {
    return this.reached(() => readView(this.bus, bucket, key));
  }

  list<B extends ViewBucket>(bucket: B): Promise<ReadonlyMap<string, ViewValues[B]>> {
    return this.reached(() => listViews(this.bus, bucket));
  }

  /** Current values first, then every change, until the signal aborts. */
  watch<B extends ViewBucket>(bucket: B, keys: string, signal: AbortSignal): AsyncIterable<ViewEntry<B>> {
    return this.reachedEach(watchViews(this.bus, bucket, keys, signal));
  }

  async config(node: string, hash: string): Promise<Config | undefined> {
    const message = await this.reached(() =>
      this.bus.stored(kvStream(CONFIGS), { last_by_subj: kvSubject(CONFIGS, configKey(node, hash)) }),
    );
    return message === null ? undefined : decodeConfig(message.string());
  }

  /** The hashes of every config that is kept for a node. */
  async configHashes(node: string): Promise<readonly string[]> {
    const prefix = kvSubject(CONFIGS, `${nodeToken(node)}.`);
    const { state } = await this.reached(() =>
      this.bus.jsm.streams.info(kvStream(CONFIGS), { subjects_filter: `${prefix}*` }),
    );
    return Object.keys(state.subjects ?? {}).map((subject) => subject.slice(prefix.length));
  }

  /** Messages of LEDGER, REPORTS and CHANGES in order of time. */
  async *events(options: EventsOptions): AsyncIterable<FleetEvent> {
    await this.reached(() => this.bus.streamInfo(LEDGER));
    yield* this.reachedEach(fleetEvents(this.bus, options));
  }

  inspect(): Promise<Inspection> {
    return this.reached(() => inspect(this.bus, this.server));
  }

  /** The services that do not answer: what is published waits for them. */
  missingServices(): Promise<readonly string[]> {
    return this.reached(() => missingServices(this.bus));
  }

  close(): Promise<void> {
    return this.bus.close();
  }

  private async reached<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw this.explained(error);
    }
  }

  private async *reachedEach<T>(items: AsyncIterable<T>): AsyncGenerator<T> {
    try {
      yield* items;
    } catch (error) {
      throw this.explained(error);
    }
  }

  /** What kept the server from answering, in words for people; any other error as it is. */
  private explained(error: unknown): unknown {
    if (isWithoutJetStream(error)) {
      const { info } = this.bus.nc;
      if (info?.jetstream !== true)
        return new NoConnectionError(new NoJetStreamError(this.server).message, { cause: error });
      if (info.cluster === undefined) return new Error('stream not found', { cause: error });
    }
    if (!isConnectionTrouble(error)) return error;
    const { name, message } = error as Error;
    const isWithoutMajority =
      this.bus.nc.info?.jetstream === true &&
      (error instanceof JetStreamApiError || error instanceof NoLeaderError || name === 'JetStreamNotEnabled');
    const why = isWithoutMajority
      ? 'answers, but its JetStream does not: too few servers of its cluster are up, or they have no leader yet'
      : `does not answer: ${message}`;
    return new NoConnectionError(`${this.server} ${why}`, { cause: error });
  }

  private async unanswered(subject: string, error: Error): Promise<Error> {
    const halted = (await pingServices(this.bus))
      .filter((service) => service.halted !== '')
      .map((service) => `${service.name} has stopped deciding: ${service.halted}`);
    const asked = isNoResponders(error)
      ? 'is the service running?'
      : 'is the service running? It may still act on the request: check before you repeat it';
    const why = halted.length > 0 ? halted.join('; ') : asked;
    return new NoConnectionError(`no service answers ${subject} at ${this.server} (${error.message}): ${why}`, {
      cause: error,
    });
  }
}

function answerOf<T>(reply: Msg): T {
  const status = reply.headers?.get('Nats-Service-Error-Code') ?? '';
  const body =
    reply.data.length === 0
      ? {}
      : (JSON.parse(reply.string()) as { readonly error?: { readonly code: string; readonly message: string } });
  if (body.error !== undefined) throw new OpsError(body.error.code, body.error.message);
  if (status !== '') throw new OpsError(status, reply.headers?.get('Nats-Service-Error') ?? '');
  return body as T;
}
