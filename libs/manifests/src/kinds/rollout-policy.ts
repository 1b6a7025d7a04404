import { About, Fields } from '../shape/description.js';
import { Whole } from '../shape/forms.js';
import { SelectingSpec, type Kind } from './kind.js';
import { MAX_NODES } from './pool.js';

/** How many nodes may fail before a rollout has failed. */
@About('How many nodes may fail before a rollout is rolled back.')
@Fields({ maxFailures: 'How many nodes may fail. If one more fails, the whole change is rolled back.' })
export class RolloutPolicySpec extends SelectingSpec {
  @Whole(0, MAX_NODES) readonly maxFailures!: number;
}

export const rolloutPolicy: Kind = { name: 'RolloutPolicy', spec: RolloutPolicySpec, role: 'policy' };
