import { isMeant, treatmentOf, type DrainPolicy, type PodFeatures } from '#libs/manifests';
import type { Block, Refusal } from './state.js';

/** A pod on the node, as it was last read. */
export interface DrainPod extends PodFeatures {
  readonly name: string;
  readonly uid: string;
  readonly controller: string | undefined;
  readonly mirror: boolean;
  readonly emptyDir: boolean;
  readonly finished: boolean;
  readonly ending: boolean;
  readonly graceSeconds: number;
}

/** The evictions of a pod that were tried so far. This is memory of one copy: another copy starts from scratch. */
export interface Try {
  readonly refusals: number;
  /** When to try again, monotonic. */
  readonly nextMs: number;
  /** When the current refusals began, monotonic. */
  readonly sinceMs: number;
  /** The last refusal; undefined if there was none. */
  readonly refusal: Refusal | undefined;
  /** When it was first seen terminating after it was deleted, monotonic. */
  readonly forcedMs: number | undefined;
}

export interface Scene<P extends DrainPod> {
  readonly policy: DrainPolicy;
  /** The node reboots, so all pods must go, even if the pool drains only some. */
  readonly reboots: boolean;
  readonly pods: readonly P[];
  readonly tries: ReadonlyMap<string, Try>;
  readonly nowMs: number;
  readonly startedMs: number;
  /** From the lease: after this time the scheduler ends the drain. */
  readonly drainMs: number;
  /** The pool of the lease. */
  readonly pool: string;
  /** The pod that this process runs in, as namespace/name; it is evicted last. Undefined outside Kubernetes. */
  readonly self: string | undefined;
}

export interface Eviction<P extends DrainPod> {
  readonly pod: P;
  /** `evict` respects budgets, which may refuse it; `delete` ignores them. */
  readonly how: 'evict' | 'delete';
  readonly graceSeconds: number | undefined;
}

/** What blocks a drain now. */
export interface PlannedBlock extends Omit<Block, 'since'> {
  /** Whether to record it at once, or only if it lasts. */
  readonly lasting: boolean;
}

export interface EvictionPlan<P extends DrainPod> {
  readonly now: readonly Eviction<P>[];
  /** The pods that still have to go. */
  readonly left: readonly P[];
  readonly block: PlannedBlock | undefined;
  /** The time for the drain is over. */
  readonly timedOut: boolean;
  /** When to reconcile again if no watch event arrives, monotonic. */
  readonly reconcileAtMs: number;
}

/** End the drain this long before the scheduler's own deadline, which could not give a reason. */
const MARGIN_MS = 5_000;
/** Short refusals are normal while the pods of one budget go one after another. Only a longer one becomes a fact. */
const LASTING_MS = 5_000;
/** How long a deleted pod may stay beyond its grace period. */
const BEYOND_GRACE_MS = 5_000;
/** The pool of a node that no Pool selects. */
const NO_POOL = 'default';
/** Reconcile at least this often, in case a watch misses an event. */
const RECONCILE_MS = 5_000;
/** How many pods are evicted at once, so that one node does not overload the API server. */
const AT_ONCE = 20;
const FIRST_AGAIN_MS = 500;
const LAST_AGAIN_MS = 30_000;
/** How many pods a message names; the rest is counted. */
export const NAMED = 10;

export const nameOf = ({ namespace, name }: Pick<DrainPod, 'namespace' | 'name'>): string => `${namespace}/${name}`;

/**
 * Decides what to do with the pods of a node now. Pods of a lower order go first; pods of the same order go together.
 * If a pod that must not be evicted would remain, no pod is evicted.
 */
export function planEvictions<P extends DrainPod>(scene: Scene<P>): EvictionPlan<P> {
  const { nowMs, startedMs, drainMs } = scene;
  const endMs = startedMs + drainMs - Math.min(MARGIN_MS, drainMs / 10);
  const forceMs = scene.policy.onTimeout === 'force' ? startedMs + drainMs / 2 : Infinity;
  const left = scene.pods.filter((pod) => mustGo(scene, pod));
  const forced = nowMs >= forceMs;
  const careful = forced ? undefined : carefulBlock(scene, left);
  const now =
    careful !== undefined
      ? []
      : inTurn(scene, left, forced)
          .flatMap((pod) => evictionOf(scene, pod, forced))
          .slice(0, AT_ONCE);
  const again = left.flatMap((pod) => (forced ? goneMs(scene, pod) : scene.tries.get(pod.uid)?.nextMs) ?? []);
  const times = [nowMs + RECONCILE_MS, endMs, forceMs, ...again].filter((atMs) => atMs > nowMs);
  return {
    now,
    left,
    block: careful ?? refusal(scene, left),
    timedOut: nowMs >= endMs,
    reconcileAtMs: Math.min(...times),
  };
}

/**
 * Records a refused eviction. The wait before the next try grows each time. A refusal with another reason starts over,
 * because the earlier budget no longer blocks the pod.
 */
