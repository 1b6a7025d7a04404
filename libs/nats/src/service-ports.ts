import type { FactType, NewFact } from '#libs/contracts';
import {
  keepSnapshot,
  type AppendResult,
  type Handlers,
  type Need,
  type NewSnapshot,
  type ServiceCopy,
  type ServicePort,
  type ViewPosition,
  type ViewWrite,
} from '#libs/engine';
import { monotonicMs, Slices, type Logger } from '#libs/process';
import { Blobs } from './blobs.js';
import { carryOut } from './carry-out.js';
import type { Bus } from './connection.js';
import { Ledger } from './ledger.js';
import { LedgerReader } from './ledger-reader.js';
import type { LedgerTail } from './ledger-tail.js';
import { Objects } from './objects.js';
import { Snapshots } from './snapshots.js';
import { kvSubject } from './topology.js';
import { ViewWriter } from './view-writer.js';
import { newestViews, sequenceAt } from './views.js';

/** Handlers of the service itself. */
type ServiceOwn = 'settle' | 'give-back' | 'show-state' | 'stand' | 'wait' | 'back-off';

/**
 * Facts that always follow another fact of the same node. With a thousand nodes per second, they would be many lines.
 */
const QUIET: ReadonlySet<FactType> = new Set<FactType>(['node.lease.released']);

export interface PortOptions {
  readonly bus: Bus;
  readonly tail: LedgerTail;
  readonly logger: Logger;
  readonly onArrival: () => void;
  /** The stream to which the core's cursor refers. */
  readonly input: string | undefined;
}

/** The ledger, views, snapshots and log of one copy, and the counts of its term. */
export class ServicePorts<S, I, N extends Need, G> {
  readonly ledger: Ledger;
  readonly reader: LedgerReader;
  private readonly snapshots: Snapshots;
  private readonly blobs: Blobs;
  private readonly objects: Objects;
  readonly slices = new Slices();
  private views: ViewWriter | undefined;
  private writing: Promise<void> | undefined;
  private termSinceMs = 0;
  private connectedSinceMs: number | undefined = monotonicMs();
  appended = 0;
  refused = 0;

  constructor(
    private readonly service: ServiceCopy<S, I, N, G>,
    private readonly options: PortOptions,
  ) {
    const { bus, tail, logger, onArrival } = options;
    const { reads, wantsTargets } = service.core;
    this.ledger = new Ledger(bus);
    this.snapshots = new Snapshots(bus);
    this.blobs = new Blobs(bus, { logger });
    this.objects = new Objects(bus);
    const targets = wantsTargets ? (keys: readonly string[]) => this.blobs.targets(keys) : undefined;
    this.reader = new LedgerReader({ bus, ledger: this.ledger, tail, reads, targets, onArrival, logger });
  }

  get viewsWritten(): number {
    return this.views?.written ?? 0;
  }

  connectionChanged(connected: boolean): void {
    this.connectedSinceMs = connected ? monotonicMs() : undefined;
  }

  beginTerm(): void {
    this.termSinceMs = monotonicMs();
    [this.appended, this.refused] = [0, 0];
  }

  /** Cancels what has not started yet, because another copy leads. */
  endTerm(): void {
    this.views?.stop();
    this.views = undefined;
  }

