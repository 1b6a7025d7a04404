import {
  NodeLook,
  noteProgress,
  type Drain,
  type EvictionResult,
  type Input,
  type LookEffect,
  type NodeSeen,
  type Progress,
  type State,
} from '../../../services/drain/src/core/index.js';
import type { ServiceCopy } from '../service-copy.js';
import { ApiTrouble, type Cluster, type NodeObject } from './cluster.js';
import type { Companion } from './companion.js';
import type { SimPod } from './workloads.js';

/** A Node as it was read. */
export interface SeenNode extends NodeSeen {
  readonly read: NodeObject;
}
type SimEffect = LookEffect<SeenNode, SimPod>;
type Looking<T> = Generator<SimEffect, T, unknown>;

const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 15_000;
const BURST_MS = 30;

/** The drain service's hands: while its copy leads, one look after the other at each node that is drained or has to be given back. */
export class SimDrainer implements Companion {
  private readonly drains = new Map<string, SimNodeDrain>();
  private readonly watcher = (name: string | undefined): void => this.heard(name);

  constructor(private readonly copy: ServiceCopy<State, Input>) {}

  follow(): void {
    (this.copy.world.cluster as Cluster).watchers.add(this.watcher);
    const { state } = this.copy.copy;
    for (const [node, running] of this.drains) {
      if (state.open.has(node) && state.drains.get(node)?.lease === running.look.lease) continue;
      running.stop();
      this.drains.delete(node);
    }
    for (const node of state.open) {
      const drain = state.drains.get(node);
      if (drain === undefined) continue;
      const running = this.drains.get(node);
      if (running === undefined) this.drains.set(node, new SimNodeDrain(this.copy, drain).start());
      else running.move(drain);
    }
  }

  ended(): void {
    (this.copy.world.cluster as Cluster).watchers.delete(this.watcher);
    for (const running of this.drains.values()) running.stop();
    this.drains.clear();
  }

  private heard(name: string | undefined): void {
    if (name === undefined) return;
    this.drains.get(name)?.nudge();
    // Whatever changed among pods may have freed a budget: its refusals are tried again.
    for (const running of this.drains.values()) running.freed();
  }
}

class SimNodeDrain {
  readonly look: NodeLook<SeenNode, SimPod>;
  private stopped = false;
  private failures = 0;
  /** Counts its waits; a nudge ends the one that is on. */
  private waits = 0;
  private waiting = false;
  private nudged = false;

  constructor(
    private readonly copy: ServiceCopy<State, Input>,
    drain: Drain,
  ) {
    this.look = new NodeLook(drain.node, drain.lease, drain.phase, '');
  }

  /** Not at once: its first step may be the last of the copy that is about to note it. */
  start(): this {
    this.cluster.world.clock.after(0, () => this.once());
    return this;
  }

  stop(): void {
    this.stopped = true;
  }

  move(drain: Drain): void {
    if (this.look.move(drain)) this.nudge();
  }

  freed(): void {
    const freed = this.cluster.workloads.apps.filter(({ name, min }) => this.cluster.workloads.healthy(name) > min);
    if (freed.filter(({ name }) => this.look.freed(`default/${name}`)).length > 0) this.nudge();
  }

  /** Something may have changed. */
  nudge(): void {
    const { cluster } = this;
    if (cluster.away || cluster.chance.happens(cluster.weather.watchLost)) return;
    if (!this.waiting) {
      this.nudged = true;
      return;
    }
    const wait = ++this.waits;
    cluster.world.clock.after(BURST_MS + cluster.chance.next() * cluster.weather.watchLateMs, () => this.goOn(wait));
  }

  private get cluster(): Cluster {
    return this.copy.world.cluster as Cluster;
  }

  private once(): void {
    this.proceed(this.look.look(), undefined, (pauseMs) => {
      this.failures = 0;
      if (pauseMs === 0) this.once();
      else this.pause(pauseMs);
    });
  }

