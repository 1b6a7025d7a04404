import type { Config, PlanAnswer, PlannedNode, Reason } from '#libs/contracts';
import { PAUSE, type Digest, type Steps } from '#libs/engine';
import {
  budgetOf,
  DEFAULT_POOL,
  poolPolicies,
  effectivePolicy,
  planActions,
  compileFragments,
  renderNode,
  besides,
  knownBadReasons,
  mergeReasons,
  newReasons,
  reviewActions,
  reviewConfig,
} from '#libs/rules';
import { isPolicyKind, readChangeBody } from '#libs/manifests';
import { Queue, turnOf } from './queue.js';
import { committedFragments, compiled, fragmentsWith, poolsOf, renderChange } from './rendering.js';
import { newChange, touchedIds, type Change, type NodeState, type State } from './state.js';

/**
 * Plans a change with the same rendering, review and actions as a published one. Changes nothing. Pauses after each
 * node.
 */
export function* planChange(
  state: State,
  body: unknown,
  digest: Digest,
): Steps<PlanAnswer | { readonly rejected: readonly Reason[] }> {
  const read = readChangeBody(body);
  if (!read.ok) return { rejected: read.reasons };
  const candidate = newChange(read.change);
  const turn = turnOf(new Queue(state), candidate);
  const replaces = turn.is === 'now' ? turn.replaces : [];
  const rendering = yield* renderChange(state, candidate, replaces, digest);
  const names = Object.keys(rendering.targets)
    .map((name) => state.nodes.get(name))
    .filter((node): node is NodeState => node !== undefined);
  const pools = poolsOf(state, names);
  yield* compiled(committedFragments(state));
  const planner = nodePlanner(state, candidate, digest);
  const planned: NodePlan[] = [];
  for (const node of names) {
    yield PAUSE;
    planned.push(planner(node, pools.get(node.node) ?? 'default', rendering.targets[node.node]?.from ?? ''));
  }
  return {
    rejected: mergeReasons([
      ...rendering.problems,
      ...planned.flatMap((one) => one.reasons).filter(besides(rendering.problems)),
      ...(candidate.strategy.strict === true ? rendering.warnings : []),
    ]),
    warnings: rendering.warnings,
    waitsFor: turn.is === 'waiting' ? turn.waitsFor : [],
    nodes: planned.map((one) => one.node).filter((node) => node.from !== node.to),
    pools: poolSummary(state, [...pools.values()]),
    touched: rendering.nodes + rendering.unchanged,
    unchanged: rendering.unchanged,
  };
}

type NodePlan = { readonly node: PlannedNode; readonly reasons: readonly Reason[] };

function nodePlanner(
  state: State,
  change: Change,
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
    const { actions, changed } = planActions(old.config as Config, now.config, effectivePolicy(policies, node.labels));
    const reviewed = { name: node.node, capabilities: node.capabilities };
    const reasons = [
      ...newReasons(reviewConfig(now.config, reviewed), reviewConfig(old.config, reviewed)),
      ...reviewActions(actions, node.capabilities).map((reason) => ({ ...reason, nodes: [node.node] })),
      ...(from === now.hash ? [] : knownBad(state, touched, node.node, now)),
    ];
    return { node: { node: node.node, pool, from, to: now.hash, actions, changed }, reasons };
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

function poolSummary(state: State, pools: readonly string[]): PlanAnswer['pools'] {
  const policies = poolPolicies([...state.fragments.values()].map(({ fragment }) => fragment));
  const everyone = [...poolsOf(state, [...state.nodes.values()]).values()];
  const summary: Record<string, { readonly nodes: number; readonly budget: number }> = {};
  for (const pool of [...new Set(pools)].sort()) {
    const members = everyone.filter((name) => name === pool).length;
    summary[pool] = {
      nodes: pools.filter((name) => name === pool).length,
      budget: budgetOf(policies.get(pool) ?? DEFAULT_POOL, members),
    };
  }
  return summary;
}
