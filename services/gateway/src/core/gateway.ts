import { manifestOf } from '#libs/manifests';
import { FINALIZER, type Resource, type Status } from './resource.js';
import { ABSENT, weightOf, type Change } from './changes.js';
import { isSame } from './conditions.js';
import { declaredOf } from './definitions.js';
import { rolloutActions, type RolloutAction } from './rollouts.js';
import { desiredOf, isOffAllNodes, type PublishedState, publishedStateOf, triedAgainAtMs } from './published-state.js';
import type { Memory, State } from './state.js';
import { stallOf, statusOf } from './status.js';

/*
 * Invariants:
 * 1. What is published differs from what the newest open or committed change says about it, or it was refused and is
 *    retried for a reason that a newer change resolves.
 * 2. An object without our finalizer is not published, so no object can disappear without a published deletion.
 * 3. The finalizer is removed when the deletion is committed, or when there is nothing to remove from the nodes.
 * 4. A status is written only if it differs, and at most once a second for each object. No decision depends on one
 *    (except a Rollout's observedGeneration, which says which request was handled).
 */

/** A change to publish. */
export interface Batch {
  readonly text: string;
  /** Makes a retry of the same publish harmless. */
  readonly id: string;
}

export type GatewayAction =
  | { readonly do: 'hold' | 'release'; readonly resource: Resource; readonly finalizers: readonly string[] }
  | { readonly do: 'show'; readonly resource: Resource; readonly status: Status }
  | RolloutAction;

export interface GatewayDecision {
  /** Changes whose content must be read before more can be decided. */
  readonly unread: readonly string[];
  /** To publish now, one after another, if all changes up to now were read, and after those. */
  readonly publish: readonly Batch[];
  /** All changes up to now must also be read before an object is released. */
  readonly actions: readonly GatewayAction[];
  /** When to decide again if nothing arrives; Infinity for never. */
  readonly wakeAtMs: number;
  /** What to remember for the next decision. */
  readonly memory: Memory;
}

export interface Timing {
  readonly nowMs: number;
  /** The wall-clock time, for conditions. */
  readonly at: string;
  /** Edits within this time become one change. */
  readonly debounceMs: number;
}

/** However long edits continue, they are published this many debounces after the first one. */
const PATIENCE = 10;
const BATCH_BYTES = 800 * 1_024;

/** Decides what to publish and what to write, from the current state only. Leaves the state unchanged. */
export function decide(state: State, timing: Timing): GatewayDecision {
  const unread = new Set<string>(state.index.unread);
  const actions: GatewayAction[] = [];
  const calm = new Map<Resource, readonly unknown[]>();
  const wanting: { readonly resource: Resource; readonly after: string }[] = [];
  let { wakeAtMs } = state.drainTroubles;
  const propose = (key: string, action: GatewayAction): void => {
    const from = state.notBefore(key);
    if (from <= timing.nowMs) actions.push(action);
    else wakeAtMs = Math.min(wakeAtMs, from);
  };
  for (const resource of state.resources.values()) {
    const published = publishedStateOf(state, resource);
    if (isCalm(state, resource, published)) continue;
    if (published.state === 'unread') for (const change of published.changes) unread.add(change);
    const { after, fromMs } = publishedAfter(state, resource, published, timing.nowMs);
    wakeAtMs = Math.min(wakeAtMs, fromMs);
    if (after !== undefined) wanting.push({ resource, after });
    const finalizer = finalizerAction(state, resource, published, after !== undefined);
    if (finalizer !== undefined) propose(`finalizer ${resource.id}`, finalizer);
    const statusFrom = state.notBefore(`status ${resource.id}`);
    if (statusFrom > timing.nowMs) {
      wakeAtMs = Math.min(wakeAtMs, statusFrom);
      continue;
    }
    const wholeStatus = after === undefined ? statusOf(state, resource, published, timing.at) : undefined;
    const status = wholeStatus && declaredOf(state.definitions, resource.kind, wholeStatus);
    if (status !== undefined && finalizer?.do !== 'release' && !isSame(status, resource.status))
      propose(`status ${resource.id}`, { do: 'show', resource, status });
    else if (finalizer === undefined && published.state === 'carried')
      calm.set(resource, basisOf(state, resource, published.change));
  }
  const rollouts = rolloutActions(state, timing.nowMs, timing.at);
  const publishing =
    unread.size > 0
      ? { publish: [], wakeAtMs: Infinity, wantingSinceMs: state.memory.wantingSinceMs }
      : publishDue(state, wanting, timing);
  return {
    unread: [...unread],
    publish: publishing.publish,
    actions: [...actions, ...rollouts.actions],
    wakeAtMs: Math.min(wakeAtMs, rollouts.wakeAtMs, publishing.wakeAtMs),
    memory: { wantingSinceMs: publishing.wantingSinceMs, calm },
  };
}

/**
 * Whether there was nothing to do for it at the last check, and nothing that this was based on has changed. This is
 * true for most objects, most of the time.
 */
function isCalm(state: State, resource: Resource, published: PublishedState): boolean {
  const before = state.calm.get(resource);
  return (
    before !== undefined &&
    published.state === 'carried' &&
    basisOf(state, resource, published.change).every((part, i) => part === before[i])
  );
}

