import { EMPTY_CONFIG, ordered, type Config } from '#libs/contracts';
import { PAUSE, readConfigs, readInputEnd, type Gathering } from '#libs/engine';
import { effectivePolicy, planActions, planDriftActions } from '#libs/rules';
import type { EndNeed, GatherResult, Plan, PlanNeed, SchedulerNeed } from './inputs.js';

/** The configs of so many leases are in memory at a time: each may have nearly a megabyte. */
const AT_ONCE = 100;

/** Plans the actions of leases from the contents of the configs, and sees where REPORTS ends. */
export function* gather(needs: readonly SchedulerNeed[]): Gathering<ReadonlyMap<string, GatherResult>> {
  const gathered = new Map<string, GatherResult>(yield* planAll(needs.filter(isPlanNeed)));
  for (const need of needs)
    if (!isPlanNeed(need)) gathered.set(need.key, { last: yield* readInputEnd(), atMs: need.atMs });
  return gathered;
}

const isPlanNeed = (need: PlanNeed | EndNeed): need is PlanNeed => !('atMs' in need);

function* planAll(needs: readonly PlanNeed[]): Gathering<ReadonlyMap<string, Plan>> {
  const plans = new Map<string, Plan>();
  for (let first = 0; first < needs.length; first += AT_ONCE) {
    const some = needs.slice(first, first + AT_ONCE);
    const configs = yield* readConfigs(
      some.flatMap(({ node, from, to }) => [
        { node, hash: from },
        { node, hash: to },
      ]),
    );
    for (const [i, need] of some.entries()) {
      yield PAUSE;
      plans.set(need.key, planOf(need, configs[2 * i], configs[2 * i + 1]));
    }
  }
  return plans;
}

function planOf(
  { node, from, to, drift, policies, labels }: PlanNeed,
  before: Config | undefined,
  after: Config | undefined,
): Plan {
  if (after === undefined)
    return {
      ok: false,
      only: node,
      reason: `the config ${to.slice(0, 12)} of ${node} is not in the bucket configs: it was never written, or somebody deleted or changed it`,
    };
  // The config that a node runs may have been deleted because nothing referred to it: plan as if the node had none.
  const config = before ?? EMPTY_CONFIG;
  const policy = effectivePolicy(policies, labels);
  const planned = planActions(config, after, policy).actions;
  return {
    ok: true,
    actions: drift.length === 0 ? planned : ordered([...planned, ...planDriftActions(config, after, drift, policy)]),
    ...(before === undefined && from !== '' ? { only: node } : {}),
  };
}
