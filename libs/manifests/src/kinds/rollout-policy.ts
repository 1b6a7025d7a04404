import { About, Fields } from '../shape/description.js';
import { Optional } from '../shape/checked.js';
import { Whole, Word } from '../shape/forms.js';
import { SelectingSpec, type Kind } from './kind.js';
import { MAX_NODES } from './pool.js';

const HEALTH_WAYS = ['tolerant', 'strict'] as const;

/** How many nodes may fail before a rollout fails, and what happens to nodes that are unhealthy before it. */
@About('How many nodes may fail before a rollout is rolled back, and whether unhealthy nodes get changes.')
@Fields({
  maxFailures: 'How many nodes may fail. If one more fails, the whole change is rolled back.',
  health:
    'Whether unhealthy nodes get changes: `tolerant` changes them, so that a fix can reach them; `strict` defers them until they are healthy. If one of several policies is strict, a node is deferred. Default: `tolerant`.',
})
export class RolloutPolicySpec extends SelectingSpec {
  @Whole(0, MAX_NODES) readonly maxFailures!: number;
  @Optional() @Word(HEALTH_WAYS) readonly health?: (typeof HEALTH_WAYS)[number];
}

export const rolloutPolicy: Kind = { name: 'RolloutPolicy', spec: RolloutPolicySpec, role: 'policy' };
