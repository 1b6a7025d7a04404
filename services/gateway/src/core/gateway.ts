import { FINALIZER, manifestOf, type Resource, type Status } from './resource.js';
import { ABSENT, weightOf, type Change } from './changes.js';
import { isSame } from './conditions.js';
import { declaredOf } from './definitions.js';
import { rolloutActions, type RolloutAction } from './rollouts.js';
import { publishedStateOf, triedAgainAtMs, wantedOf, type PublishedState } from './published-state.js';
import type { Memory, State } from './state.js';
import { statusOf } from './status.js';

/*
 * What always holds:
 * 1. What is published differs from what the newest open or committed change says of it, or was refused and is tried
 *    again for a reason that a newer change undoes.
 * 2. An object without our finalizer is not published: so none can go without its deletion being published.
 * 3. The finalizer is removed when the deletion is committed, or when there is nothing to take off the nodes.
 * 4. A status is written only where it differs from what is there, and at most once a second for each object; no
 *    decision rests on one (but for a Rollout's observedGeneration, which says whose wish was dealt with).
 */

/** A change to publish. */
export interface Batch {
  readonly text: string;
  /** Makes a retry of the same harmless. */
  readonly id: string;
}

export type GatewayAction =
  | { readonly do: 'hold' | 'release'; readonly resource: Resource; readonly finalizers: readonly string[] }
  | { readonly do: 'show'; readonly resource: Resource; readonly status: Status }
  | RolloutAction;

export interface GatewayDecision {
  /** Changes whose content has to be read before more can be decided. */
  readonly unread: readonly string[];
  /** To publish now, one after the other, if all changes up to now were seen, and behind those. */
  readonly publish: readonly Batch[];
  /** To release an object all changes up to now must have been seen, too. */
  readonly actions: readonly GatewayAction[];
  /** When to decide again if nothing is heard; Infinity for never. */
  readonly wakeAtMs: number;
  /** What to remember for the next decision. */
  readonly memory: Memory;
}

export interface Timing {
  readonly nowMs: number;
  /** The time of day, for conditions. */
  readonly at: string;
  /** What comes within it goes into one change. */
  readonly debounceMs: number;
}

/** However long edits go on, so many times the debounce after the first of them they are published. */
const PATIENCE = 10;
const BATCH_BYTES = 800 * 1_024;

/** Decides what to publish and what to write, from what is seen now alone; leaves the state unchanged. */
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
    const stand = publishedStateOf(state, resource);
    if (isCalm(state, resource, stand)) continue;
    if (stand.is === 'unread') for (const change of stand.changes) unread.add(change);
    const { after, fromMs } = publishedAfter(state, resource, stand, timing.nowMs);
    wakeAtMs = Math.min(wakeAtMs, fromMs);
    if (after !== undefined) wanting.push({ resource, after });
    const held = finalizerAction(resource, stand, after !== undefined);
    if (held !== undefined) propose(`finalizer ${resource.id}`, held);
    const statusFrom = state.notBefore(`status ${resource.id}`);
    if (statusFrom > timing.nowMs) {
      wakeAtMs = Math.min(wakeAtMs, statusFrom);
      continue;
    }
    const told = after === undefined ? statusOf(state, resource, stand, timing.at) : undefined;
    const status = told && declaredOf(state.definitions, resource.kind, told);
    if (status !== undefined && held?.do !== 'release' && !isSame(status, resource.status))
      propose(`status ${resource.id}`, { do: 'show', resource, status });
    else if (held === undefined && stand.is === 'carried') calm.set(resource, basisOf(state, resource, stand.change));
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
 * Whether there was nothing to do about it when it was looked at last, and nothing that this rested on is another now.
 * Most objects are so, most of the time.
 */
function isCalm(state: State, resource: Resource, stand: PublishedState): boolean {
  const before = state.calm.get(resource);
  return (
    before !== undefined &&
    stand.is === 'carried' &&
    basisOf(state, resource, stand.change).every((part, i) => part === before[i])
  );
}

