import { durationMs } from './duration.js';
import type { DrainRule, DrainSpec } from './kinds/drain.js';
import type { PauseSpec } from './kinds/pause.js';
import { selects, type NodeSelector } from './selector.js';

/** `spec.drain` of a pool, as a lease contains it, with its `spec.pause`. */
export type WrittenDrain = Readonly<Record<string, unknown>>;

/** How to drain a node, with the defaults for everything that its pool does not set. */
export interface DrainPolicy {
  /** Replaces each pod's own grace period. */
  readonly graceSeconds: number | undefined;
  readonly unmanaged: 'block' | 'evict';
  readonly emptyDir: 'block' | 'evict';
  readonly rules: readonly DrainRule[];
  /** Undefined: all pods must go. */
  readonly only: { readonly podSelector: NodeSelector | undefined; readonly resources: readonly string[] } | undefined;
  readonly onTimeout: 'fail' | 'defer' | 'force';
  readonly onUncordon: 'restore' | 'give-up';
  readonly pause: readonly PausedObject[];
}

/** An object that is paused while nodes are drained. */
export interface PausedObject {
  readonly apiVersion: string;
  readonly kind: string;
  /** Empty if it has none. */
  readonly namespace: string;
  readonly name: string;
  /** It is not paused while one of these conditions is True. */
  readonly waitWhile: readonly string[];
}

/** What a rule says about a pod. */
export interface PodTreatment {
  readonly action: 'drain' | 'skip' | 'wait';
  readonly order: number;
}

/** The properties of a pod that rules and selectors use. */
export interface PodFeatures {
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
  /** The extended resources that it asks for, such as `example.com/nic`. */
  readonly resources: readonly string[];
  readonly priority: number;
}

/** Pods of Kubernetes itself. All others need them, so they go last. */
const SYSTEM_PRIORITY = 2_000_000_000;
/** After every order that a rule may set. */
const SYSTEM_ORDER = 2_000_000;

/** Reads settings that were checked when the pool was accepted. */
export function parseDrain(fields: WrittenDrain): DrainPolicy {
  const spec = fields as unknown as DrainSpec & { readonly pause?: readonly PauseSpec[] };
  const grace = durationMs(spec.gracePeriod ?? '');
  return {
    graceSeconds: grace === undefined ? undefined : Math.max(1, Math.round(grace / 1_000)),
    unmanaged: spec.unmanaged ?? 'block',
    emptyDir: spec.emptyDir ?? 'block',
    rules: spec.rules ?? [],
    only:
      spec.only === undefined
        ? undefined
        : { podSelector: spec.only.podSelector, resources: spec.only.resources ?? [] },
    onTimeout: spec.onTimeout ?? 'fail',
    onUncordon: spec.onUncordon ?? 'restore',
    pause: (spec.pause ?? []).map((one) => ({
      ...one,
      namespace: one.namespace ?? '',
      waitWhile: one.waitWhile ?? ['Updating'],
    })),
  };
}

/** Identifies a paused object, no matter by which version of its API. For messages, too. */
export function pausedName({ apiVersion, kind, namespace, name }: Omit<PausedObject, 'waitWhile'>): string {
  const [group = '', version] = apiVersion.split('/');
  const of = version === undefined ? '' : `.${group}`;
  return `${kind}${of} ${namespace === '' ? '' : `${namespace}/`}${name}`;
}

/** What to do with a pod, according to the first rule that matches it. */
export function treatmentOf({ rules }: DrainPolicy, pod: PodFeatures): PodTreatment {
  const rule = rules.find(
    ({ podSelector, namespaces }) =>
      (namespaces === undefined || namespaces.includes(pod.namespace)) && selects(podSelector, pod.labels),
  );
  return {
    action: rule?.action ?? 'drain',
    order: rule?.order ?? (pod.priority >= SYSTEM_PRIORITY ? SYSTEM_ORDER : 0),
  };
}

/** Whether a partial drain evicts this pod. */
export function isMeant({ only }: DrainPolicy, pod: PodFeatures): boolean {
  if (only === undefined) return true;
  if (only.podSelector !== undefined && selects(only.podSelector, pod.labels)) return true;
  return only.resources.some((resource) => pod.resources.includes(resource));
}
