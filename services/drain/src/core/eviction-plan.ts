import { isMeant, treatmentOf, type DrainPolicy, type PodFeatures } from '#libs/manifests';

/** A pod on the node that is drained, as it was seen. */
export interface PodSeen extends PodFeatures {
  readonly name: string;
  readonly uid: string;
  readonly controller: string;
  readonly mirror: boolean;
  readonly emptyDir: boolean;
  readonly finished: boolean;
  readonly ending: boolean;
  readonly graceSeconds: number;
}

/** What was tried with a pod so far. A copy's own memory: another copy starts from scratch. */
export interface Try {
  readonly refusals: number;
  /** When to try again, monotonic. */
  readonly nextMs: number;
  /** Since when it is refused, monotonic. */
  readonly sinceMs: number;
  /** What refused it last. */
  readonly reason: string;
  readonly budget: string;
  readonly allowed: number;
  /** When it was first seen ending though it was forced, monotonic. */
  readonly forcedMs: number | undefined;
}

export interface Scene<P extends PodSeen> {
  readonly policy: DrainPolicy;
  /** The node goes down whole: a partial drain would not do. */
  readonly reboots: boolean;
  readonly pods: readonly P[];
  readonly tries: ReadonlyMap<string, Try>;
  readonly nowMs: number;
  readonly startedMs: number;
  /** Of the lease: the scheduler gives it up after this. */
  readonly drainMs: number;
  /** The pool of the lease. */
  readonly pool: string;
  /** The pod that this very process runs in, as namespace/name; it goes last. */
  readonly self: string;
}

export interface Eviction<P extends PodSeen> {
  readonly pod: P;
  /** `evict` asks, and budgets may refuse; `delete` does not ask. */
  readonly how: 'evict' | 'delete';
  readonly graceSeconds: number | undefined;
}

/** What holds a drain up, for people. */
export interface Block {
  readonly reason: string;
  readonly budget: string;
  readonly allowed: number;
  readonly pods: readonly string[];
  /** Whether to say so at once, or only if it lasts. */
  readonly lasting: boolean;
}

export interface EvictionPlan<P extends PodSeen> {
  readonly now: readonly Eviction<P>[];
  /** Those that have to go and have not gone. */
  readonly left: readonly P[];
  readonly block: Block | undefined;
  /** The drain has run out of its time. */
  readonly timedOut: boolean;
  /** When to look again though nothing is heard, monotonic. */
  readonly reconcileAtMs: number;
}

/** Before the scheduler's own deadline, whose word would know no reason. */
const MARGIN_MS = 5_000;
/** A refusal is common where pods of one budget go one after the other; one that lasts is worth a fact. */
const LASTING_MS = 5_000;
/** Beyond its grace a pod that was forced is given this long. */
const BEYOND_GRACE_MS = 5_000;
/** The pool of a node that no Pool selects. */
const NO_POOL = 'default';
/** What is missed by watching is found by looking. */
const RECONCILE_MS = 5_000;
/** Bounded, so that one node does not take all of the API server. */
const AT_ONCE = 20;
const FIRST_AGAIN_MS = 500;
const LAST_AGAIN_MS = 30_000;
/** Names in messages; the rest is counted. */
export const NAMED = 10;

export const nameOf = ({ namespace, name }: Pick<PodSeen, 'namespace' | 'name'>): string => `${namespace}/${name}`;

/**
 * What to do about the pods of a node now. Pods of one order go together, those of a lower one first; nothing is
 * evicted where what must not be touched would remain.
 */
