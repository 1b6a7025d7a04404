import { createHash } from 'node:crypto';
import { JetStreamApiError } from '@nats-io/jetstream';
import { errors, type Msg } from '@nats-io/nats-core';
import {
  CONFIGS,
  decodeConfig,
  decodePathAnswer,
  LEDGER,
  nodeToken,
  pushSubject,
  type Config,
  type PathAnswer,
  type PathQuery,
  type ViewBucket,
  type ViewValues,
  WireError,
} from '#libs/contracts';
import { SILENT } from '#libs/process';
import {
  Blobs,
  AccessError,
  ChangesFullError,
  connectBus,
  growingMs,
  type HubClaim,
  isConnectionTrouble,
  isMissingStream,
  MissingStreamError,
  isNoResponders,
  isWithoutJetStream,
  kvStream,
  kvSubject,
  ledgerIdentity,
  type ListedObject,
  listHubClaims,
  listTargetStatuses,
  listViews,
  needsTls,
  type NewObject,
  type TargetStatus,
  NoJetStreamError,
  NoLeaderError,
  Objects,
  pause,
  publishChange,
  readHubClaim,
  readView,
  ServerTooOldError,
  type SourceClaim,
  type StoredClaim,
  watchViews,
  writeHubClaim,
  type Bus,
  type BusOptions,
  type ViewEntry,
} from '#libs/nats/lean';
import { fleetEvents, type EventsOptions, type FleetEvent } from './fleet-events.js';
import { inspect, missingServices, pingServices, unreadChanges, type Inspection } from './fleet-inspection.js';

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

/** No server, no service, or no answer in time. The message names the URL and what to do. */
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
    const { message } = error as Error;
    // The reason names each server, with or without nats://, and there may be only one.
    const named = [url, url.replace(/^\w+:\/\//, '')].find((name) => message.startsWith(`${name}: `));
    const reason = named === undefined ? message : message.slice(named.length + 2);
    throw new NoConnectionError(`no nats-server answers at ${url}: ${reason}`, { cause: error });
  }
}

/** A client on an existing connection. Closing it closes the connection. */
export const fleetOn = (bus: Bus): FleetClient => new FleetClient(bus, bus.server);

/** The part of the bus that tools need: documented subjects, buckets and `ops.*`, and no secrets. */
export class FleetClient {
  private readonly objectStore: Objects;

  constructor(
    private readonly bus: Bus,
    readonly server: string,
  ) {
    this.objectStore = new Objects(bus);
  }

  /** Publishes to config.desired.<source>, and returns the ID of the change. */
  publishChange(source: string, text: string, id?: string): Promise<string> {
    return this.reached(() => publishChange(this.bus, { source, text, id }));
  }

  /** Asks a service. Throws OpsError when it refuses, NoConnectionError when none answers. */
  async request<T>(subject: string, body: object): Promise<T> {
    const untilMs = performance.now() + this.bus.timeoutMs;
    for (let tries = 0; ; tries += 1) {
      const leftMs = untilMs - performance.now();
      try {
        return answerOf<T>(await this.bus.request(subject, JSON.stringify(body), { timeout: Math.max(100, leftMs) }));
      } catch (error) {
        // During a failover, a service has no responder for a moment.
        const isPassing = isNoResponders(error) || (error instanceof OpsError && error.code === 'unavailable');
        if (!isPassing || leftMs < 300)
          throw error instanceof OpsError ? error : await this.unanswered(subject, error as Error);
        await pause(growingMs(tries, 50, 500));
      }
    }
  }

  /** The changes that were published, and that no service has read yet, oldest first. */
  unreadChanges(): Promise<readonly string[]> {
    return this.read(() => unreadChanges(this.bus));
  }

  get<B extends ViewBucket>(bucket: B, key: string): Promise<ViewValues[B] | undefined> {
    return this.read(() => readView(this.bus, bucket, key));
  }

  list<B extends ViewBucket>(bucket: B): Promise<ReadonlyMap<string, ViewValues[B]>> {
    return this.read(() => listViews(this.bus, bucket));
  }

  /**
   * The nodes that are ready and whose report the scheduler knows, so that a change reaches them. A node that has just
   * joined may be ready before.
   */
  async reportingNodes(): Promise<ReadonlySet<string>> {
    const [nodes, statuses] = await Promise.all([this.list('nodes'), this.list('status')]);
    const reported = new Set([...statuses.values()].filter(({ seq }) => seq > 0).map(({ node }) => node));
    return new Set(
      [...nodes.values()].filter(({ state, node }) => state === 'ready' && reported.has(node)).map(({ node }) => node),
    );
  }

  /** Yields the current values, then every change, until the signal aborts. */
  watch<B extends ViewBucket>(bucket: B, keys: string, signal: AbortSignal): AsyncIterable<ViewEntry<B>> {
    return this.reachedEach(watchViews(this.bus, bucket, keys, signal));
  }

  /** Undefined if there is none. Throws WireError if what is there is not the config with this hash. */
  async config(node: string, hash: string): Promise<Config | undefined> {
    const text = await this.read(() => new Blobs(this.bus).config(node, hash));
    if (text === undefined) return undefined;
    if (createHash('sha256').update(text).digest('hex') !== hash)
      throw new WireError(
        `what is in the bucket configs for ${node} is not the config with the hash ${hash}: somebody has changed it`,
      );
    return decodeConfig(text);
  }

  /** Puts an object into the object store. Returns false if it was there already. */
  upload(object: NewObject): Promise<boolean> {
    return this.reached(() => this.objectStore.put(object));
  }

