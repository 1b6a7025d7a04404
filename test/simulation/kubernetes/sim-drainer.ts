import type { Program } from '#libs/engine';
import {
  drainNode,
  Drains,
  NodeReconciler,
  noteProgress,
  type Drain,
  type DrainEffect,
  type EvictionResult,
  type Input,
  type ReconcileEffect,
  type NodeSeen,
  type Progress,
  type RunningDrain,
  type State,
} from '../../../services/drain/src/core/index.js';
import type { Companion, ServiceCopy } from '../world/service-copy.js';
import { ApiTrouble, type Cluster, type NodeObject } from './cluster.js';
import type { SimPod } from './workloads.js';

/** A Node as it was read. */
export interface SeenNode extends NodeSeen {
  readonly read: NodeObject;
}
type SimEffect = DrainEffect<SeenNode, SimPod>;

const BURST_MS = 30;

/** The hands of a copy of the drain service: what its drains ask for is done to the simulated cluster. */
export class SimDrainer implements Companion {
  private readonly drains = new Drains((drain) => new SimNodeDrain(this.copy, this.cluster, drain));
  private readonly watcher = (name: string | undefined): void => this.heard(name);

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

  private heard(name: string | undefined): void {
    if (name === undefined) return;
    this.drains.running.get(name)?.nudge();
    // Whatever changed among pods may have freed a budget: its refusals are tried again.
    for (const running of this.drains.running.values()) running.freed();
  }
}

class SimNodeDrain implements RunningDrain {
  private readonly reconciler: NodeReconciler<SeenNode, SimPod>;
  private readonly program: Program<SimEffect>;
  private stopped = false;
  /** Counts its waits; a nudge ends the one that is on. */
  private waits = 0;
  private waiting = false;
  private nudged = false;

  constructor(
    private readonly copy: ServiceCopy<State, Input>,
    private readonly cluster: Cluster,
    { node, lease, phase }: Drain,
  ) {
    this.reconciler = new NodeReconciler(node, lease, phase, '');
    this.program = drainNode(this.reconciler);
    // Not at once: its first step may be the last of the copy that is about to note it.
    cluster.world.clock.after(0, () => this.proceed(undefined));
  }

  get lease(): string {
    return this.reconciler.lease;
  }

  stop(): void {
    this.stopped = true;
  }

  move(drain: Drain): void {
    if (this.reconciler.move(drain)) this.nudge();
  }

  freed(): void {
    const freed = this.cluster.workloads.apps.filter(({ name, min }) => this.cluster.workloads.healthy(name) > min);
    if (freed.filter(({ name }) => this.reconciler.freed(`default/${name}`)).length > 0) this.nudge();
  }

  /** Something may have changed. */
  nudge(): void {
    const { cluster } = this;
    if (cluster.away || cluster.chance.happens(cluster.conditions.watchLost)) return;
    if (!this.waiting) {
      this.nudged = true;
      return;
    }
    const wait = ++this.waits;
    cluster.world.clock.after(BURST_MS + cluster.chance.next() * cluster.conditions.watchLateMs, () => this.goOn(wait));
  }

  private wait(forMs: number): void {
    this.waiting = true;
    const wait = ++this.waits;
    this.cluster.world.clock.after(this.nudged ? BURST_MS : forMs, () => this.goOn(wait));
    this.nudged = false;
  }

  private goOn(wait: number): void {
    if (this.stopped || wait !== this.waits) return;
    this.waiting = false;
    this.proceed(undefined);
  }

  /** Between any two of its steps the copy may die, be stopped, or lose its connections. */
  private proceed(answer: unknown): void {
    if (this.stopped) return;
    const { program, cluster } = this;
    const next = answer instanceof ApiTrouble ? program.throw(answer) : program.next(answer);
    if (next.done === true) return;
    const effect = next.value;
    switch (effect.do) {
      case 'wait':
        return this.wait(effect.forMs);
      case 'back-off': {
        const fullMs = Math.min(effect.mostMs, effect.leastMs * 2 ** effect.tries);
        return this.wait((fullMs * (1 + cluster.chance.next())) / 2);
      }
      case 'note-failure':
        if (!(effect.error instanceof ApiTrouble)) throw effect.error;
        return this.proceed(false);
      default:
        if (!this.copy.dies()) this.perform(effect, (result) => this.proceed(result));
    }
  }