export function planEvictions<P extends PodSeen>(scene: Scene<P>): EvictionPlan<P> {
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
 * What is remembered of a pod whose eviction was refused: each time it is left alone for longer. A refusal for another
 * reason starts over: a budget that has gone holds nothing up any more.
 */
export function refusedAgain(
  before: Try | undefined,
  refused: { readonly reason: string; readonly budget: string; readonly allowed: number },
  nowMs: number,
  askedMs = 0,
): Try {
  const same = before?.budget === refused.budget ? before : undefined;
  const refusals = (same?.refusals ?? 0) + 1;
  const againMs = Math.min(LAST_AGAIN_MS, Math.max(askedMs, FIRST_AGAIN_MS * 2 ** Math.min(refusals - 1, 16)));
  return { forcedMs: undefined, ...refused, refusals, nextMs: nowMs + againMs, sinceMs: same?.sinceMs ?? nowMs };
}

function mustGo({ policy, reboots }: Scene<PodSeen>, pod: PodSeen): boolean {
  if (pod.mirror || pod.finished || pod.controller === 'DaemonSet') return false;
  if (!reboots && !isMeant(policy, pod)) return false;
  return treatmentOf(policy, pod).action !== 'skip';
}

/** Those whose turn it is: the lowest order that is left, and this process's own pod after all others. */
function inTurn<P extends PodSeen>({ policy, self }: Scene<P>, left: readonly P[], forced: boolean): readonly P[] {
  const order = (pod: P): number => (nameOf(pod) === self ? Infinity : forced ? 0 : treatmentOf(policy, pod).order);
  const first = Math.min(...left.map(order));
  return left.filter((pod) => order(pod) === first).sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
}

function evictionOf<P extends PodSeen>(scene: Scene<P>, pod: P, forced: boolean): readonly Eviction<P>[] {
  const { policy, tries, nowMs } = scene;
  const tried = tries.get(pod.uid);
  if (forced) {
    if (!pod.ending) return [{ pod, how: 'delete', graceSeconds: policy.graceSeconds }];
    return nowMs >= (goneMs(scene, pod) ?? Infinity) ? [{ pod, how: 'delete', graceSeconds: 0 }] : [];
  }
  if (pod.ending || treatmentOf(policy, pod).action === 'wait' || (tried !== undefined && tried.nextMs > nowMs))
    return [];
  return [{ pod, how: 'evict', graceSeconds: policy.graceSeconds }];
}

/** When a pod that was forced should long have ended; undefined where it was not seen to be ending. */
function goneMs({ policy, tries }: Scene<PodSeen>, { uid, graceSeconds }: PodSeen): number | undefined {
  const forcedMs = tries.get(uid)?.forcedMs;
  return forcedMs === undefined
    ? undefined
    : forcedMs + (policy.graceSeconds ?? graceSeconds) * 1_000 + BEYOND_GRACE_MS;
}

/** Pods that are evicted only if the pool allows it. While one of them blocks the drain, no other pod is evicted. */
function carefulBlock(
  { policy, pool }: Pick<Scene<PodSeen>, 'policy' | 'pool'>,
  left: readonly PodSeen[],
): Block | undefined {
  const remedy = (field: string): string =>
    `to evict them anyway, set drain.${field}: evict in ${pool === NO_POOL ? 'a Pool that selects the node' : `Pool/${pool}`}`;
  const asked = left.filter((pod) => !pod.ending && treatmentOf(policy, pod).action === 'drain');
  const unmanaged = policy.unmanaged === 'block' ? asked.filter(({ controller }) => controller === '') : [];
  const scratch = policy.emptyDir === 'block' ? asked.filter(({ emptyDir }) => emptyDir) : [];
  const reasons = [
    ...(unmanaged.length > 0 ? [`no controller would recreate ${namesOf(unmanaged)} (${remedy('unmanaged')})`] : []),
    ...(scratch.length > 0
      ? [`the emptyDir volumes of ${namesOf(scratch)} would be lost (${remedy('emptyDir')})`]
      : []),
  ];
  if (reasons.length === 0) return undefined;
  const pods = [...new Set([...unmanaged, ...scratch].map(nameOf))].sort().slice(0, NAMED);
  return { reason: reasons.join('; '), budget: '', allowed: 0, pods, lasting: true };
}

/** The refusal that has lasted longest. */
function refusal({ tries, nowMs }: Scene<PodSeen>, left: readonly PodSeen[]): Block | undefined {
  const refused = left.filter(({ uid, ending }) => !ending && tries.get(uid)?.reason);
  const longest = refused
    .map(({ uid }) => tries.get(uid) as Try)
    .sort((a, b) => a.sinceMs - b.sinceMs || (a.budget < b.budget ? -1 : 1))[0];
  if (longest === undefined) return undefined;
  const pods = refused.filter(({ uid }) => tries.get(uid)?.budget === longest.budget);
  const { reason, budget, allowed, sinceMs, refusals } = longest;
  // A budget that refused and was deleted before it was read has no name here: the next try may succeed.
  const lasting = nowMs - sinceMs >= LASTING_MS && (budget !== '' || refusals > 1);
  return { reason, budget, allowed, pods: pods.map(nameOf).sort().slice(0, NAMED), lasting };
}

/** The first few of them by name, and how many more there are. */
export function namesOf(pods: readonly Pick<PodSeen, 'namespace' | 'name'>[]): string {
  const names = pods.map(nameOf).sort();
  return names.length <= NAMED
    ? names.join(', ')
    : `${names.slice(0, NAMED).join(', ')} and ${names.length - NAMED} more`;
}