const basisOf = (
  { rollouts, reached, pools, admission, definitions, drainTroubles: { ofPool } }: State,
  { id, kind, name }: Resource,
  change: Change,
): readonly unknown[] => [
  change,
  rollouts.get(change.change),
  stallOf(rollouts.get(change.change), pools),
  reached.get(id),
  definitions.kinds.get(kind),
  ...(kind === 'Pool' ? [pools.get(name), admission?.words, ofPool.get(name)?.words] : []),
];

/** The newest change about an object that must be published, if it is due; otherwise when it is due. */
function publishedAfter(
  state: State,
  resource: Resource,
  published: PublishedState,
  nowMs: number,
): { readonly after?: string; readonly fromMs: number } {
  if (resource.deleting && !resource.finalizers.includes(FINALIZER)) return { fromMs: Infinity };
  if (published.state === 'differs') return { after: published.after, fromMs: Infinity };
  const fromMs = published.state === 'failed' ? triedAgainAtMs(state, resource, published.change) : Infinity;
  return published.state === 'failed' && fromMs <= nowMs
    ? { after: published.change.change, fromMs: Infinity }
    : { fromMs };
}

/** Sets the finalizer on what will be published, and removes it from what is off the nodes. */
function finalizerAction(
  state: State,
  resource: Resource,
  published: PublishedState,
  isWanting: boolean,
): GatewayAction | undefined {
  const { deleting, finalizers } = resource;
  const isHeld = finalizers.includes(FINALIZER);
  if (deleting) {
    const isOver =
      published.state === 'nothing' || (published.state === 'carried' && weightOf(published.change) === 'committed');
    return isHeld && isOver && isOffAllNodes(state, resource)
      ? { do: 'release', resource, finalizers: finalizers.filter((one) => one !== FINALIZER) }
      : undefined;
  }
  // Also what others published and the object only repeats: its deletion is published, too.
  return !isHeld && (isWanting || published.state === 'carried' || published.state === 'failed')
    ? { do: 'hold', resource, finalizers: [...finalizers, FINALIZER] }
    : undefined;
}

function publishDue(
  state: State,
  wanting: readonly { readonly resource: Resource; readonly after: string }[],
  { nowMs, debounceMs }: Timing,
): Pick<GatewayDecision, 'publish' | 'wakeAtMs'> & Pick<Memory, 'wantingSinceMs'> {
  if (wanting.length === 0) return { publish: [], wakeAtMs: Infinity, wantingSinceMs: undefined };
  const wantingSinceMs = state.memory.wantingSinceMs ?? nowMs;
  const lastMs = wantingSinceMs + PATIENCE * debounceMs;
  const dueMs = Math.min(Math.max(state.heardMs, wantingSinceMs) + debounceMs, lastMs);
  if (nowMs < dueMs) return { publish: [], wakeAtMs: dueMs, wantingSinceMs };
  const ready = wanting.filter(({ resource }) => resource.finalizers.includes(FINALIZER));
  // An object that cannot get the finalizer because of a missing right delays the others only until that was tried.
  const isAboutTo = wanting.some(
    ({ resource }) => !resource.finalizers.includes(FINALIZER) && !state.hasFailed(`finalizer ${resource.id}`),
  );
  if (isAboutTo) return { publish: [], wakeAtMs: Infinity, wantingSinceMs };
  return { publish: batchesOf(ready).map((batch) => toBatch(state, batch)), wakeAtMs: Infinity, wantingSinceMs };
}

type PendingObjects = readonly { readonly resource: Resource; readonly after: string }[];

const takesOverOf = ({ takeOver }: Resource): boolean => takeOver === true;

/** One batch, if it fits into a message; and one for what may be taken over from other sources. */
function batchesOf(ready: PendingObjects): readonly PendingObjects[] {
  const batches: { readonly resource: Resource; readonly after: string }[][] = [];
  let bytes = Infinity;
  let takesOver = false;
  const order = ({ resource }: PendingObjects[number]): string => `${Number(takesOverOf(resource))} ${resource.id}`;
  for (const one of [...ready].sort((a, b) => (order(a) < order(b) ? -1 : 1))) {
    const more = one.resource.deleting ? 400 : one.resource.bytes;
    if (bytes + more > BATCH_BYTES || takesOver !== takesOverOf(one.resource)) {
      batches.push([]);
      bytes = 0;
      takesOver = takesOverOf(one.resource);
    }
    batches.at(-1)?.push(one);
    bytes += more;
  }
  return batches;
}

function toBatch({ digest }: State, batch: PendingObjects): Batch {
  const resources = batch.map(({ resource }) => resource);
  const gone = resources.filter((resource) => desiredOf(resource) === ABSENT);
  const [first] = resources;
  const message = `${first?.deleting === true ? 'delete' : 'apply'} ${first?.id}${resources.length > 1 ? ` and ${resources.length - 1} more` : ''}`;
  const body = {
    apply: resources.filter((resource) => !gone.includes(resource)).map(manifestOf),
    delete: gone.map(({ kind, name }) => ({ kind, name })),
    message,
    author: 'kubernetes',
    ...(first !== undefined && takesOverOf(first) ? { takeOver: true } : {}),
  };
  const id = digest(
    JSON.stringify(
      batch.map(({ resource, after }) => [resource.id, resource.uid, resource.generation, desiredOf(resource), after]),
    ),
  ).slice(0, 32);
  return { text: JSON.stringify(body), id };
}
