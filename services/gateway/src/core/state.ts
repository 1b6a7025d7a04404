import {
  fragmentId,
  type ChangeView,
  type DrainView,
  type FragmentCounts,
  type FragmentView,
  type KnownBadView,
  type NodeView,
  type PoolView,
  type RolloutView,
  type ViewBucket,
} from '#libs/contracts';
import type { CertificateStatus } from './admission/certificate.js';
import { ABSENT, ChangeIndex } from './changes.js';
import { NO_TROUBLE, type DefinitionTrouble } from './definitions.js';
import { drainTroubles, NO_DRAIN_TROUBLE, type DrainTroubles, type ObservedDrain } from './drains.js';
import { hashOf, resourceOf, type Digest, type ObservedObject, type Resource } from './resource.js';

/** A Rollout of the API server. */
export interface RolloutResource extends Pick<
  ObservedObject,
  'name' | 'uid' | 'generation' | 'revision' | 'deleting' | 'status'
> {
  readonly paused: boolean | undefined;
}

/** What a decision remembers for the next one. It saves work, and delays what is about to be published. */
export interface Memory {
  /** Since when there is something to publish. */
  readonly wantingSinceMs: number | undefined;
  /** Objects for which there is nothing to do, and what that is based on. */
  readonly calm: ReadonlyMap<Resource, readonly unknown[]>;
}

/** When something may be retried, and how often it failed. */
interface Pace {
  readonly failures: number;
  readonly notBeforeMs: number;
}

/** How far a committed fragment has reached its nodes, or which nodes still have a deleted one. */
interface Reached extends Pick<FragmentView, 'change' | 'gone' | 'inSync' | 'appliedAt' | 'removing' | 'stillOn'> {
  /** Undefined for policies. */
  readonly counts: FragmentCounts | undefined;
}

type ShownFragment = Pick<FragmentView, 'fragment' | 'change' | 'gone'> &
  Partial<Pick<FragmentView, 'counts' | 'inSync' | 'appliedAt' | 'removing' | 'stillOn'>>;

/** The minimum time between two writes of one object's status. */
const WRITE_MS = 1_000;
const LONGEST_MS = 60_000;

/**
 * What the gateway sees: objects, changes and views. It owns none of it, and nothing must survive a restart. In
 * addition it records when it did what.
 */
export class State {
  /** By `Kind/name`. */
  readonly resources = new Map<string, Resource>();
  readonly rolloutResources = new Map<string, RolloutResource>();
  /** Kinds of which all objects were read. */
  readonly listedKinds = new Set<string>();
  readonly index = new ChangeIndex();
  readonly rollouts = new Map<string, RolloutView>();
  readonly pools = new Map<string, PoolView>();
  /** By `Kind/name`, also of deleted fragments. */
  readonly reached = new Map<string, Reached>();
  /** Nodes that have left the fleet. */
  readonly leftNodes = new Set<string>();
  /** Those in progress, by node. */
  readonly drains = new Map<string, ObservedDrain>();
  /** What to show about them, from `lookAtDrains`. */
  drainTroubles: DrainTroubles = NO_DRAIN_TROUBLE;
  /** Kinds whose definition in the API server has another version, and what that means. */
  definitions: DefinitionTrouble = NO_TROUBLE;
  /** The state of the webhook; undefined if there is none. */
  admission: CertificateStatus | undefined;
  /** The ledger sequence at which a config was last cleared. */
  clearedAt = 0;
  /** When a changed object last arrived. */
  heardMs = 0;
  /** What the last decision remembered. */
  memory: Pick<Memory, 'wantingSinceMs'> = { wantingSinceMs: undefined };
  /** All changes up to this one were read. */
  readTo = 0;
  /** The generation of a Rollout whose request was handled, and the answer if it was refused. */
  readonly steered = new Map<string, { readonly generation: number; readonly refusal: string }>();
  /** Memory.calm of all decisions. */
  readonly calm = new WeakMap<Resource, readonly unknown[]>();
  private readonly paces = new Map<string, Pace>();

  constructor(readonly digest: Digest) {}

  /** Sets all objects of a kind. Other objects are gone. */
  list(kind: string, all: readonly ObservedObject[], nowMs: number): void {
    const names = new Set(all.map(({ name }) => name));
    for (const [id, { kind: of, name }] of this.resources) if (of === kind && !names.has(name)) this.forget(id, nowMs);
    for (const object of all) this.hear(object, nowMs);
    this.listedKinds.add(kind);
  }

