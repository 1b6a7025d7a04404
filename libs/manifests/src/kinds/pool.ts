import { Nested, Optional } from '../shape/checked.js';
import { CountOrPercent, Duration, Word } from '../shape/forms.js';
import { DrainSpec } from './drain.js';
import { SelectingSpec, type Kind } from './kind.js';

/** More nodes than any fleet has; a bound, so that a slip of the finger is seen. */
export const MAX_NODES = 1_000_000;
export const DRIFT_WAYS = ['report', 'repair'] as const;

/** A set of nodes with a budget of how many may be unavailable at once. */
export class PoolSpec extends SelectingSpec {
  @Optional() @CountOrPercent(MAX_NODES) readonly maxUnavailable?: number | string;
  @Optional() @Duration() readonly applyTimeout?: string;
  @Optional() @Duration() readonly drainTimeout?: string;
  @Optional() @Nested(() => DrainSpec) readonly drain?: DrainSpec;
  @Optional() @Word(DRIFT_WAYS) readonly drift?: (typeof DRIFT_WAYS)[number];
}

/** `default` is the pool of the nodes that no other pool selects. */
export const pool: Kind = { name: 'Pool', spec: PoolSpec, role: 'policy', ownsPath: false, reservedNames: ['default'] };
