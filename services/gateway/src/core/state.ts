import type { ChangeView, DrainView, KnownBadView, NodeView, PoolView, RolloutView } from '#libs/contracts';
import type { CertificateStatus } from './admission/certificate.js';
import { ChangeIndex } from './changes.js';
import { NO_TROUBLE, type DefinitionTrouble } from './definitions.js';
import { drainTroubles, NO_DRAIN_TROUBLE, type DrainTroubles, type ObservedDrain } from './drains.js';
import { resourceOf, type Digest, type ObservedObject, type Resource } from './resource.js';

/** A Rollout of the API server. */
export interface RolloutResource extends Pick<
  ObservedObject,
  'name' | 'uid' | 'generation' | 'revision' | 'deleting' | 'status'
> {
  readonly paused: boolean | undefined;
}

/** What a decision remembers for the next one. It spares work, and delays what is about to be published. */
export interface Memory {
  /** Since when there is something to publish. */
  readonly wantingSinceMs: number | undefined;
  /** Objects about which there is nothing to do, and what that rests on. */
  readonly calm: ReadonlyMap<Resource, readonly unknown[]>;
}

/** When something may be tried next, and how often it failed. */
interface Pace {
  readonly failures: number;
  readonly notBeforeMs: number;
}

/** How often one object's status is written, at most. */
const WRITE_MS = 1_000;
const LONGEST_MS = 60_000;

/**
 * What the gateway sees: objects, changes and views. None of it is its own, and nothing has to survive it; what it
 * keeps besides that is when it did what.
 */
export class State {
  /** By `Kind/name`. */
  readonly resources = new Map<string, Resource>();
  readonly rolloutResources = new Map<string, RolloutResource>();
  /** Kinds of which all objects were seen. */
  readonly listed = new Set<string>();
  readonly index = new ChangeIndex();
  readonly rollouts = new Map<string, RolloutView>();
  readonly pools = new Map<string, PoolView>();
  /** Nodes that have left the fleet. */
  readonly leftNodes = new Set<string>();
  /** Those that are under way, by node. */
  readonly drains = new Map<string, ObservedDrain>();
  /** What to tell of them, as of `lookAtDrains`. */
  drainTroubles: DrainTroubles = NO_DRAIN_TROUBLE;
  /** Kinds whose definition in the API server is of another version, and what that means. */
  definitions: DefinitionTrouble = NO_TROUBLE;
  /** How the webhook stands; undefined where there is none. */
  admission: CertificateStatus | undefined;
  /** The ledger's sequence at which a config was cleared last. */
  clearedAt = 0;
  /** When an object was last heard that says something new. */
  heardMs = 0;
  /** What the last decision left for the next. */
  memory: Pick<Memory, 'wantingSinceMs'> = { wantingSinceMs: undefined };
  /** Up to which change all of them were read. */
  readTo = 0;
  /** The generation of a Rollout whose wish was dealt with, and the answer if it was refused. */
  readonly steered = new Map<string, { readonly generation: number; readonly refusal: string }>();
  /** Memory.calm of all decisions. */
  readonly calm = new WeakMap<Resource, readonly unknown[]>();
  private readonly paces = new Map<string, Pace>();

  constructor(readonly digest: Digest) {}

  /** All objects of a kind: what is not among them is gone. */
  list(kind: string, all: readonly ObservedObject[], nowMs: number): void {
    const names = new Set(all.map(({ name }) => name));
    for (const [id, { kind: of, name }] of this.resources) if (of === kind && !names.has(name)) this.forget(id, nowMs);
    for (const heard of all) this.hear(heard, nowMs);
    this.listed.add(kind);
  }

  hear(heard: ObservedObject, nowMs: number): void {
    const resource = resourceOf(heard, this.digest);
    const before = this.resources.get(resource.id);
    if (before !== undefined && isOlder(heard, before)) return;
    this.resources.set(resource.id, resource);
    const isNew =
      before?.uid !== resource.uid ||
      before.hash !== resource.hash ||
      before.deleting !== resource.deleting ||
      before.retry !== resource.retry;
    if (isNew) this.heardMs = nowMs;
  }

  gone({ kind, name, uid }: Pick<ObservedObject, 'kind' | 'name' | 'uid'>, nowMs: number): void {
    const id = `${kind}/${name}`;
    if (this.resources.get(id)?.uid === uid) this.forget(id, nowMs);
  }

  hearRollout(heard: RolloutResource): void {
    const before = this.rolloutResources.get(heard.name);
    if (before === undefined || !isOlder(heard, before)) this.rolloutResources.set(heard.name, heard);
  }

  /** `endedMs`: when it ended, monotonic. */
  show(change: ChangeView, endedMs = 0): void {
    this.index.show(change, endedMs);
  }

  showNode({ node, state }: Pick<NodeView, 'node' | 'state'>): void {
    if (state === 'gone') this.leftNodes.add(node);
    else this.leftNodes.delete(node);
  }

  /** `sinceMs`: since when the view says that it is held up, or drains; monotonic. */
  showDrain(view: DrainView, sinceMs: number): void {
    if (view.state === 'draining') this.drains.set(view.node, { view, sinceMs });
    else this.drains.delete(view.node);
  }

  showKnownBad({ clearedBy, ledger }: KnownBadView): void {
    if (clearedBy !== '') this.clearedAt = Math.max(this.clearedAt, ledger);
  }

  /** Drains are told when they have been held up for a while: time alone changes what there is to tell. */
  lookAtDrains(nowMs: number): void {
    this.drainTroubles = drainTroubles(this.drains.values(), nowMs);
  }

  remember({ wantingSinceMs, calm }: Memory): void {
    this.memory = { wantingSinceMs };
    for (const [resource, basis] of calm) this.calm.set(resource, basis);
  }

  /** Whether something may be done now; else when. */
  notBefore(key: string): number {
    return this.paces.get(key)?.notBeforeMs ?? 0;
  }

  hasFailed(key: string): boolean {
    return (this.paces.get(key)?.failures ?? 0) > 0;
  }

  /** It is being done: until it was done, or failed, it is not done again. */
  begins(key: string): void {
    this.paces.set(key, { failures: this.paces.get(key)?.failures ?? 0, notBeforeMs: Infinity });
  }

  /** It was done, and may be done again after a while. */
  did(key: string, nowMs: number): void {
    this.paces.set(key, { failures: 0, notBeforeMs: nowMs + WRITE_MS });
  }

  /** It failed, and is tried again at growing distances. */
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
 * An answer to a write may come before the watch shows what was there before it. Revisions of one object are ordered
 * numbers.
 */
const isOlder = (
  one: { readonly uid: string; readonly revision: string },
  other: { readonly uid: string; readonly revision: string },
): boolean => one.uid === other.uid && Number(one.revision) < Number(other.revision);
