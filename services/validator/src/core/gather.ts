import type { Config } from '#libs/contracts';
import { readConfigs, type ConfigName, type Gathering } from '#libs/engine';
import { policiesOf } from '#libs/rules';
import type { ReviewResult, ReviewNeed } from './inputs.js';
import { reviewNodes, reviewTargets, type Material } from './review.js';
import type { State } from './state.js';

/** Reads the configs to review, and reviews them. */
export function* gather(needs: readonly ReviewNeed[], state: State): Gathering<ReadonlyMap<string, ReviewResult>> {
  const found = new Map<string, ReviewResult>();
  for (const need of needs) found.set(need.key, yield* review(need, state));
  return found;
}

function* review(need: ReviewNeed, state: State): Gathering<ReviewResult> {
  if (need.do === 'review-nodes')
    return yield* reviewNodes(need.nodes, materialOf(state, '', yield* byHash(need.nodes)));
  const configs = yield* byHash(
    Object.entries(need.targets).flatMap(([node, { from, to }]) => [
      { node, hash: to },
      { node, hash: from },
    ]),
  );
  return yield* reviewTargets(need.targets, materialOf(state, need.change, configs));
}

const materialOf = (state: State, change: string, configs: ReadonlyMap<string, Config>): Material => ({
  config: (hash) => configs.get(hash),
  capabilities: (node) => state.capabilities.get(node) ?? [],
  labels: (node) => state.labels.get(node) ?? {},
  policies: policiesOf('DisruptionPolicy', state.policies.values(), state.carried.get(change)),
});

/** Reads each hash once: the same hash is the same content on every node. */
function* byHash(names: readonly ConfigName[]): Gathering<ReadonlyMap<string, Config>> {
  const distinct = [...new Map(names.map((name) => [name.hash, name])).values()];
  const configs = yield* readConfigs(distinct);
  return new Map(
    distinct.flatMap(({ hash }, i) => {
      const config = configs[i];
      return config === undefined ? [] : [[hash, config] as const];
    }),
  );
}