  /** What targets elsewhere say about themselves, by node. */
  targetStatuses(): Promise<ReadonlyMap<string, TargetStatus>> {
    return this.read(() => listTargetStatuses(this.bus));
  }

  /** Tells this Sluice from all others, whatever the URL is. */
  identity(): Promise<string> {
    return this.read(() => ledgerIdentity(this.bus));
  }

  /** Which hub publishes here as this source. */
  hubClaim(source: string): Promise<StoredClaim> {
    return this.read(() => readHubClaim(this.bus, source));
  }

  /** Which hubs publish here. */
  hubClaims(): Promise<readonly SourceClaim[]> {
    return this.read(() => listHubClaims(this.bus));
  }

  /** Returns false if somebody else has claimed the source since `revision` was read. */
  claimSource(source: string, claim: HubClaim, revision: number): Promise<boolean> {
    return this.reached(() => writeHubClaim(this.bus, source, claim, revision));
  }

  /** All objects in the object store. */
  objects(): Promise<readonly ListedObject[]> {
    return this.read(() => this.objectStore.list());
  }

  /** What exists at these paths of a node, and what it would refuse; undefined if it does not answer in time. */
  async look(node: string, query: PathQuery, timeoutMs: number): Promise<PathAnswer | undefined> {
    const body = JSON.stringify(query);
    try {
      const reply = await this.bus.request(pushSubject('paths', node), body, { timeout: timeoutMs });
      answerOf(reply);
      return decodePathAnswer(reply.string());
    } catch {
      return undefined;
    }
  }

  /** What the applier of a target elsewhere does now; empty if it does not say so in time. */
  async workOf(node: string, timeoutMs: number): Promise<string> {
    try {
      const reply = await this.bus.request(pushSubject('why', node), '', { timeout: timeoutMs });
      return answerOf<{ readonly text?: string }>(reply).text ?? '';
    } catch {
      return '';
    }
  }

  /** The hashes of all configs that are stored for a node. */
  async configHashes(node: string): Promise<readonly string[]> {
    const prefix = kvSubject(CONFIGS, `${nodeToken(node)}.`);
    const { state } = await this.read(() =>
      this.bus.jsm.streams.info(kvStream(CONFIGS), { subjects_filter: `${prefix}*` }),
    );
    return Object.keys(state.subjects ?? {}).map((subject) => subject.slice(prefix.length));
  }

  /** The messages of LEDGER, REPORTS and CHANGES in order of time. */
  async *events(options: EventsOptions): AsyncIterable<FleetEvent> {
    await this.read(() => this.bus.streamInfo(LEDGER));
    yield* this.reachedEach(fleetEvents(this.bus, options));
  }

  inspect(): Promise<Inspection> {
    return this.read(() => inspect(this.bus, this.server));
  }

  /** The services that do not answer. Published messages wait for them. */
  missingServices(): Promise<readonly string[]> {
    return this.reached(() => missingServices(this.bus));
  }

  close(): Promise<void> {
    return this.bus.close();
  }

  private read<T>(work: () => Promise<T>): Promise<T> {
    return this.reached(() => this.bus.whileElecting(work));
  }

  private async reached<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw await this.explained(error);
    }
  }

  private async *reachedEach<T>(items: AsyncIterable<T>): AsyncGenerator<T> {
    try {
      yield* items;
    } catch (error) {
      throw await this.explained(error);
    }
  }

  /** For people: why the server did not answer. Any other error is returned as it is. */
  private async explained(error: unknown): Promise<unknown> {
    if (isMissingStream(error)) {
      // No service has ever run there.
      if ((await this.bus.streamInfo(LEDGER).catch(() => undefined)) === undefined)
        return new Error('stream not found', { cause: error });
      const [what, which] =
        error instanceof MissingStreamError
          ? [`the stream ${error.stream}`, '']
          : ['a stream or bucket', 'run sluice doctor to see which one, and '];
      return new Error(
        `${what} is missing at ${this.server}: ${which}restart the services, which create it when they start`,
        { cause: error },
      );
    }
    if (isWithoutJetStream(error)) {
      const lacking = await this.bus.whyNoJetStream();
      if (lacking !== undefined) return new NoJetStreamError(this.server, lacking, { cause: error });
      if (!this.bus.isClustered) return new Error('stream not found', { cause: error });
    }
    const refused = permissionViolation(error);
    if (refused !== undefined)
      return new AccessError(
        `the nats-server at ${this.server} does not let this user do that: ${refused.message}. Give the user that permission, or connect as another user`,
        { cause: error },
      );
    if (error instanceof ChangesFullError || !isConnectionTrouble(error)) return error;
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
    // Then no service can run there.
    const lacking = isNoResponders(error) ? await this.bus.whyNoJetStream() : undefined;
    if (lacking !== undefined) return new NoJetStreamError(this.server, lacking, { cause: error });
    const halted = (await pingServices(this.bus))
      .filter((service) => service.halted !== '')
      .map((service) => `${service.name} has stopped deciding: ${service.halted}`);
    const question =
      isNoResponders(error) || ONLY_READS.test(subject)
        ? 'is the service running?'
        : 'is the service running? It may still act on the request: check before you repeat it';
    const why = halted.length > 0 ? halted.join('; ') : question;
    return new NoConnectionError(`no service answers ${subject} at ${this.server} (${error.message}): ${why}`, {
      cause: error,
    });
  }
}

/** The requests that change nothing, so repeating them is safe. */
const ONLY_READS = /\.(?:why|plan|diff|get|list)$/;

function permissionViolation(error: unknown): Error | undefined {
  for (let cause = error; cause instanceof Error; cause = cause.cause)
    if (cause instanceof errors.PermissionViolationError) return cause;
  return undefined;
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