  private pause(pauseMs: number): void {
    this.waiting = true;
    const wait = ++this.waits;
    this.cluster.world.clock.after(this.nudged ? BURST_MS : pauseMs, () => this.goOn(wait));
    this.nudged = false;
  }

  private goOn(wait: number): void {
    if (this.stopped || wait !== this.waits) return;
    this.waiting = false;
    this.once();
  }

  private failed(error: Error): void {
    if (this.stopped) return;
    const { failures } = this;
    this.failures += 1;
    const full = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(failures, 20));
    const then = (): void => this.pause(full / 2 + (this.cluster.chance.next() * full) / 2);
    this.proceed(this.look.failed(failures, error.message, false), undefined, then);
  }

  /** Between any two of its steps the copy may die, be stopped, or lose its connections. */
  private proceed<T>(looking: Looking<T>, result: unknown, then: (value: T) => void): void {
    if (this.stopped) return;
    let next: IteratorResult<SimEffect, T>;
    try {
      next = looking.next(result);
    } catch (error) {
      if (!(error instanceof ApiTrouble)) throw error;
      return this.failed(error);
    }
    if (next.done === true) return then(next.value);
    if (this.copy.dies()) return;
    const effect = next.value;
    this.perform(effect, (answer) => {
      if (this.stopped) return;
      if (answer instanceof ApiTrouble) this.failed(answer);
      else this.proceed(looking, answer, then);
    });
  }

  private perform(effect: SimEffect, answered: (answer: unknown) => void): void {
    const { copy, look, cluster } = this;
    switch (effect.do) {
      case 'read-node':
        return this.asked(() => this.node(), answered);
      case 'read-pods':
        return this.asked(() => this.pods(), answered);
      case 'read-drain':
        return copy.query((state) => state.drains.get(look.node), answered);
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
        return this.asked(() => cluster.write(look.node, write, 'sluice', effect.seen.read), answered, true);
      }
      case 'evict':
        return this.evict(effect, answered);
      case 'say':
        if (effect.sight.what === 'drained')
          cluster.saidDrained.set(look.lease, { podsMs: this.podsReadMs, uid: this.seenUid });
        return copy.submit({ type: 'sight', sight: effect.sight }, () => answered(undefined));
      case 'show':
        return answered(this.show(effect.progress));
    }
  }

  private seenUid: string | undefined;
  private node(): SeenNode | undefined {
    const node = this.cluster.nodes.get(this.look.node);
    this.seenUid = node?.uid;
    return seenNode(node, this.cluster.world.mutant?.forgetsFound === true);
  }

  private podsReadMs = 0;
  private pods(): readonly SimPod[] {
    this.podsReadMs = this.cluster.world.clock.nowMs;
    return this.cluster.world.mutant?.overlooksPods === true ? [] : this.cluster.podsOn(this.look.node);
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

  /** There and back; what was sent arrives though the sender died. Of writes the answer may be lost, or the question. */
  private asked(ask: () => unknown, answered: (answer: unknown) => void, writes = false): void {
    const { cluster } = this;
    const { clock } = cluster.world;
    const delayMs = (): number => cluster.chance.next() * cluster.weather.delayMs;
    clock.after(delayMs(), () => {
      const isLost = cluster.away || (writes && cluster.chance.happens(cluster.weather.lost));
      const answer = isLost ? undefined : ask();
      const isUnheard = isLost || (writes && cluster.chance.happens(cluster.weather.answerLost));
      if (isUnheard) cluster.world.fire('unheard-answers');
      clock.after(delayMs(), () => answered(isUnheard ? new ApiTrouble('the API server did not answer') : answer));
    });
  }

  private show(progress: Progress): void {
    const { state } = this.copy.copy;
    const drain = state.drains.get(this.look.node);
    if (drain?.lease === progress.lease && drain.phase === 'draining' && noteProgress(state, this.look.node, progress))
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
    Object.entries(annotations).map(([key, value]) => [key, value?.replace('"found":true', '"found":false') ?? null]),
  );
