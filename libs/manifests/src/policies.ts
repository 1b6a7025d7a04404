import type { Fragment } from '#libs/contracts';
import { durationMs } from './duration.js';
import type { WrittenDrain } from './drains.js';
import type { EditorsSpec, PoolSpec } from './kinds/pool.js';
import type { RolloutPolicySpec } from './kinds/rollout-policy.js';
import { selectorOf, type NodeSelector } from './selector.js';

/** How many nodes of a pool may be unavailable at once. */
export type MaxUnavailable =
  | { readonly kind: 'count'; readonly n: number }
  | { readonly kind: 'percent'; readonly p: number };

/** A pool with the defaults for everything that its fragment does not set. */
export interface ParsedPool {
  readonly name: string;
  readonly maxUnavailable: MaxUnavailable;
  /** `maxUnavailable` as written, for people. */
  readonly text: string;
  /** Undefined: the default, which depends on what a node is. */
  readonly applyMs: number | undefined;
  readonly drainMs: number;
  /** The drain settings as written, and what to pause. The lease contains them, so that the drainer needs no pools. */
  readonly drain: WrittenDrain;
  readonly drift: 'report' | 'overwrite' | 'repair';
  /** How long a silent node keeps its unit; undefined: forever. */
  readonly ignoreSilentMs: number | undefined;
  /** Whether a silent target keeps its unit. By default, a silent machine does and a silent target does not. */
  readonly countsSilentTargets: boolean;
  readonly selector: NodeSelector;
}

/** The default settings, and the pool of the nodes that no other pool selects. */
export const DEFAULT_POOL: ParsedPool = {
  name: 'default',
  maxUnavailable: { kind: 'count', n: 1 },
  text: '1',
  applyMs: undefined,
  drainMs: 600_000,
  drain: {},
  drift: 'report',
  ignoreSilentMs: undefined,
  countsSilentTargets: false,
  selector: {},
};

/** A parsed rollout policy. */
export interface ParsedRolloutPolicy {
  readonly name: string;
  readonly maxFailures: number;
  /** Whether unhealthy nodes get changes. */
  readonly health: 'tolerant' | 'strict';
  readonly selector: NodeSelector;
}

const DEFAULT_APPLY_MS = 120_000;
/** A cluster waits until its objects are ready, and a fleet until a whole rollout there has ended. */
const SLOW_TARGETS: readonly (readonly [capability: string, applyMs: number])[] = [
  ['kind:FleetChange', 6 * 3_600_000],
  ['kind:KubeObjects', 600_000],
];

/** How long a node with these capabilities may take to apply a config. */
export const applyMsOf = ({ applyMs }: Pick<ParsedPool, 'applyMs'>, capabilities: readonly string[] = []): number =>
  applyMs ?? SLOW_TARGETS.find(([capability]) => capabilities.includes(capability))?.[1] ?? DEFAULT_APPLY_MS;

/** Reads a checked fragment of kind Pool. */
export function parsePool(fragment: Fragment): ParsedPool {
  const spec = fragment.spec as unknown as PoolSpec;
  const maxUnavailable = spec.maxUnavailable ?? 1;
  return {
    name: fragment.name,
    maxUnavailable: parseMaxUnavailable(maxUnavailable),
    text: String(maxUnavailable),
    applyMs: durationMs(spec.applyTimeout ?? ''),
    drainMs:
      (durationMs(spec.drainTimeout ?? '') ?? DEFAULT_POOL.drainMs) * (spec.drain?.onTimeout === 'force' ? 2 : 1),
    drain: { ...spec.drain, ...(spec.pause === undefined ? {} : { pause: spec.pause }) },
    drift: spec.drift ?? DEFAULT_POOL.drift,
    ignoreSilentMs: typeof spec.silentNodes === 'object' ? durationMs(spec.silentNodes.ignoreAfter) : undefined,
    countsSilentTargets: spec.silentNodes !== undefined,
    selector: selectorOf(fragment),
  };
}

/** Reads a checked `maxUnavailable`: `2`, `"2"` or `"10%"`. */
export function parseMaxUnavailable(written: number | string): MaxUnavailable {
  const n = Number.parseInt(String(written), 10);
  return String(written).endsWith('%') ? { kind: 'percent', p: n } : { kind: 'count', n };
}

/** Reads a checked fragment of kind RolloutPolicy. */
export function parseRolloutPolicy(fragment: Fragment): ParsedRolloutPolicy {
  const spec = fragment.spec as unknown as RolloutPolicySpec;
  const { maxFailures, health = 'tolerant' } = spec;
  return { name: fragment.name, maxFailures, health, selector: selectorOf(fragment) };
}

/**
 * Who may change the nodes of a pool, according to its checked fragment; empty: everyone with permission in Kubernetes.
 */
export const editorsOf = (fragment: Fragment): readonly EditorsSpec[] =>
  (fragment.spec as unknown as PoolSpec).editors ?? [];
