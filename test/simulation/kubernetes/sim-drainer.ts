import type { PausedObject } from '#libs/manifests';
import { backOffMs, drive } from '#libs/engine';
import {
  BURST_MS,
  Drains,
  noteProgress,
  RunningDrain,
  type Drain,
  type DrainEffect,
  type EvictionResult,
  type Input,
  type NodeCordon,
  type NodeWrite,
  type PausableState,
  pausersOf,
  type State,
} from '../../../services/drain/src/core/index.js';
import type { ServiceCopy } from '../world/service-copy.js';
import type { Companion } from '../world/service-host.js';
import { ApiTrouble, type Cluster, type NodeObject } from './cluster.js';
import type { SimPod } from './workloads.js';

/** A Node as it was read. */
interface NodeSnapshot extends NodeCordon {
  readonly read: NodeObject;
}
type SimEffect = DrainEffect<NodeSnapshot, SimPod>;
type EffectOf<Do extends SimEffect['do']> = Extract<SimEffect, { readonly do: Do }>;
/** The answer of the world, or an error. */
type Reply = (answer?: unknown) => void;

/** The drains of one copy of the drain service, in the simulated cluster. */
export class SimDrainer implements Companion {
  private readonly drains = new Drains((drain) => new SimNodeDrain(this.copy, this.cluster, drain));
  private readonly watcher = (name: string | undefined): void => this.onWrite(name);

  constructor(
    private readonly copy: ServiceCopy<State, Input>,
    private readonly cluster: Cluster,
  ) {}

  follow(): void {
    this.cluster.watchers.add(this.watcher);
    this.drains.follow(this.copy.copy.state);
  }

  ended(): void {
    this.cluster.watchers.delete(this.watcher);
    this.drains.follow(undefined);
  }

  private onWrite(name: string | undefined): void {
    if (name === undefined) return;
    this.drains.running.get(name)?.nudge();
    // Any change of pods may have freed a budget.
    this.drains.freed(this.cluster.workloads.freeBudgets);
  }
}

/** Carries out the program of one drain in simulated time. The copy may die between any two steps. */
class SimNodeDrain extends RunningDrain<NodeSnapshot, SimPod> {
  /** Counts its waits. A nudge ends the current wait. */
  private waits = 0;
  private endWait: (() => void) | undefined;
  private nudged = false;
  private seenUid: string | undefined;
  private podsReadMs = 0;

  constructor(
    private readonly copy: ServiceCopy<State, Input>,
    private readonly cluster: Cluster,
    drain: Drain,
  ) {
    super(drain, undefined);
    // Not immediately: its first step may kill the copy that is about to record it.
    cluster.world.clock.after(0, () => {
      if (!this.stopped) drive(this.program(), (effect, answer, fail) => this.carry(effect, answer, fail));
    });
  }

  nudge(): void {
    const { cluster } = this;
    if (cluster.away || cluster.chance.flip(cluster.conditions.watchLost)) return;
    if (this.endWait === undefined) this.nudged = true;
    else this.wakeAfter(BURST_MS + cluster.chance.next() * cluster.conditions.watchLateMs);
  }

  private wait(forMs: number, done: () => void): void {
    this.endWait = done;
    this.wakeAfter(this.nudged ? BURST_MS : forMs);
    this.nudged = false;
  }

  private wakeAfter(delayMs: number): void {
    const wait = ++this.waits;
    this.cluster.world.clock.after(delayMs, () => {
      if (wait !== this.waits) return;
      const done = this.endWait;
      this.endWait = undefined;
      done?.();
    });
  }

  private carry(effect: SimEffect, answer: Reply, fail: (error: Error) => void): void {
    const reply: Reply = (known) => {
      if (this.stopped) return;
      // What comes of a read of an object to pause is an answer, even an error.
      if (known instanceof ApiTrouble && effect.do !== 'read-pausable') fail(known);
      else answer(known);
    };
    switch (effect.do) {
      case 'wait':
        return this.wait(effect.forMs, reply);
      case 'back-off': {
        const { tries, leastMs, mostMs } = effect;
        return this.wait(backOffMs(tries, leastMs, mostMs, this.cluster.chance.next()), reply);
      }
      case 'note-failure':
        if (!(effect.error instanceof ApiTrouble)) throw effect.error;
        return reply(false);
      default:
        if (!this.copy.dies()) this.perform(effect, reply);
    }
  }

