import { durationMs } from './duration.js';
import type { DrainRule, DrainSpec } from './kinds/drain.js';
import { selects, type NodeSelector } from './selector.js';

/** `spec.drain` of a pool, as a lease carries it. */
export type WrittenDrain = Readonly<Record<string, unknown>>;

/** How a node is drained, with everything that its pool leaves to the defaults. */
export interface DrainPolicy {
  /** Instead of each pod's own. */
  readonly graceSeconds: number | undefined;
  readonly unmanaged: 'block' | 'evict';
  readonly emptyDir: 'block' | 'evict';
  readonly rules: readonly DrainRule[];
  /** Undefined: all pods have to go. */
  readonly only: { readonly podSelector: NodeSelector | undefined; readonly resources: readonly string[] } | undefined;
  readonly onTimeout: 'fail' | 'defer' | 'force';
  readonly onUncordon: 'restore' | 'give-up';
}

/** What a rule says of a pod. */
export interface PodTreatment {
  readonly action: 'drain' | 'skip' | 'wait';
  readonly order: number;
}

/** What rules and selectors ask of a pod. */
export interface PodFeatures {
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
  /** The extended resources that it asks for, such as `example.com/nic`. */
  readonly resources: readonly string[];
  readonly priority: number;
}

/** Kubernetes' own: what all others need, so it goes last. */
const SYSTEM_PRIORITY = 2_000_000_000;
/** Behind everything that a rule may name. */
const SYSTEM_ORDER = 2_000_000;

/** Reads what was checked when the pool was accepted. */
export function parseDrain(written: WrittenDrain): DrainPolicy {
  const spec = written as unknown as DrainSpec;
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
  };
}

/** What is done with a pod: as the first rule says that matches it. */
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

/** Whether a partial drain is about this pod. */
export function isMeant({ only }: DrainPolicy, pod: PodFeatures): boolean {
  if (only === undefined) return true;
  if (only.podSelector !== undefined && selects(only.podSelector, pod.labels)) return true;
  return only.resources.some((resource) => pod.resources.includes(resource));
}
