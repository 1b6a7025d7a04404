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

/** A pool with everything that its fragment leaves to the defaults. */
export interface ParsedPool {
  readonly name: string;
  readonly maxUnavailable: MaxUnavailable;
  /** `maxUnavailable` as written, for people. */
  readonly text: string;
  readonly applyMs: number;
  readonly drainMs: number;
  /** How to drain, as written: it goes with the lease, so that the drainer needs to know no pool. */
  readonly drain: WrittenDrain;
  readonly drift: 'report' | 'overwrite' | 'repair';
  /** How long a silent node keeps its unit; undefined: for ever. */
  readonly ignoreSilentMs: number | undefined;
  readonly selector: NodeSelector;
}

/** The defaults of a pool, and the pool of the nodes that no other selects. */
export const DEFAULT_POOL: ParsedPool = {
  name: 'default',
  maxUnavailable: { kind: 'count', n: 1 },
  text: '1',
  applyMs: 120_000,
  drainMs: 600_000,
  drain: {},
  drift: 'report',
  ignoreSilentMs: undefined,
  selector: {},
};

/** A rollout policy, read. */
export interface ParsedRolloutPolicy {
  readonly name: string;
  readonly maxFailures: number;
  readonly selector: NodeSelector;
}

/** Reads a checked fragment of kind Pool. */
export function parsePool(fragment: Fragment): ParsedPool {
  const spec = fragment.spec as unknown as PoolSpec;
  const written = spec.maxUnavailable ?? 1;
  return {
    name: fragment.name,
    maxUnavailable:
      typeof written === 'number'
        ? { kind: 'count', n: written }
        : { kind: 'percent', p: Number.parseInt(written, 10) },
    text: String(written),
    applyMs: durationMs(spec.applyTimeout ?? '') ?? DEFAULT_POOL.applyMs,
    drainMs:
      (durationMs(spec.drainTimeout ?? '') ?? DEFAULT_POOL.drainMs) * (spec.drain?.onTimeout === 'force' ? 2 : 1),
    drain: (spec.drain ?? {}) as WrittenDrain,
    drift: spec.drift ?? DEFAULT_POOL.drift,
    ignoreSilentMs: durationMs(spec.silentNodes?.ignoreAfter ?? ''),
    selector: selectorOf(fragment),
  };
}

/** Reads a checked fragment of kind RolloutPolicy. */
export function parseRolloutPolicy(fragment: Fragment): ParsedRolloutPolicy {
  const spec = fragment.spec as unknown as RolloutPolicySpec;
  return { name: fragment.name, maxFailures: spec.maxFailures, selector: selectorOf(fragment) };
}

/** Who may change what the nodes of a pool get, as its checked fragment says; empty: everyone who may at all. */
export const editorsOf = (fragment: Fragment): readonly EditorsSpec[] =>
  (fragment.spec as unknown as PoolSpec).editors ?? [];
