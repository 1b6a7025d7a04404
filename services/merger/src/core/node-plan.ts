import {
  correctedDrift,
  EMPTY_CONFIG,
  isOverwritten,
  isRefusedDrift,
  ordered,
  restOfDrift,
  type Config,
  type PlannedNode,
  type Reason,
  type Target,
} from '#libs/contracts';
import { readConfigs, type Digest, type Gathering } from '#libs/engine';
import {
  compileFragments,
  effectivePolicy,
  knownBadReasons,
  leftOut,
  newReasons,
  planActions,
  planDriftActions,
  renderNode,
  reviewActions,
  reviewConfig,
} from '#libs/rules';
import { isPolicyKind } from '#libs/manifests';
import type { Outlook, Outlooks } from './outlook.js';
import { templateNode } from './bindings.js';
import { committedFragments, fragmentsWith } from './committed.js';
import { touchedIds, type Change, type NodeState, type State } from './state.js';

/** What happens to one node, and what the review says about its config. */
export type NodePlan = {
  readonly node: PlannedNode;
  readonly reasons: readonly Reason[];
  readonly warnings: readonly Reason[];
};

interface PlanMeans {
  readonly outlooks: Outlooks;
  readonly missing: ReadonlySet<string>;
  readonly digest: Digest;
}

/** Plans nodes one by one. Without a target, a node gets the committed config, or only its drift is repaired. */
export function nodePlanner(
  state: State,
  change: Change,
  { outlooks, missing, digest }: PlanMeans,
): (node: NodeState, outlook: Outlook, target?: Target) => Gathering<NodePlan> {
  const before = compileFragments(committedFragments(state));
  const all = fragmentsWith(state, change);
  const after = compileFragments(all);
  const policies = all.filter(({ kind }) => isPolicyKind(kind));
  const touched = touchedIds(change);
  return function* planNode(node, outlook, target) {
    const old = renderNode(before.forNode(node.labels), templateNode(state, before, node), digest);
    const now =
      target === undefined ? old : renderNode(after.forNode(node.labels), templateNode(state, after, node), digest);
    const has = outlooks.isBehind(node) ? yield* inForce(state, node) : { ...old, hash: target?.from ?? old.hash };
    const policy = effectivePolicy(policies, node.labels);
    const plan = planActions(has.config as Config, now.config, policy);
    const drift = state.drift.get(node.node) ?? [];
    const repairs = planDriftActions(has.config as Config, now.config, correctedDrift(drift), policy);
    const reviewed = { name: node.node, capabilities: node.capabilities, missingObjects: missing };
    const faults = target === undefined ? [] : reviewConfig(now.config, reviewed);
    const fresh = faults.length === 0 ? [] : newReasons(faults, reviewConfig(old.config, reviewed));
    // As in the review of a published change: such a node keeps its config, and the change goes on without it.
    const warnings = fresh.length === 0 ? leftOut(faults, node.node) : [];
    const deferred = typeof outlook === 'object' ? outlook.deferred : warnings.length > 0 ? 'incompatible' : undefined;
    const planned: PlannedNode = {
      node: node.node,
      pool: outlooks.poolOf(node),
      from: has.hash,
      to: now.hash,
      actions: repairs.length === 0 ? plan.actions : ordered([...plan.actions, ...repairs]),
      changed: plan.changed,
      ...healthOf(state, node),
      ...driftOf(drift, deferred === undefined),
      ...(outlook === 'after-commit' && deferred === undefined ? { afterCommit: true } : {}),
      ...(deferred === undefined ? {} : { deferred }),
    };
    if (target === undefined) return { node: planned, reasons: [], warnings };
    const reasons = [
      ...fresh,
      ...reviewActions(planActions(old.config as Config, now.config, policy), node.capabilities).map((reason) => ({
        ...reason,
        nodes: [node.node],
      })),
      ...(target.from === now.hash ? [] : knownBad(state, touched, node.node, now)),
    ];
    return { node: planned, reasons, warnings };
  };
}

/** The config that the node has, if that is not the committed one. As for a lease, a lost config counts as none. */
function* inForce(state: State, { node }: NodeState): Gathering<{ readonly hash: string; readonly config: Config }> {
  const hash = state.inForce.get(node) ?? '';
  const [config = EMPTY_CONFIG] = yield* readConfigs([{ node, hash }]);
  return { hash, config };
}

function healthOf({ failing }: State, { node }: NodeState): Pick<PlannedNode, 'failingProbes'> {
  const failingProbes = failing.get(node);
  return failingProbes === undefined ? {} : { failingProbes };
}

function driftOf(
  drift: readonly string[],
  isChanged: boolean,
): Pick<PlannedNode, 'drift' | 'leavesDrift' | 'overwritesDrift'> {
  const [corrected, refused] = [correctedDrift(drift), drift.filter(isRefusedDrift)];
  return {
    ...(corrected.length > 0 ? { drift: first(corrected) } : {}),
    ...(refused.length > 0 ? { leavesDrift: first(refused) } : {}),
    ...(isChanged && corrected.some(isOverwritten) ? { overwritesDrift: true } : {}),
  };
}

function first(drift: readonly string[]): readonly string[] {
  const left = drift.length - SHOWN_DRIFT;
  return left > 0 ? [...drift.slice(0, SHOWN_DRIFT), restOfDrift(left)] : drift;
}

/** A page of a plan must fit into a message. */
const SHOWN_DRIFT = 3;

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