const basisOf = (
  { rollouts, pools, admission, definitions, drainTroubles: { ofPool } }: State,
  { kind, name }: Resource,
  change: Change,
): readonly unknown[] => [
  change,
  rollouts.get(change.change),
  definitions.kinds.get(kind),
  ...(kind === 'Pool' ? [pools.get(name), admission?.words, ofPool.get(name)?.words] : []),
];

/** The newest change about an object that is to be published, if it is to be now; else from when on. */
function publishedAfter(
  state: State,
  resource: Resource,
  stand: PublishedState,
  nowMs: number,
): { readonly after?: string; readonly fromMs: number } {
  if (resource.deleting && !resource.finalizers.includes(FINALIZER)) return { fromMs: Infinity };
  if (stand.is === 'differs') return { after: stand.after, fromMs: Infinity };
  const fromMs = stand.is === 'failed' ? triedAgainAtMs(state, resource, stand.change) : Infinity;
  return stand.is === 'failed' && fromMs <= nowMs ? { after: stand.change.change, fromMs: Infinity } : { fromMs };
}

/** Takes hold of what is to be published, and lets go of what is off the nodes. */
function finalizerAction(resource: Resource, stand: PublishedState, isWanting: boolean): GatewayAction | undefined {
  const { deleting, finalizers } = resource;
  const isHeld = finalizers.includes(FINALIZER);
  if (deleting) {
    const isOver = stand.is === 'nothing' || (stand.is === 'carried' && weightOf(stand.change) === 'committed');
    return isHeld && isOver
      ? { do: 'release', resource, finalizers: finalizers.filter((one) => one !== FINALIZER) }
      : undefined;
  }
  // What others published, and the object only repeats, is the object's from now on.
  return !isHeld && (isWanting || stand.is === 'carried' || stand.is === 'failed')
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
  // One that cannot be held, for want of a right, keeps the others only until that was tried.
  const isAboutTo = wanting.some(
    ({ resource }) => !resource.finalizers.includes(FINALIZER) && !state.hasFailed(`finalizer ${resource.id}`),
  );
  if (isAboutTo) return { publish: [], wakeAtMs: Infinity, wantingSinceMs };
  return { publish: batchesOf(ready).map((batch) => toBatch(state, batch)), wakeAtMs: Infinity, wantingSinceMs };
}

type PendingObjects = readonly { readonly resource: Resource; readonly after: string }[];

/** One batch, if it fits into a message. */
function batchesOf(ready: PendingObjects): readonly PendingObjects[] {
  const batches: { readonly resource: Resource; readonly after: string }[][] = [];
  let bytes = Infinity;
  for (const one of [...ready].sort((a, b) => (a.resource.id < b.resource.id ? -1 : 1))) {
    const more = one.resource.deleting ? 400 : one.resource.bytes;
    if (bytes + more > BATCH_BYTES) {
      batches.push([]);
      bytes = 0;
    }
    batches.at(-1)?.push(one);
    bytes += more;
  }
  return batches;
}

function toBatch({ digest }: State, batch: PendingObjects): Batch {
  const resources = batch.map(({ resource }) => resource);
  const gone = resources.filter((resource) => wantedOf(resource) === ABSENT);
  const [first] = resources;
  const message = `${first?.deleting === true ? 'delete' : 'apply'} ${first?.id}${resources.length > 1 ? ` and ${resources.length - 1} more` : ''}`;
  const body = {
    apply: resources.filter((resource) => !gone.includes(resource)).map(manifestOf),
    delete: gone.map(({ kind, name }) => ({ kind, name })),
    message,
    author: 'kubernetes',
  };
  const id = digest(
    JSON.stringify(
      batch.map(({ resource, after }) => [resource.id, resource.uid, resource.generation, wantedOf(resource), after]),
    ),
  ).slice(0, 32);
  return { text: JSON.stringify(body), id };
}
