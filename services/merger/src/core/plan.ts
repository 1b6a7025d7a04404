import { fragmentId, type Config, type PlanAnswer, type PlannedNode, type Reason } from '#libs/contracts';
import { missingObjects, PAUSE, type Digest, type Gathering } from '#libs/engine';
import {
  budgetOf,
  DEFAULT_POOL,
  poolPolicies,
  type PoolPolicy,
  effectivePolicy,
  planActions,
  compileFragments,
  renderNode,
  besides,
  knownBadReasons,
  leftOut,
  boundReasons,
  mergeReasons,
  outcomeOfReview,
  newReasons,
  reviewActions,
  reviewConfig,
} from '#libs/rules';
import { isPolicyKind, objectRefOf, parseMaxUnavailable, readChangeBody } from '#libs/manifests';
import { Queue, turnOf } from './queue.js';
import { committedFragments, compiled, fragmentsWith, poolsOf, poolsWith, renderChange } from './rendering.js';
import { newChange, touchedIds, type Change, type NodeState, type State } from './state.js';

/** What to plan: the body of a change, and the source that would publish it. */
export interface PlanSubject {
  readonly body: unknown;
  readonly source: string | undefined;
}

/**
 * Plans a change with the same rendering, review and actions as a published one. Changes nothing. Pauses after each
 * node.
 */
export function* planChange(
  state: State,
  { body, source }: PlanSubject,
  digest: Digest,
): Gathering<PlanAnswer | { readonly rejected: readonly Reason[] }> {
  const read = readChangeBody(body);
  if (!read.ok) return { rejected: read.reasons };
  // A plan for nobody in particular may touch all fragments.
  const candidate = newChange({ ...read.change, ...(source === undefined ? { takeOver: true } : {}) }, source ?? '');
  const turn = turnOf(new Queue(state), candidate);
  const replaces = turn.is === 'now' ? turn.replaces : [];
  const rendering = yield* renderChange(state, candidate, replaces, digest);
  const names = Object.keys(rendering.targets)
    .map((name) => state.nodes.get(name))
    .filter((node): node is NodeState => node !== undefined);
  const policies = poolsWith(state, candidate, replaces);
  const pools = poolsOf(state, names, policies);
  yield* compiled(committedFragments(state));
  const objects = fragmentsWith(state, candidate).flatMap((fragment) => objectRefOf(fragment)?.sha256 ?? []);
  const missing = yield* missingObjects([...new Set(objects)]);
  const planner = nodePlanner(state, candidate, missing, digest);
  const targets = new Map(Object.entries(rendering.targets));
  const planned: NodePlan[] = [];
  for (const node of names) {
    yield PAUSE;
    planned.push(planner(node, pools.get(node.node) ?? 'default', targets.get(node.node)?.from ?? ''));
  }
  const warnings = [...rendering.warnings, ...mergeReasons(planned.flatMap((one) => one.warnings))];
  const isStrict = candidate.strategy.strict === true;
  const reasons = mergeReasons([
    ...rendering.problems,
    ...planned.flatMap((one) => one.reasons).filter(besides(rendering.problems)),
    ...(isStrict ? warnings : []),
  ]);
  const touches = { applied: candidate.apply.map(fragmentId), deleted: candidate.delete.map(fragmentId) };
  const outcome = outcomeOfReview(reasons, touches, isStrict);
  const waits = outcome.needs.length > 0;
  return {
    rejected: waits ? [] : outcome.reasons,
    ...(waits ? { needs: outcome.needs, missing: boundReasons(outcome.reasons) } : {}),
    warnings,
    ...paceOf(candidate, names.length),
    waitsFor: turn.is === 'waiting' ? turn.waitsFor : [],
    nodes: planned.map((one) => one.node).filter((node) => node.from !== node.to),
    pools: poolSummary(state, [...pools.values()], policies),
    touched: rendering.nodes + rendering.unchanged + rendering.incompatible,
    unchanged: rendering.unchanged,
  };
}

/** The same number as the scheduler uses for the rollout. */
function paceOf({ strategy }: Change, nodes: number): Pick<PlanAnswer, 'maxUnavailable'> {
  if (strategy.maxUnavailable === undefined) return {};
  return { maxUnavailable: budgetOf({ maxUnavailable: parseMaxUnavailable(strategy.maxUnavailable) }, nodes) };
}

type NodePlan = {
  readonly node: PlannedNode;
  readonly reasons: readonly Reason[];
  readonly warnings: readonly Reason[];
};

function nodePlanner(
  state: State,
  change: Change,
  missing: ReadonlySet<string>,
  digest: Digest,
): (node: NodeState, pool: string, from: string) => NodePlan {
  const before = compileFragments(committedFragments(state));
  const all = fragmentsWith(state, change);
  const after = compileFragments(all);
  const policies = all.filter(({ kind }) => isPolicyKind(kind));
  const touched = touchedIds(change);
  return (node, pool, from) => {
    const templateNode = { name: node.node, labels: node.labels };
    const old = renderNode(before.forNode(node.labels), templateNode, digest);
    const now = renderNode(after.forNode(node.labels), templateNode, digest);
    const plan = planActions(old.config as Config, now.config, effectivePolicy(policies, node.labels));
    const { actions, changed } = plan;
    const reviewed = { name: node.node, capabilities: node.capabilities, missingObjects: missing };
    const faults = reviewConfig(now.config, reviewed);
    const fresh = newReasons(faults, reviewConfig(old.config, reviewed));
    const reasons = [
      ...fresh,
      ...reviewActions(plan, node.capabilities).map((reason) => ({ ...reason, nodes: [node.node] })),
      ...(from === now.hash ? [] : knownBad(state, touched, node.node, now)),
    ];
    const failing = state.failing.get(node.node);
    const planned = { node: node.node, pool, from, to: now.hash, actions, changed };
    return {
      node: failing === undefined ? planned : { ...planned, failingProbes: failing },
      reasons,
      warnings: fresh.length === 0 ? leftOut(faults, node.node) : [],
    };
  };
}

function knownBad(
  state: State,
  touched: readonly string[],
  node: string,
  { hash, recipe }: { readonly hash: string; readonly recipe: string },
): readonly Reason[] {
  const what = state.knownBad.has(hash)
    ? `config ${hash.slice(0, 12)}`
    : state.knownBad.has(recipe)
      ? `recipe ${recipe.slice(0, 12)}`
      : '';
  if (what === '') return [];
  const message = `${what} is known-bad: see "sluice get known-bad"; to allow it again, use "sluice clear"`;
  return knownBadReasons(touched, node, message);
}

/** How many nodes of each pool the change reaches, and how many of them may change at once. */
function poolSummary(
  state: State,
  pools: readonly string[],
  policies: ReadonlyMap<string, PoolPolicy>,
): PlanAnswer['pools'] {
  const committed = poolPolicies(committedFragments(state));
  const everyone = [...poolsOf(state, [...state.nodes.values()], policies).values()];
  const summary = new Map<string, { readonly nodes: number; readonly budget: number }>();
  for (const pool of [...new Set(pools)].sort()) {
    const members = everyone.filter((name) => name === pool).length;
    const both = [policies.get(pool) ?? DEFAULT_POOL, committed.get(pool)].filter((one) => one !== undefined);
    summary.set(pool, {
      nodes: pools.filter((name) => name === pool).length,
      budget: Math.min(...both.map((policy) => budgetOf(policy, members))),
    });
  }
  return Object.fromEntries(summary);
}