  hear(object: ObservedObject, nowMs: number): void {
    const resource = resourceOf(object, this.digest);
    const before = this.resources.get(resource.id);
    if (before !== undefined && isOlder(object, before)) return;
    this.resources.set(resource.id, resource);
    const isNew =
      before?.uid !== resource.uid ||
      before.hash !== resource.hash ||
      before.deleting !== resource.deleting ||
      before.retry !== resource.retry ||
      before.takeOver !== resource.takeOver;
    if (isNew) this.heardMs = nowMs;
  }

  gone({ kind, name, uid }: Pick<ObservedObject, 'kind' | 'name' | 'uid'>, nowMs: number): void {
    const id = `${kind}/${name}`;
    if (this.resources.get(id)?.uid === uid) this.forget(id, nowMs);
  }

  hearRollout(object: RolloutResource): void {
    const before = this.rolloutResources.get(object.name);
    if (before === undefined || !isOlder(object, before)) this.rolloutResources.set(object.name, object);
  }

  /** `endedMs`: when it ended, monotonic. */
  show(change: ChangeView, endedMs = 0): void {
    this.index.show(change, endedMs);
  }

  /** The merger or the scheduler no longer shows it. */
  forgetView(bucket: ViewBucket, key: string): void {
    if (bucket === 'changes') this.index.forget(key);
    if (bucket === 'rollouts') this.rollouts.delete(key);
  }

  showFragment({ fragment, change, gone, ...shown }: ShownFragment): void {
    if (fragment === undefined) return;
    const id = fragmentId(fragment);
    const { counts, inSync = false, appliedAt = '', removing = false, stillOn = [] } = shown;
    this.reached.set(id, { change, gone, counts, inSync, appliedAt, removing, stillOn });
    this.index.showFragment(id, change, gone ? ABSENT : hashOf(fragment, this.digest));
  }

  showNode({ node, state }: Pick<NodeView, 'node' | 'state'>): void {
    if (state === 'gone') this.leftNodes.add(node);
    else this.leftNodes.delete(node);
  }

  /** `sinceMs`: since when it is blocked or draining, according to the view; monotonic. */
  showDrain(view: DrainView, sinceMs: number): void {
    if (view.state === 'draining') this.drains.set(view.node, { view, sinceMs });
    else this.drains.delete(view.node);
  }

  showKnownBad({ clearedBy, ledger }: KnownBadView): void {
    if (clearedBy !== '') this.clearedAt = Math.max(this.clearedAt, ledger);
  }

  /** Drains are shown when they have made no progress for a while, so time alone can change what to show. */
  lookAtDrains(nowMs: number): void {
    this.drainTroubles = drainTroubles(this.drains.values(), nowMs);
  }

  remember({ wantingSinceMs, calm }: Memory): void {
    this.memory = { wantingSinceMs };
    for (const [resource, basis] of calm) this.calm.set(resource, basis);
  }

  /** Whether something may be done now; otherwise when. */
  notBefore(key: string): number {
    return this.paces.get(key)?.notBeforeMs ?? 0;
  }

  hasFailed(key: string): boolean {
    return (this.paces.get(key)?.failures ?? 0) > 0;
  }

  /** It is in progress, and not done again until it has succeeded or failed. */
  begins(key: string): void {
    this.paces.set(key, { failures: this.paces.get(key)?.failures ?? 0, notBeforeMs: Infinity });
  }

  /** It succeeded, and may be done again after a while. */
  did(key: string, nowMs: number): void {
    this.paces.set(key, { failures: 0, notBeforeMs: nowMs + WRITE_MS });
  }

  /** It failed, and is retried with growing pauses. */
  failed(key: string, nowMs: number): void {
    const failures = (this.paces.get(key)?.failures ?? 0) + 1;
    this.paces.set(key, {
      failures,
      notBeforeMs: nowMs + Math.min(LONGEST_MS, WRITE_MS * 2 ** Math.min(failures - 1, 10)),
    });
  }

  private forget(id: string, nowMs: number): void {
    this.resources.delete(id);
    for (const what of ['status', 'finalizer']) this.paces.delete(`${what} ${id}`);
    this.heardMs = nowMs;
  }
}

/**
 * The answer to a write may arrive before the watch event of the version before it. Revisions of one object are ordered
 * numbers.
 */
const isOlder = (
  one: { readonly uid: string; readonly revision: string },
  other: { readonly uid: string; readonly revision: string },
): boolean => one.uid === other.uid && Number(one.revision) < Number(other.revision);
