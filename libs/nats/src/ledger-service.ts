import {
  hasTerm,
  leadingTerm,
  life,
  ServiceCopy,
  takeSnapshot,
  type Answer,
  type Core,
  type GatherPort,
  type Handlers,
  type LeadershipStatus,
  type Need,
  type ServicePort,
} from '#libs/engine';
import { monotonicMs, SILENT, type Logger } from '#libs/process';
import { carryOut } from './carry-out.js';
import type { Bus } from './connection.js';
import { Election } from './election.js';
import { HaltedError, UnavailableError } from './errors.js';
import { LedgerTail } from './ledger-tail.js';
import { ServicePorts } from './service-ports.js';
import { growingMs, pause, Signal } from './signal.js';
import { DEFAULT_LEADER_TTL_MS } from './topology.js';

/** The definition of a service: its pure core, and the source of its inputs. */
export interface LedgerParts<S, I extends object, N extends Need = never, G = never> {
  readonly core: Core<S, I, N, G>;
  /** The stream to which `core.cursor` refers. */
  readonly input?: string;
}

export interface LedgerServiceOptions {
  readonly bus: Bus;
  /** Shared by the services of a process. Default: its own. */
  readonly tail?: LedgerTail;
  readonly logger?: Logger;
  /** The number of facts between two snapshots. */
  readonly snapshotFacts?: number;
  /** The time between two snapshots, if there are new facts. */
  readonly snapshotMs?: number;
  /** As in the topology. */
  readonly leaderTtlMs?: number | undefined;
}

const DEFAULT_SNAPSHOT_FACTS = 20_000;
const DEFAULT_SNAPSHOT_MS = 24 * 3_600_000;
/** In a quiet fleet, nothing else may wake a copy whose snapshot is due. */
const QUIET_MS = 3_600_000;
/** A turn that asks to be woken in the past is woken after this time. */
const LEAST_WAKE_MS = 10;
/** A last snapshot delays an end no longer than this. */
const LAST_SNAPSHOT_MS = 2_500;

/** Runs one copy of a service on NATS: always follows the ledger, and decides while it leads. */
export class LedgerService<S = unknown, I extends object = object, N extends Need = Need, G = unknown> {
  private readonly bus: Bus;
  private readonly logger: Logger;
  private readonly service: ServiceCopy<S, I, N, G>;
  private readonly ports: ServicePorts<S, I, N, G>;
  private readonly election: Election;
  private readonly wake = new Signal();
  private readonly listeners = new Set<() => void>();
  private readonly followers = new Set<(state: S | undefined) => void>();
  private shownStatus = '';
  private quiet: NodeJS.Timeout | undefined;
  private unlisten: () => void = () => undefined;
  private running: Promise<void> = Promise.resolve();
  private readonly ended = Promise.withResolvers<void>();
  private readonly foldStarted = Promise.withResolvers<void>();

  constructor(
    parts: LedgerParts<S, I, N, G>,
    private readonly options: LedgerServiceOptions,
  ) {
    const { bus, snapshotFacts, snapshotMs, leaderTtlMs } = options;
    this.bus = bus;
    this.logger = options.logger ?? SILENT;
    const keeping = { everyFacts: snapshotFacts ?? DEFAULT_SNAPSHOT_FACTS, everyMs: snapshotMs ?? DEFAULT_SNAPSHOT_MS };
    this.service = new ServiceCopy(parts.core, keeping, (status, before) => this.changed(status, before));
    this.ports = new ServicePorts(this.service, {
      bus,
      tail: options.tail ?? new LedgerTail(bus),
      logger: this.logger,
      onArrival: () => this.wake.give(),
      input: parts.input,
    });
    this.election = new Election({
      bus,
      name: parts.core.name,
      ttlMs: leaderTtlMs ?? DEFAULT_LEADER_TTL_MS,
      logger: this.logger,
      onChange: (leading) => {
        this.service.take({ type: leading ? 'elected' : 'deposed' });
        this.wake.give();
      },
    });
  }

  get name(): string {
    return this.service.core.name;
  }

  /** Whether this copy takes inputs: it is elected, has read the whole ledger, and has checked its views. */
  get leading(): boolean {
    return this.service.leading;
  }

  /** Why this copy could not serve if it had to lead now; undefined if it could. */
  get unready(): string | undefined {
    const { status } = this.service;
    if (!this.bus.connected) return 'it is not connected to NATS';
    if (status.phase === 'halted') return `it has stopped deciding: ${status.reason}`;
    const isBehind = status.phase === 'starting' || (status.phase === 'leading' && status.behind);
    return isBehind ? 'it has not read the ledger to its end yet' : undefined;
  }

  /** Identifies the current term of this copy; undefined while it does not lead. */
  get leadingTerm(): number | undefined {
    return leadingTerm(this.service.status);
  }

  /** Why this copy has stopped appending; undefined if it has not. */
  get halted(): string | undefined {
    const { status } = this.service;
    return status.phase === 'halted' ? status.reason : undefined;
  }

  /** Why the decisions of this copy fail, although it has not stopped; undefined if they do not. */
  get stuck(): string | undefined {
    return this.service.status.blocked;
  }

  /** Whether another copy was seen leading. */
  get otherLeads(): boolean {
    return this.election.otherLeads;
  }

  /** Sequence in the core's input stream up to which inputs were processed. */
  get cursor(): number {
    return this.service.cursor;
  }

  /** Increases whenever this copy does something. */
  get work(): number {
    return this.service.copy.folded + this.service.copy.inputs.length;
  }