  private perform(effect: Exclude<SimEffect, EffectOf<'wait' | 'back-off' | 'note-failure'>>, reply: Reply): void {
    const { copy, cluster } = this;
    switch (effect.do) {
      case 'read-node':
        return cluster.ask(() => this.readNode(), reply);
      case 'read-pods':
        return cluster.ask(() => this.readPods(), reply);
      case 'read-drain':
        return copy.query((state) => state.drains.get(this.node), reply);
      case 'read-pausable':
        return cluster.ask(() => this.readPausable(effect.object), reply);
      case 'read-pausers':
        return copy.query((state) => (cluster.world.mutant?.overlooksPausers === true ? [] : pausersOf(state)), reply);
      case 'now':
        return reply({
          monotonicMs: copy.monotonicMs,
          wall: new Date(cluster.world.clock.nowMs + copy.wallSkewMs).toISOString(),
        });
      case 'write-node':
        return cluster.ask(() => this.write(effect), reply, true);
      case 'write-pausable':
        return cluster.ask(
          () => cluster.pausables.write(effect.object.name, effect.write, 'sluice', effect.seen),
          reply,
          true,
        );
      case 'evict':
        return this.evict(effect, reply);
      case 'say':
        if (effect.sight.what === 'drained')
          cluster.saidDrained.set(this.lease, { podsMs: this.podsReadMs, uid: this.seenUid });
        return copy.submit({ type: 'sight', sight: effect.sight }, () => reply());
      case 'show':
        if (noteProgress(copy.copy.state, this.node, effect.progress)) copy.wake();
        return reply();
    }
  }

  private readNode(): NodeSnapshot | undefined {
    const read = this.cluster.nodes.get(this.node);
    this.seenUid = read?.uid;
    if (read === undefined) return undefined;
    const { unschedulable, annotations, setBy } = read;
    return { read, unschedulable, annotations, setBySluice: this.forgetsFound || setBy !== 'person' };
  }

  private readPausable({ name }: PausedObject): PausableState | 'absent' {
    const read = this.cluster.pausables.objects.get(name);
    if (read === undefined) return 'absent';
    const { uid, paused, annotations, setBy, updating } = read;
    return {
      uid,
      revision: String(read.revision),
      paused,
      annotations,
      setBySluice: this.cluster.world.mutant?.forgetsPauser === true || setBy !== 'person',
      conditions: updating ? ['Updating'] : [],
      isBehind: false,
    };
  }

  private readPods(): readonly SimPod[] {
    this.podsReadMs = this.cluster.world.clock.nowMs;
    return this.cluster.world.mutant?.overlooksPods === true ? [] : this.cluster.podsOn(this.node);
  }

  private write({ node, write }: EffectOf<'write-node'>): 'written' | 'overtaken' | 'gone' {
    const change = this.forgetsFound ? { ...write, annotations: neverFound(write.annotations) } : write;
    return this.cluster.write(this.node, change, 'sluice', node.read);
  }

  private evict({ evictions }: EffectOf<'evict'>, reply: Reply): void {
    const { cluster } = this;
    const results: EvictionResult[] = [];
    let left = evictions.length;
    for (const [i, { pod, how, graceSeconds }] of evictions.entries())
      cluster.ask(
        () => (how === 'evict' ? cluster.evict(pod.uid) : cluster.delete(pod.uid, graceSeconds)),
        (result) => {
          results[i] = result as EvictionResult;
          left -= 1;
          if (left === 0) reply(results);
        },
        true,
      );
  }

  private get forgetsFound(): boolean {
    return this.cluster.world.mutant?.forgetsFound === true;
  }
}

const neverFound = (annotations: NodeWrite['annotations']): NodeWrite['annotations'] =>
  Object.fromEntries(
    Object.entries(annotations).map(([key, value]) => [
      key,
      value?.replace('"alreadyCordoned":true', '"alreadyCordoned":false') ?? null,
    ]),
  );