export function refusedAgain(before: Try | undefined, refusal: Refusal, nowMs: number, askedMs = 0): Try {
  const same = budgetOf(before) === refusal.budget?.name ? before : undefined;
  const refusals = (same?.refusals ?? 0) + 1;
  const againMs = Math.min(LAST_AGAIN_MS, Math.max(askedMs, FIRST_AGAIN_MS * 2 ** Math.min(refusals - 1, 16)));
  return { forcedMs: undefined, refusal, refusals, nextMs: nowMs + againMs, sinceMs: same?.sinceMs ?? nowMs };
}

function mustGo({ policy, reboots }: Scene<DrainPod>, pod: DrainPod): boolean {
  if (pod.mirror || pod.finished || pod.controller === 'DaemonSet') return false;
  if (!reboots && !isMeant(policy, pod)) return false;
  return treatmentOf(policy, pod).action !== 'skip';
}

/** The pods whose turn it is: those of the lowest remaining order. The pod of this process goes after all others. */
function inTurn<P extends DrainPod>({ policy, self }: Scene<P>, left: readonly P[], forced: boolean): readonly P[] {
  const order = (pod: P): number => (nameOf(pod) === self ? Infinity : forced ? 0 : treatmentOf(policy, pod).order);
  const first = Math.min(...left.map(order));
  return left.filter((pod) => order(pod) === first).sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
}

function evictionOf<P extends DrainPod>(scene: Scene<P>, pod: P, forced: boolean): readonly Eviction<P>[] {
  const { policy, tries, nowMs } = scene;
  const attempt = tries.get(pod.uid);
  if (forced) {
    if (!pod.ending) return [{ pod, how: 'delete', graceSeconds: policy.graceSeconds }];
    return nowMs >= (goneMs(scene, pod) ?? Infinity) ? [{ pod, how: 'delete', graceSeconds: 0 }] : [];
  }
  if (pod.ending || treatmentOf(policy, pod).action === 'wait' || (attempt !== undefined && attempt.nextMs > nowMs))
    return [];
  return [{ pod, how: 'evict', graceSeconds: policy.graceSeconds }];
}

/** When a deleted pod should be gone; undefined if it was not seen terminating. */
function goneMs({ policy, tries }: Scene<DrainPod>, { uid, graceSeconds }: DrainPod): number | undefined {
  const forcedMs = tries.get(uid)?.forcedMs;
  return forcedMs === undefined
    ? undefined
    : forcedMs + (policy.graceSeconds ?? graceSeconds) * 1_000 + BEYOND_GRACE_MS;
}

/** Pods that are evicted only if the pool allows it. While one of them blocks the drain, no other pod is evicted. */
function carefulBlock(
  { policy, pool }: Pick<Scene<DrainPod>, 'policy' | 'pool'>,
  left: readonly DrainPod[],
): PlannedBlock | undefined {
  const remedy = (field: string): string =>
    `to evict them anyway, set drain.${field}: evict in ${pool === NO_POOL ? 'a Pool that selects the node' : `Pool/${pool}`}`;
  const toDrain = left.filter((pod) => !pod.ending && treatmentOf(policy, pod).action === 'drain');
  const unmanaged = policy.unmanaged === 'block' ? toDrain.filter(({ controller }) => controller === undefined) : [];
  const scratch = policy.emptyDir === 'block' ? toDrain.filter(({ emptyDir }) => emptyDir) : [];
  const reasons = [
    ...(unmanaged.length > 0 ? [`no controller would recreate ${namesOf(unmanaged)} (${remedy('unmanaged')})`] : []),
    ...(scratch.length > 0
      ? [`the emptyDir volumes of ${namesOf(scratch)} would be lost (${remedy('emptyDir')})`]
      : []),
  ];
  if (reasons.length === 0) return undefined;
  const pods = [...new Set([...unmanaged, ...scratch].map(nameOf))].sort().slice(0, NAMED);
  return { reason: reasons.join('; '), budget: undefined, pods, lasting: true };
}

/** The refusal that has lasted longest. */
function refusal({ tries, nowMs }: Scene<DrainPod>, left: readonly DrainPod[]): PlannedBlock | undefined {
  const refused = left.filter(({ uid, ending }) => !ending && tries.get(uid)?.refusal !== undefined);
  const longest = refused
    .map(({ uid }) => tries.get(uid) as Try)
    .sort((a, b) => a.sinceMs - b.sinceMs || ((budgetOf(a) ?? '') < (budgetOf(b) ?? '') ? -1 : 1))[0];
  if (longest?.refusal === undefined) return undefined;
  const pods = refused.filter(({ uid }) => budgetOf(tries.get(uid)) === budgetOf(longest));
  const { refusal: why, sinceMs, refusals } = longest;
  // A budget that refused and was deleted before it was read has no name here: the next try may succeed.
  const lasting = nowMs - sinceMs >= LASTING_MS && (why.budget !== undefined || refusals > 1);
  return { ...why, pods: pods.map(nameOf).sort().slice(0, NAMED), lasting };
}

const budgetOf = (attempt: Try | undefined): string | undefined => attempt?.refusal?.budget?.name;

/** The names of the first few pods, and how many more there are. */
export function namesOf(pods: readonly Pick<DrainPod, 'namespace' | 'name'>[]): string {
  const names = pods.map(nameOf).sort();
  return names.length <= NAMED
    ? names.join(', ')
    : `${names.slice(0, NAMED).join(', ')} and ${names.length - NAMED} more`;
}