  private perform(effect: ReconcileEffect<SeenNode, SimPod>, answered: (answer: unknown) => void): void {
    const { copy, reconciler, cluster } = this;
    switch (effect.do) {
      case 'read-node':
        return this.asked(() => this.node(), answered);
      case 'read-pods':
        return this.asked(() => this.pods(), answered);
      case 'read-drain':
        return copy.query((state) => state.drains.get(reconciler.node), answered);
      case 'now':
        return answered({
          monotonicMs: copy.monotonicMs,
          wall: new Date(cluster.world.clock.nowMs + copy.wallSkewMs).toISOString(),
        });
      case 'write-node': {
        const write =
          cluster.world.mutant?.forgetsFound === true
            ? { ...effect.write, annotations: neverFound(effect.write.annotations) }
            : effect.write;
        return this.asked(() => cluster.write(reconciler.node, write, 'sluice', effect.seen.read), answered, true);
      }
      case 'evict':
        return this.evict(effect, answered);
      case 'say':
        if (effect.sight.what === 'drained')
          cluster.saidDrained.set(reconciler.lease, { podsMs: this.podsReadMs, uid: this.seenUid });
        return copy.submit({ type: 'sight', sight: effect.sight }, () => answered(undefined));
      case 'show':
        return answered(this.show(effect.progress));
    }
  }

  private seenUid: string | undefined;
  private node(): SeenNode | undefined {
    const node = this.cluster.nodes.get(this.reconciler.node);
    this.seenUid = node?.uid;
    return seenNode(node, this.cluster.world.mutant?.forgetsFound === true);
  }

  private podsReadMs = 0;
  private pods(): readonly SimPod[] {
    this.podsReadMs = this.cluster.world.clock.nowMs;
    return this.cluster.world.mutant?.overlooksPods === true ? [] : this.cluster.podsOn(this.reconciler.node);
  }

  private evict({ evictions }: Extract<SimEffect, { do: 'evict' }>, answered: (answer: unknown) => void): void {
    const { cluster } = this;
    const results: EvictionResult[] = [];
    let left = evictions.length;
    for (const [i, { pod, how, graceSeconds }] of evictions.entries()) {
      this.asked(
        () => (how === 'evict' ? cluster.evict(pod.uid) : cluster.delete(pod.uid, graceSeconds)),
        (answer) => {
          results[i] = answer as EvictionResult;
          left -= 1;
          if (left === 0) answered(results);
        },
        true,
      );
    }
  }

  /**
   * There and back; what was sent arrives though the sender died. Of writes the answer may be lost, or the question.
   */
  private asked(ask: () => unknown, answered: (answer: unknown) => void, writes = false): void {
    const { cluster } = this;
    const { clock } = cluster.world;
    const delayMs = (): number => cluster.chance.next() * cluster.conditions.delayMs;
    clock.after(delayMs(), () => {
      const isLost = cluster.away || (writes && cluster.chance.happens(cluster.conditions.lost));
      const answer = isLost ? undefined : ask();
      const isUnheard = isLost || (writes && cluster.chance.happens(cluster.conditions.answerLost));
      if (isUnheard) cluster.world.fire('unheard-answers');
      clock.after(delayMs(), () => answered(isUnheard ? new ApiTrouble('the API server did not answer') : answer));
    });
  }

  private show(progress: Progress): void {
    const { state } = this.copy.copy;
    const drain = state.drains.get(this.reconciler.node);
    if (
      drain?.lease === progress.lease &&
      drain.phase === 'draining' &&
      noteProgress(state, this.reconciler.node, progress)
    )
      this.copy.wake();
  }
}

function seenNode(read: NodeObject | undefined, asksNobody: boolean): SeenNode | undefined {
  return read === undefined
    ? undefined
    : {
        read,
        unschedulable: read.unschedulable,
        annotations: read.annotations,
        setBySluice: asksNobody || read.setBy !== 'person',
      };
}

const neverFound = (annotations: Readonly<Record<string, string | null>>): Readonly<Record<string, string | null>> =>
  Object.fromEntries(
    Object.entries(annotations).map(([key, value]) => [
      key,
      value?.replace('"alreadyCordoned":true', '"alreadyCordoned":false') ?? null,
    ]),
  );
