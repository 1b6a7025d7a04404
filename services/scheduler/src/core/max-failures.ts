import { parseRolloutPolicy, selects } from '#libs/manifests';
import { policiesOf } from '#libs/policy';
import { nodeOf, type Change, type State } from './state.js';

/** The failures that a rollout tolerates: what the change says, else the strictest policy that selects a target, else none. */
export function maxFailuresOf(state: State, change: Change): number {
  if (change.maxFailures !== undefined) return change.maxFailures;
  const carried = { apply: change.policies, delete: change.policyDeletes };
  const policies = policiesOf('RolloutPolicy', state.policies.values(), carried).map(parseRolloutPolicy);
  const labels = Object.keys(change.targets).map((name) => nodeOf(state, name).labels);
  const selecting = policies.filter((policy) => labels.some((one) => selects(policy.selector, one)));
  return selecting.length === 0 ? 0 : Math.min(...selecting.map((policy) => policy.maxFailures));
}
