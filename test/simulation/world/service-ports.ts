import {
  drive,
  keepSnapshot,
  readSnapshot,
  RefoldError,
  type AppendResult,
  type Effects,
  type Handlers,
  type Need,
  type NewSnapshot,
  type ServiceCopy,
  type ServiceEffect,
  type ServicePort,
  type SnapshotInfo,
  type SnapshotWritePort,
  type Tail,
  type ViewWrite,
} from '#libs/engine';
import type { ServiceHost } from './service-host.js';

type Append = Extract<ServiceEffect<never>, { readonly do: 'append' }>;
const OFFERED = 'offered';

/** Carries out effects for a process of a service: the same effects as in production, in a seeded world. */
export class ServicePorts<S, I extends object, N extends Need, G> {
  private readonly handlers: Readonly<Record<string, (effect: ServiceEffect<I>) => unknown>>;
  private keeping = false;

  constructor(
    private readonly copy: ServiceHost<S, I, N, G>,
    private readonly service: ServiceCopy<S, I, N, G>,
    /** A snapshot to start from, which is not stored. */
    private readonly offered: NewSnapshot | undefined,
    /** Schedules something for later, if the process is still alive then. */
    private readonly after: (delayMs: number, run: () => void) => void,
  ) {
    this.handlers = this.all() as never;
  }

  /** Returns the answer. Throws RefoldError if the program must handle it. Every other error ends the run. */
  perform(effect: ServiceEffect<I>): unknown {
    return this.handlers[effect.do]?.(effect);
  }

  private all(): Handlers<ServicePort<I>> {
    return {
      read: ({ after }) => this.read(after),
      'catch-up': ({ after }) => this.tail(after, this.bus.last),
      append: (effect) => this.append(effect),
      follow: () => undefined,
      'read-voided': () => new Map(),
      'is-voided': () => false,
      bounds: () => this.bounds,

      'load-views': () => [{ bucket: 'any', key: undefined, ledger: this.bus.highestView }],
      'loaded-keys': ({ bucket }) => this.bus.viewKeysOf(bucket),
      views: ({ writes, ledger }) => {
        for (const write of writes) this.writeView(write, ledger);
        return this.copy.monotonicMs;
      },
      'highest-view': () => this.bus.highestView,

      'list-snapshots': () => [
        ...(this.offered === undefined ? [] : [infoOf(this.offered)]),
        ...this.bus.snapshotsOf(this.copy.kind.core.name),
      ],
      'read-snapshot': ({ snapshot }) => this.readSnapshot(snapshot),
      keep: ({ snapshot }) => this.keep(snapshot),

      ...this.bus.blobPort,

      now: () => ({
        monotonicMs: this.copy.monotonicMs,
        leadingSinceMs: this.copy.leadingSinceMs,
        wallMs: this.copy.wallMs,
      }),
      'back-off': () => undefined,
      wait: () => undefined,
      log: ({ level, text, details }) => {
        if (level === 'error') this.failed(text, details);
      },
      'input-end': () => {
        const { stream } = this.copy.kind;
        return stream === undefined ? undefined : { stream, last: this.bus[stream].length };
      },
      settle: ({ inputs, answers }) => this.service.settle(inputs, answers),
      'give-back': ({ error }) => {
        throw error;
      },
      'show-state': () => this.copy.companion?.follow(),
      stand: () => undefined,
    };
  }

  writeView({ key, value }: ViewWrite, ledger: number): void {
    if (this.world.mutant?.trustsViews === true && !this.copy.leading) return;
    const { revision, ledger: shown } = this.bus.revision(key);
    if (shown <= ledger) this.bus.putView(key, value, ledger, revision);
  }

  private get world() {
    return this.copy.world;
  }

  private get bus() {
    return this.copy.world.bus;
  }

  private get bounds() {
    return { first: this.bus.first, last: this.bus.last };
  }

  /** In production, a person reads it in the log. Here, it ends the run. */
  private failed(text: string, details: object): void {
    const { error } = details as { readonly error?: unknown };
    if (error instanceof Error) throw error;
    this.world.onHalt(this.copy, text);
    throw new Error(`${this.copy.name}: ${text}`);
  }

  private readSnapshot({ name }: SnapshotInfo): ReturnType<typeof readSnapshot> {
    const text = name === OFFERED ? this.offered?.text : this.bus.snapshots.get(name)?.text;
    if (text === undefined) this.world.fire('torn-snapshots');
    return text === undefined ? undefined : readSnapshot(text);
  }

  /** Runs next to the work, step by step. A copy that dies meanwhile leaves half of it. */
  private keep(snapshot: NewSnapshot): boolean {
    if (this.keeping) return false;
    this.keeping = true;
    const { conditions } = this.world;
    drive(
      keepSnapshot(snapshot),
      (effect, answer) =>
        this.after(this.copy.early.next() * conditions.delayMs, () => this.write(snapshot, effect, answer)),
      () => (this.keeping = false),
    );
    return true;
  }

  private write(snapshot: NewSnapshot, effect: Effects<SnapshotWritePort>, answer: (known?: unknown) => void): void {
    const { bus, world } = this;
    switch (effect.do) {
      case 'bounds':
        return answer(this.bounds);
      case 'list-slots':
        return answer(effect.names.map((name) => ({ name, snapshot: bus.snapshots.get(name)?.info })));
      case 'write-snapshot': {
        const { name, sequence, loads, text } = effect;
        const info = { ...infoOf(snapshot), name, sequence, loads, storedMs: world.clock.nowMs };
        bus.snapshots.set(name, { info, text: undefined });
        this.after(this.copy.early.next() * world.conditions.takeOverMs, () => {
          bus.snapshots.set(name, { info, text });
          answer();
        });
      }
    }
  }

  private append({ facts, expected, separate }: Append): AppendResult {
    const { copy, world, bus } = this;
    const fate = world.appendFate();
    if (fate === 'lost') return { outcome: 'unclear' };
    const before = bus.last;
    const sent = separate && facts.length > 1 ? facts.slice(0, world.appendedOf(facts.length)) : facts;
    const done = bus.append(sent, expected, world.clock.nowMs + copy.wallSkewMs);
    world.trace(() => `${copy.name} ${done ? 'appends' : 'is refused'} ${sent.map((fact) => fact.type).join(' ')}`);
    if (fate === 'answer-lost') return { outcome: 'unclear' };
    if (!done || sent.length < facts.length) return { outcome: 'refused' };
    return { outcome: 'appended', ...this.tail(before, bus.last) };
  }

  private tail(after: number, upTo: number): Tail {
    const { bus, copy } = this;
    if (after < upTo && after < bus.first - 1)
      throw new RefoldError(`the ledger begins at ${bus.first}, and ${after} was folded`);
    return { entries: bus.entries(after, upTo, copy.monotonicMs, copy.reads), upTo };
  }

  /** Returns what has arrived. The arrival of the rest wakes the copy. */
  private read(after: number): Tail {
    const { copy, world, bus } = this;
    if (!copy.leading) return this.tail(after, bus.last);
    const upTo = Math.max(after, bus.last - world.lag());
    if (upTo < bus.last) {
      world.fire('lagging-reads');
      world.clock.after(world.chance.next() * 200, () => copy.wake());
    }
    return this.tail(after, upTo);
  }
}

const infoOf = ({ version, sequence, loads }: NewSnapshot): SnapshotInfo => ({
  name: OFFERED,
  version,
  sequence,
  loads,
  stored: undefined,
  storedMs: 0,
});
