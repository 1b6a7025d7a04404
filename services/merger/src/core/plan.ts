import { fragmentId, type PlanAnswer, type PlannedNode, type Reason, type Target } from '#libs/contracts';
import { missingObjects, PAUSE, type Digest, type Gathering } from '#libs/engine';
import {
  budgetOf,
  DEFAULT_POOL,
  poolPolicies,
  type PoolPolicy,
  besides,
  boundReasons,
  mergeReasons,
  outcomeOfReview,
  withHolders,
  type WaitingChange,
} from '#libs/rules';
import { objectRefOf, parseMaxUnavailable, readChangeBody } from '#libs/manifests';
import { Outlooks, type Outlook } from './outlook.js';
import { isBlocked, Queue, turnOf } from './queue.js';
import { committedFragments, fragmentsWith } from './committed.js';
import { compiled, poolsOf, poolsWith, renderChange, type ChangeRendering } from './rendering.js';
import { nodePlanner, type NodePlan } from './node-plan.js';
import { touchedNodes } from './selection.js';
import { newChange, type Change, type NodeState, type State } from './state.js';

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
  const outlooks = new Outlooks(state, candidate, replaces);
  const { targets, others } = changingNodes(state, candidate, rendering, outlooks);
  yield* compiled(committedFragments(state));
  const objects = fragmentsWith(state, candidate).flatMap((fragment) => objectRefOf(fragment)?.sha256 ?? []);
  const missing = yield* missingObjects([...new Set(objects)]);
  const planner = nodePlanner(state, candidate, { outlooks, missing, digest });
  const planned: NodePlan[] = [];
  for (const [node, target] of targets) {
    yield PAUSE;
    planned.push(yield* planner(node, outlooks.ofTarget(node), target));
  }
  const released: NodePlan[] = [];
  for (const [node, outlook] of others) {
    yield PAUSE;
    released.push(yield* planner(node, outlook));
  }
  // Some nodes kept what the change gives them, because an earlier change was deferred there.
  const reached = [...planned.filter(({ node }) => node.from !== node.to), ...released].map(({ node }) => node);
  const nodes = [...reached, ...rendering.incompatible.map((node) => leftNode(state, node, outlooks))];
  const warnings = [
    ...rendering.warnings,
    ...mergeReasons(planned.flatMap((one) => one.warnings)),
    ...driftWarnings(nodes),
  ];
  const isStrict = candidate.strategy.strict === true;
  const reasons = mergeReasons([
    ...rendering.problems,
    ...planned.flatMap((one) => one.reasons).filter(besides(rendering.problems)),
    ...(isStrict ? warnings : []),
  ]);
  const touches = { applied: candidate.apply.map(fragmentId), deleted: candidate.delete.map(fragmentId) };
  const outcome = outcomeOfReview(reasons, touches, isStrict);
  const waits = outcome.needs.length > 0;
  const touched = rendering.nodes + rendering.unchanged + rendering.incompatible.length;
  const names = new Set(touchedNodes(state, candidate).map(({ node }) => node));
  return {
    rejected: waits ? [] : outcome.reasons,
    ...(waits
      ? { needs: outcome.needs, missing: boundReasons(withHolders(outcome.reasons, touches.applied, waiting(state))) }
      : {}),
    warnings,
    ...paceOf(candidate, targets.length),
    waitsFor: turn.is === 'waiting' ? turn.waitsFor : [],
    nodes: nodes.sort((a, b) => (a.node < b.node ? -1 : 1)),
    pools: poolSummary(
      state,
      nodes.filter(({ deferred }) => deferred === undefined).map(({ pool }) => pool),
      poolsWith(state, candidate, replaces),
    ),
    touched,
    unchanged: touched - rendering.incompatible.length - reached.filter(({ node }) => names.has(node)).length,
  };
}

/** The changes that wait for references. */
const waiting = (state: State): readonly WaitingChange[] =>
  [...state.openChanges].flatMap((name) => {
    const change = state.changes.get(name);
    if (change === undefined || !isBlocked(change)) return [];
    return [{ change: name, applied: change.apply.map(fragmentId), needs: change.needs }];
  });

/** The targets, and the nodes that the change reaches in another way or that defer what it has in common with them. */
function changingNodes(
  state: State,
  candidate: Change,
  { targets: byName, incompatible }: Pick<ChangeRendering, 'targets' | 'incompatible'>,
  outlooks: Outlooks,
): {
  readonly targets: readonly (readonly [NodeState, Target])[];
  readonly others: readonly (readonly [NodeState, Outlook])[];
} {
  const targets = Object.entries(byName).flatMap(([name, target]) => {
    const node = state.nodes.get(name);
    return node === undefined ? [] : [[node, target] as const];
  });
  const touched = touchedNodes(state, candidate);
  const own = new Set(touched.map(({ node }) => node));
  const others = outlooks
    .outside(touched)
    .filter((node) => !Object.hasOwn(byName, node.node) && !incompatible.includes(node))
    .map((node) => [node, outlooks.ofOther(node, own.has(node.node))] as const)
    .filter(([, outlook]) => outlook !== 'unchanged');
  return { targets, others };
}

/** A node that keeps its config: the new one cannot be rendered for it, and the committed one neither. */
function leftNode(state: State, node: NodeState, outlooks: Outlooks): PlannedNode {
  const from = state.inForce.get(node.node) ?? '';
  const pool = outlooks.poolOf(node);
  return { node: node.node, pool, from, to: from, actions: [], changed: [], deferred: 'incompatible' };
}

/** The same number as the scheduler uses for the rollout. */
function paceOf({ strategy }: Change, nodes: number): Pick<PlanAnswer, 'maxUnavailable'> {
  if (strategy.maxUnavailable === undefined) return {};
  return { maxUnavailable: budgetOf({ maxUnavailable: parseMaxUnavailable(strategy.maxUnavailable) }, nodes) };
}

/** A warning about the nodes on which the change is deferred, because it would overwrite drift. */
function driftWarnings(planned: readonly PlannedNode[]): readonly Reason[] {
  const nodes = planned.filter(({ deferred }) => deferred === 'drift').map(({ node }) => node);
  if (nodes.length === 0) return [];
  const are = nodes.length === 1 ? '1 node is' : `${nodes.length} nodes are`;
  const message = `${are} deferred until the drift there is undone, or the pool has drift: overwrite: see sluice get drift`;
  return [{ fragment: '', field: '', code: 'drift', message, nodes: nodes.slice(0, SHOWN_NODES) }];
}

const SHOWN_NODES = 3;

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
