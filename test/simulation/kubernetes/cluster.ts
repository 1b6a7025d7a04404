import { CORDON_ANNOTATION, cordonAnnotationOf, KEEP_CORDONED_ANNOTATION } from '#libs/contracts';
import type { EvictionResult } from '../../../services/drain/src/core/index.js';
import { Chance } from '../world/chance.js';
import type { Surroundings } from '../world/surroundings.js';
import { Pausables } from './pausables.js';
import { Workloads, type SimPod } from './workloads.js';

export type Writer = 'sluice' | 'person' | 'kubelet';
type Labels = Readonly<Record<string, string>>;

/** A Node object. `setBy` is what the field managers record, `cordonedBy` is the truth, which only oracles know. */
export interface NodeObject {
  readonly name: string;
  readonly uid: string;
  readonly revision: number;
  readonly unschedulable: boolean;
  readonly setBy: 'sluice' | 'person' | undefined;
  readonly cordonedBy: 'sluice' | 'person' | undefined;
  readonly annotations: Labels;
  readonly labels: Labels;
  readonly ready: boolean;
}

/** A requested write. null removes an annotation. */
export interface NodePatch {
  readonly unschedulable?: boolean;
  readonly annotations?: Readonly<Record<string, string | null>>;
  readonly labels?: Labels;
  readonly ready?: boolean;
}

type EvictionAnswer = Exclude<EvictionResult, Error>;

export class ApiTrouble extends Error {
  override readonly name = 'ApiTrouble';
}
const FAIR = { answerLost: 0, lost: 0, throttled: 0, delayMs: 20, watchLateMs: 50, watchLost: 0 };
const TROUBLE = new ApiTrouble('the API server did not answer');

/**
 * The API server and everything around it: Nodes, pods, and the controllers that recreate pods. It keeps what it
 * acknowledged.
 */
export class Cluster {
  readonly chance: Chance;
  readonly nodes = new Map<string, NodeObject>();
  readonly workloads: Workloads;
  readonly pausables: Pausables;
  away = false;
  /**
   * Share of writes that fail with an error although they happened, or that did not happen; and share of evictions that
   * the server itself refuses.
   */
  readonly conditions = { ...FAIR };
  /** Called with each Node that was written or deleted, or with `undefined` when watches broke. */
  readonly watchers = new Set<(name: string | undefined) => void>();
  /** For oracles: for each lease whose node was reported as drained, the Node and when its pods were read. */
  readonly saidDrained = new Map<string, { readonly podsMs: number; readonly uid: string | undefined }>();
  /** Called when a Node object was written, and when a pod was ended at the request of Sluice. */
  onWrite: (before: NodeObject, after: NodeObject, by: Writer) => void = () => undefined;
  onPodEnd: (pod: SimPod, how: 'evict' | 'delete') => void = () => undefined;
  private made = 0;

  constructor(readonly world: Surroundings) {
    this.chance = new Chance(world.seed, 'kubernetes');
    this.workloads = new Workloads(this);
    this.pausables = new Pausables(world);
  }

  /** Registers a Node, possibly in place of one that was deleted. */
  register(name: string): void {
    if (this.nodes.has(name)) return;
    this.made += 1;
    const node: NodeObject = {
      name,
      uid: `u${this.made}`,
      revision: this.made,
      unschedulable: false,
      setBy: undefined,
      cordonedBy: undefined,
      annotations: {},
      labels: {},
      ready: true,
    };
    this.nodes.set(name, node);
    this.world.trace(() => `Node ${name} is made, ${node.uid}`);
    this.notifyWatchers(name);
    this.workloads.settleOn(name);
  }

  remove(name: string): void {
    if (!this.nodes.delete(name)) return;
    this.world.trace(() => `Node ${name} is deleted`);
    this.workloads.forgetNode(name);
    this.notifyWatchers(name);
  }

  /** Writes a Node as that user. Sluice's write fails if the Node changed since it was read. */
  write(
    name: string,
    patch: NodePatch,
    by: Writer,
    read?: Pick<NodeObject, 'uid' | 'revision'>,
  ): 'written' | 'overtaken' | 'gone' {
    const before = this.nodes.get(name);
    if (before === undefined) return 'gone';
    const isBlind = this.world.mutant?.writesBlindly === true;
    if (read !== undefined && !isBlind && (read.uid !== before.uid || read.revision !== before.revision)) {
      this.world.fire('overtaken');
      return 'overtaken';
    }
    const after = patched(before, patch, by);
    if (after === undefined) return 'written';
    this.made += 1;
    this.nodes.set(name, { ...after, revision: this.made });
    this.world.trace(() => `${by} writes Node ${name} ${JSON.stringify(patch)}`);
    this.onWrite(before, after, by);
    this.notifyWatchers(name);
    if (!after.unschedulable && after.ready) this.workloads.schedule();
    return 'written';
  }

