import type { Config } from '#libs/contracts';
import { missingObjects, readConfigs, type ConfigName, type Gathering } from '#libs/engine';
import { objectRefOf } from '#libs/manifests';
import { policiesOf } from '#libs/rules';
import type { ReviewResult, ReviewNeed } from './inputs.js';
import { reviewNodes, reviewTargets, type Material } from './review.js';
import type { State } from './state.js';

/** Reads the configs to review, and reviews them. */
export function* gather(needs: readonly ReviewNeed[], state: State): Gathering<ReadonlyMap<string, ReviewResult>> {
  const results = new Map<string, ReviewResult>();
  for (const need of needs) results.set(need.key, yield* review(need, state));
  return results;
}

function* review(need: ReviewNeed, state: State): Gathering<ReviewResult> {
  if (need.do === 'review-nodes') return yield* reviewNodes(need.nodes, yield* materialOf(state, '', need.nodes));
  const names = Object.entries(need.targets).flatMap(([node, { from, to }]) => [
    { node, hash: to },
    { node, hash: from },
  ]);
  return yield* reviewTargets(need.targets, yield* materialOf(state, need.change, names));
}

function* materialOf(state: State, change: string, names: readonly ConfigName[]): Gathering<Material> {
  const configs = yield* byHash(names);
  const objects = [...configs.values()].flatMap(({ fragments }) =>
    fragments.flatMap((entry) => objectRefOf(entry)?.sha256 ?? []),
  );
  return {
    config: (hash) => configs.get(hash),
    capabilities: (node) => state.capabilities.get(node) ?? [],
    labels: (node) => state.labels.get(node) ?? {},
    missingObjects: yield* missingObjects([...new Set(objects)]),
    policies: policiesOf('DisruptionPolicy', state.policies.values(), state.carried.get(change)),
  };
}

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