  /** Starts the fold, then follows the ledger and runs for election. */
  async start(): Promise<void> {
    this.unlisten = this.bus.onConnection((connected) => {
      this.ports.connectionChanged(connected);
      this.service.take({ type: 'connection-changed' });
      if (connected) this.wake.give();
    });
    this.running = this.run();
    await this.foldStarted.promise;
    const everyMs = Math.min(QUIET_MS, this.options.snapshotMs ?? QUIET_MS);
    this.quiet = setInterval(() => this.wake.give(), everyMs).unref();
    this.election.start();
  }

  /** Ends cleanly: another copy leads at once, and a snapshot makes the next start quick. */
  async stop(): Promise<void> {
    const { service, ports } = this;
    const led = service.leading;
    service.take({ type: 'stopped' });
    clearInterval(this.quiet);
    this.unlisten();
    this.ended.resolve();
    this.wake.give();
    ports.reader.stop();
    await Promise.all([this.running, this.election.stop()]);
    const lastSnapshot = async (): Promise<void> => {
      await ports.written();
      if (!led || service.copy.folded <= service.snapshot.sequence) return;
      const inSteps: Handlers<Pick<GatherPort, 'pause'>> = { pause: () => ports.slices.pause() };
      ports.keep(await carryOut(takeSnapshot(service, monotonicMs()), inSteps));
      await ports.written();
    };
    await Promise.race([lastSnapshot(), pause(LAST_SNAPSHOT_MS)]);
  }

  /** Gives the core an input. Resolves with its answer. Rejects with UnavailableError if another copy leads. */
  submit(input: I): Promise<Answer | undefined> {
    if (!this.leading) return Promise.reject(this.unavailable());
    return new Promise((resolve, reject) => {
      this.service.submit(input, { resolve, reject });
      this.ask();
    });
  }

  /** The same for several inputs, in order. Resolves with their answers when all are settled. */
  submitAll(inputs: readonly I[]): Promise<readonly (Answer | undefined)[]> {
    return Promise.all(inputs.map((input) => this.submit(input)));
  }

  /** Lets a shell change what is in memory only. A turn follows if `touch` returns true. */
  observe(touch: (state: S) => boolean): void {
    if (touch(this.service.copy.state)) this.ask();
  }

  /** Reads from a state that includes everything that was in the ledger when this was called. */
  query<T>(read: (state: S) => T): Promise<T> {
    if (!this.leading) return Promise.reject(this.unavailable());
    return new Promise((resolve, reject) => {
      this.service.query(read, { resolve, reject });
      this.wake.give();
    });
  }

  /** Calls back when this copy begins or ends to lead, or halts. Returns a function that stops it. */
  onLeadershipChange(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Calls back with the state after each change while this copy leads, and with undefined when that ends. */
  follow(follower: (state: S | undefined) => void): () => void {
    this.followers.add(follower);
    return () => this.followers.delete(follower);
  }

  figures(): object {
    const { ports, service } = this;
    return {
      leading: service.leading,
      halted: this.halted,
      folded: service.copy.folded,
      inputs: service.copy.inputs.length,
      appended: ports.appended,
      refused: ports.refused,
      viewsWritten: ports.viewsWritten,
      snapshotAt: service.snapshot.sequence,
      connected: this.bus.connected,
    };
  }

  private ask(): void {
    this.service.due = true;
    this.wake.give();
  }

  private unavailable(): UnavailableError {
    if (this.halted !== undefined) return new HaltedError(`${this.name} has stopped deciding: ${this.halted}`);
    return new UnavailableError(`this copy of ${this.name} is not the leader`);
  }

  private run(): Promise<void> {
    const { ports } = this;
    const handlers: Handlers<ServicePort<I>> = {
      ...ports.handlers,
      stand: ({ stands }) => this.election.stand(stands),
      'back-off': ({ tries, leastMs, mostMs }) =>
        Promise.race([pause(growingMs(tries, leastMs, mostMs)), this.ended.promise]),
      settle: ({ inputs, answers }) => this.service.settle(inputs, answers),
      'give-back': ({ error }) => this.service.giveBack(error),
      'show-state': () => {
        for (const follower of this.followers) follower(this.service.copy.state);
      },
      wait: ({ untilMs }) => this.wait(untilMs),
    };
    return carryOut(life(this.service), handlers);
  }

  private async wait(untilMs: number | undefined): Promise<void> {
    this.showStatus();
    if (this.service.leading && this.service.due) return;
    const forMs = untilMs === undefined ? undefined : Math.max(LEAST_WAKE_MS, untilMs - monotonicMs());
    await this.wake.wait(forMs);
  }

  private changed(status: LeadershipStatus, before: LeadershipStatus): void {
    if (status.phase !== 'starting' || status.fold === 'kept') this.foldStarted.resolve();
    if (status.phase === 'taking-over' && before.phase !== 'taking-over') this.ports.beginTerm();
    if (hasTerm(before) && !hasTerm(status)) {
      this.ports.endTerm();
      this.service.giveBack(new UnavailableError(reasonOf(status)));
      for (const follower of this.followers) follower(undefined);
    }
    this.showStatus();
  }

  private showStatus(): void {
    const status = `${this.leadingTerm} ${this.halted ?? this.stuck ?? ''} ${this.otherLeads}`;
    if (status === this.shownStatus) return;
    this.shownStatus = status;
    for (const listener of this.listeners) listener();
  }
}

function reasonOf(status: LeadershipStatus): string {
  if (status.phase === 'stopped') return 'this copy of the service is stopping';
  if (status.phase === 'halted') return `it has stopped deciding: ${status.reason}`;
  return status.phase === 'starting' && status.fold !== 'kept'
    ? 'its fold starts over'
    : 'another copy of this service leads now';
}