  /** The API server's answer to a request to evict a pod. */
  evict(uid: string): EvictionAnswer {
    const pod = this.workloads.pods.get(uid);
    if (pod === undefined) return { outcome: 'gone' };
    if (this.chance.flip(this.conditions.throttled)) {
      this.world.fire('throttled');
      return { outcome: 'refused', reason: 'too many requests', budgets: [], retryAfterMs: 1_000 };
    }
    const budget = pod.ending ? undefined : this.workloads.budgetOf(pod);
    if (budget !== undefined && budget.allowed <= 0) {
      this.world.fire('refused-evictions');
      if (this.world.mutant?.deletesRefused === true) return this.delete(uid, undefined);
      return { outcome: 'refused', reason: 'it would violate the budget', budgets: [budget], retryAfterMs: undefined };
    }
    this.onPodEnd(pod, 'evict');
    this.workloads.end(pod, undefined);
    return { outcome: 'accepted' };
  }

  delete(uid: string, graceSeconds: number | undefined): EvictionAnswer {
    const pod = this.workloads.pods.get(uid);
    if (pod === undefined) return { outcome: 'gone' };
    this.onPodEnd(pod, 'delete');
    this.workloads.end(pod, graceSeconds);
    return { outcome: 'accepted' };
  }

  /**
   * A request and its answer. A request arrives even if the sender has died. Requests to write, and their answers, may
   * be lost.
   */
  ask<T>(question: () => T, reply: (answer: T | ApiTrouble) => void, writes = false): void {
    const { chance, conditions, world } = this;
    const delayMs = (): number => chance.next() * conditions.delayMs;
    world.clock.after(delayMs(), () => {
      const isLost = this.away || (writes && chance.flip(conditions.lost));
      const answer = isLost ? TROUBLE : question();
      const isUnheard = isLost || (writes && chance.flip(conditions.answerLost));
      if (isUnheard) world.fire('unheard-answers');
      world.clock.after(delayMs(), () => reply(isUnheard ? TROUBLE : answer));
    });
  }

  podsOn(name: string): readonly SimPod[] {
    return [...this.workloads.pods.values()].filter(({ on }) => on === name);
  }

  /** The lease for which a Node is cordoned, according to its annotation. */
  heldFor(name: string): string | undefined {
    return cordonAnnotationOf(this.nodes.get(name)?.annotations ?? {})?.lease;
  }

  notifyWatchers(name: string | undefined): void {
    for (const watcher of this.watchers) watcher(name);
  }

  /** Undoes what everybody did. */
  undoInterference(names: Iterable<string>): void {
    this.away = false;
    Object.assign(this.conditions, FAIR);
    for (const name of names) {
      this.register(name);
      const { annotations, cordonedBy } = this.nodes.get(name) as NodeObject;
      this.write(name, { ready: true }, 'kubelet');
      if (cordonedBy === 'person')
        this.write(name, { unschedulable: false, annotations: { [KEEP_CORDONED_ANNOTATION]: null } }, 'person');
      else if (annotations[KEEP_CORDONED_ANNOTATION] !== undefined)
        this.write(
          name,
          {
            annotations: { [KEEP_CORDONED_ANNOTATION]: null },
            ...(annotations[CORDON_ANNOTATION] === undefined ? { unschedulable: false } : {}),
          },
          'person',
        );
    }
    this.workloads.endTrouble();
    this.pausables.undoInterference();
    this.notifyWatchers(undefined);
  }
}

const isKept = (before: NodeObject, after: Labels): boolean =>
  before.annotations[CORDON_ANNOTATION] !== undefined &&
  after[CORDON_ANNOTATION] === undefined &&
  after[KEEP_CORDONED_ANNOTATION] !== undefined;

function patched(before: NodeObject, patch: NodePatch, by: Writer): NodeObject | undefined {
  const annotations = Object.fromEntries(
    Object.entries({ ...before.annotations, ...patch.annotations }).filter(
      (entry): entry is [string, string] => entry[1] !== null,
    ),
  );
  const unschedulable = patch.unschedulable ?? before.unschedulable;
  const turned = unschedulable !== before.unschedulable;
  const owner = by === 'sluice' ? 'sluice' : 'person';
  const after: NodeObject = {
    ...before,
    annotations,
    unschedulable,
    labels: { ...before.labels, ...patch.labels },
    ready: patch.ready ?? before.ready,
    // Setting a field to its current value changes nothing, and leaves the field manager as it is.
    setBy: !unschedulable ? undefined : turned ? owner : before.setBy,
    // If somebody else wants to keep the cordon when Sluice gives the Node back, it belongs to them from then on.
    cordonedBy: !unschedulable
      ? undefined
      : turned
        ? owner
        : isKept(before, annotations)
          ? 'person'
          : before.cordonedBy,
  };
  return JSON.stringify(after) === JSON.stringify(before) ? undefined : after;
}