  get handlers(): Omit<Handlers<ServicePort<never>>, ServiceOwn> {
    const { reader, ledger, blobs, objects, slices } = this;
    const { bus, logger, input: stream } = this.options;
    return {
      read: ({ after }) => reader.take(after),
      'catch-up': ({ after }) => reader.catchUp(after),
      append: ({ facts, expected, separate }) => this.append(facts, expected, separate),
      follow: ({ after }) => reader.start(after),
      'read-voided': () => reader.loadVoided(),
      'is-voided': ({ sequence }) => reader.mayPass(sequence),
      bounds: () => ledger.bounds(),

      'load-views': async () => {
        this.views = new ViewWriter(bus, this.service.core.name, logger);
        const own = await this.views.load();
        const newest = [...(await newestViews(bus))].map(([bucket, sequence]) => ({
          bucket,
          key: undefined,
          ledger: sequence,
        }));
        return [own, ...newest];
      },
      'loaded-keys': ({ bucket }) => this.views?.keysOf(bucket) ?? [],
      views: ({ writes, ledger }) => this.write(writes, ledger),
      'highest-view': async ({ view }) => Math.max(await ownLedger(bus, view), ...(await newestViews(bus)).values()),

      'list-snapshots': this.snapshots.handlers['list-snapshots'],
      'read-snapshot': this.snapshots.handlers['read-snapshot'],
      keep: ({ snapshot }) => this.keep(snapshot),

      'read-configs': ({ names }) => blobs.configs(names),
      'put-configs': ({ configs }) => blobs.putConfigs(configs),
      'put-targets': ({ change, targets }) => blobs.putTargets(change, targets),
      'missing-objects': ({ hashes }) => objects.missing(hashes),
      pause: () => slices.pause(),

      now: () => ({ monotonicMs: monotonicMs(), leadingSinceMs: this.leadingSinceMs, wallMs: Date.now() }),
      log: ({ level, text, details }) => logger[level](details, text),
      'input-end': async () =>
        stream === undefined ? undefined : { stream, last: (await bus.streamInfo(stream)).state.last_seq },
    };
  }

  keep(snapshot: NewSnapshot): boolean {
    if (this.writing !== undefined) return false;
    const { logger } = this.options;
    const { sequence } = snapshot;
    this.writing = carryOut(keepSnapshot(snapshot), { ...this.snapshots.handlers, bounds: () => this.ledger.bounds() })
      .then(() => logger.info({ sequence }, 'snapshot written'))
      .catch((error: unknown) => logger.warn({ error }, 'no snapshot could be written'))
      .finally(() => (this.writing = undefined));
    return true;
  }

  async written(): Promise<void> {
    await this.writing;
  }

  private get leadingSinceMs(): number | undefined {
    const { phase } = this.service.status;
    if (this.connectedSinceMs === undefined || phase !== 'leading') return undefined;
    return Math.max(this.termSinceMs, this.connectedSinceMs);
  }

  /** Resolves with the time when all of them are written, or when this term has ended. */
  private async write(writes: readonly ViewWrite[], ledger: number): Promise<number> {
    const { views } = this;
    for (const { key, value } of writes) {
      // An await between two writes makes the client send each of them alone, which costs the server much more.
      const pause = this.slices.pause();
      if (pause !== undefined) await pause;
      views?.write(key, value, ledger);
      if (views?.isFull === true) await views.room();
    }
    await views?.flush();
    return monotonicMs();
  }

  private async append(facts: readonly NewFact[], expected: number, separate: boolean): Promise<AppendResult> {
    const { logger } = this.options;
    const result = await this.ledger.append(facts, expected, separate);
    if (result.outcome !== 'appended') {
      this.refused += 1;
      const { outcome, reason } = result;
      logger.debug({ outcome, reason, expected }, 'not appended');
      return { outcome };
    }
    this.appended += facts.length;
    for (const fact of facts) logger[QUIET.has(fact.type) ? 'debug' : 'info'](concerns(fact), fact.type);
    return { outcome: 'appended', ...(await this.reader.tailOf(result.appended)) };
  }
}

const ownLedger = async (bus: Bus, { bucket, key }: ViewPosition): Promise<number> =>
  key === undefined ? 0 : sequenceAt(bus, bucket, kvSubject(bucket, key));

/** The fields of a log line about a fact: enough to follow one change, node or lease through all services. */
function concerns(fact: NewFact): object {
  const { change, node, lease, pool, hash, because, reason } = fact as Partial<
    Record<'change' | 'node' | 'lease' | 'pool' | 'hash' | 'because' | 'reason', string>
  >;
  return {
    change: change || undefined,
    node,
    lease: lease || undefined,
    pool,
    hash,
    because,
    reason: reason || undefined,
  };
}
