import { nodeToken, type Action, type Drift, type Fragment } from '#libs/contracts';
import { applyMsOf, selectorOf, selects } from '#libs/manifests';
import { policiesOf } from '#libs/rules';
import type { SchedulerDraft } from './draft.js';
import { firstToTry } from './first-try.js';
import { changingIn, isUnavailable, mayRollBackBeyond, poolBudget, roomIn } from './indexes.js';
import type { Plan, PlanNeed } from './inputs.js';
import { dueNodes } from './retries.js';
import { nodeOf, nodeOfPlace, poolPolicy, type NodeState, type State, type Want } from './state.js';
import { driftToCorrect, hasFailedContent, isKnownBad, keepsDrift, wantOf } from './want.js';

/** The actions of a lease after an escalation: a machine is rebooted only after a drain. */
const RESTART: readonly Action[] = [{ kind: 'drain' }, { kind: 'reboot' }];
/** An escalation needs a reboot only if the plan still has an action that could fail again. */
const mayFail = ({ kind }: Action): boolean => kind !== 'none' && kind !== 'drain';
/** How many fresh nodes per pool may have a free lease at once. */
const FRESH_AT_ONCE = 10;

/**
 * The plans that were gathered, and the policies of each change, which are computed once per decision.
 */
interface PlanCache {
  readonly plans: ReadonlyMap<string, Plan>;
  readonly policies: Map<string, readonly Fragment[]>;
}

/**
 * Grants leases within the budgets of the pools. I1: at every grant, the unavailable nodes of the pool, including this
 * one, do not exceed its budget; except that one node may roll back beyond it while silent or unknown nodes hold units.
 * I2: no node gets a second lease. I3: no forward lease leads to a known-bad config. I6: a paused rollout grants no
 * forward lease. No more nodes get the forward leases of a change at once than its `maxUnavailable` allows. Of the
 * nodes that lack a committed config which no node has applied yet, one tries it first.
 */
export function grantLeases(draft: SchedulerDraft, plans: ReadonlyMap<string, Plan>): void {
  const planning = { plans, policies: new Map<string, readonly Fragment[]>() };
  grantDue(draft, planning);
  for (const pool of draft.state.poolNames()) {
    grantDown(draft, pool, planning);
    grantFresh(draft, pool, planning);
    grantUnits(draft, pool, planning);
    grantBeyond(draft, pool, planning);
  }
}

/** Grants to nodes whose wait before the next try is over. They go first, as corrective leases do. */
function grantDue(draft: SchedulerDraft, planning: PlanCache): void {
  for (const name of dueNodes(draft.state, draft)) {
    const node = draft.state.nodes.get(name);
    if (node === undefined) continue;
    const budget = poolBudget(draft.state, node.pool);
    const used = isUnavailable(node)
      ? changingIn(draft.state, node.pool).length
      : draft.state.poolSet(node.pool).unavailable.size;
    if (used < budget) grant(draft, name, false, planning);
  }
}

/**
 * Grants to nodes that are already unavailable: they need no further unit. But no more nodes of the pool change at once
 * than its budget allows, because the budget also limits how many nodes a bad config can reach.
 */
function grantDown(draft: SchedulerDraft, pool: string, planning: PlanCache): void {
  const { downQueue } = draft.state.poolSet(pool);
  if (downQueue.size === 0) return;
  let room = poolBudget(draft.state, pool) - changingIn(draft.state, pool).length;
  for (const key of [...downQueue]) {
    if (room <= 0) return;
    if (grant(draft, nodeOfPlace(key), false, planning)) room -= 1;
  }
}

function grantUnits(draft: SchedulerDraft, pool: string, planning: PlanCache): void {
  const { queue, unavailable } = draft.state.poolSet(pool);
  const free = poolBudget(draft.state, pool) - unavailable.size;
  const rooms = new Map<string, number>();
  const next: string[] = [];
  for (const key of queue) {
    if (next.length >= free) break;
    const name = nodeOfPlace(key);
    const want = draft.state.places.get(name)?.want;
    // A change that is at its own limit leaves the units of the pool to others.
    if (want?.kind === 'forward') {
      const room = rooms.get(want.change) ?? roomFor(draft.state, want.change);
      rooms.set(want.change, room - 1);
      if (room <= 0) continue;
    } else if (want?.kind === 'corrective' && firstToTry(draft.state, nodeOf(draft.state, name)) !== undefined)
      continue;
    next.push(name);
  }
  for (const name of next) grant(draft, name, false, planning);
}

function roomFor(state: State, change: string): number {
  const rollout = state.rollouts.get(change);
  return rollout === undefined ? Infinity : roomIn(state, rollout);
}

/** Lets one node roll back beyond the budget, because nodes that may never answer hold the units. */
function grantBeyond(draft: SchedulerDraft, pool: string, planning: PlanCache): void {
  const { queue, unavailable } = draft.state.poolSet(pool);
  if (queue.size === 0 || unavailable.size < poolBudget(draft.state, pool)) return;
  const rollsBack = [...draft.state.rollouts.values()].some(({ phase }) => phase === 'reverting');
  if (!rollsBack || !mayRollBackBeyond(draft.state, pool)) return;
  for (const key of queue) {
    const name = nodeOfPlace(key);
    if (draft.state.places.get(name)?.want.kind === 'rollback' && grant(draft, name, false, planning)) return;
  }
}

function grantFresh(draft: SchedulerDraft, pool: string, planning: PlanCache): void {
  const { queue } = draft.state.poolSet(pool);
  if (queue.size === 0 || draft.state.fresh.size === 0) return;
  let under = draft.state.leased().filter((name) => isFreeIn(draft.state.nodes.get(name), pool)).length;
  for (const key of [...queue]) {
    if (under >= FRESH_AT_ONCE || draft.full) return;
    const name = nodeOfPlace(key);
    const isFirst = draft.state.fresh.has(name) && draft.state.places.get(name)?.want.kind === 'join';
    if (isFirst && grant(draft, name, true, planning)) under += 1;
  }
}

const isFreeIn = (node: NodeState | undefined, pool: string): boolean =>
  node?.lease?.free === true && node.lease.pool === pool;

/**
 * Grants one lease if its actions are planned; otherwise asks for the plan. Returns true if the node was granted its
 * lease or waits only for its plan.
 */
function grant(draft: SchedulerDraft, name: string, free: boolean, planning: PlanCache): boolean {
  const { state } = draft;
  const node = state.nodes.get(name);
  if (draft.full || node?.report === undefined) return false;
  const want = wantOf(state, node);
  if (want === undefined) return false;
  if (want.kind === 'corrective' && firstToTry(state, node) !== undefined) return false;
  if (want.kind === 'forward' && (isKnownBad(state, want) || roomFor(state, want.change) <= 0)) return false;
  const from = node.report.hash;
  const shared = planNeed(state, node, from, want, planning);
  // A plan with `only` failed because a config of that one node is missing. It does not apply to other nodes.
  const only = planning.plans.get(shared.key)?.only ?? name;
  const need = only === name ? shared : { ...shared, key: `${shared.key}|${name}` };
  const plan = planning.plans.get(need.key);
  if (plan === undefined) {
    draft.need(need);
    return true;
  }
  if (!plan.ok) {
    const { pool } = node;
    draft.emit({ type: 'node.deferred', node: name, pool, lease: '', change: want.change, reason: plan.reason });
    return false;
  }
  const actions = node.escalated === want.to && plan.actions.some(mayFail) ? RESTART : plan.actions;
  emitGrant(draft, node, from, want, actions, free);
  return true;
}

function emitGrant(
  draft: SchedulerDraft,
  node: NodeState,
  from: string,
  want: Want,
  actions: readonly Action[],
  free: boolean,
): void {
  const policy = poolPolicy(draft.state, node.pool);
  const drains = actions.some((action) => action.kind === 'drain');
  draft.emit({
    type: 'node.lease.granted',
    node: node.node,
    pool: node.pool,
    lease: `${nodeToken(node.node)}-l${node.leases + 1}`,
    change: want.change,
    kind: want.kind,
    hash: want.to,
    from,
    recipe: want.recipe,
    actions,
    phase: drains ? 'draining' : 'applying',
    applyMs: applyMsOf(policy, node.capabilities),
    drainMs: policy.drainMs,
    free: free && !isUnavailable(node),
    ...driftOf(draft.state, node, want),
    ...(isOutside(want) && node.lastDesired !== undefined && (node.unsure || hasFailedContent(node))
      ? { undo: true }
      : {}),
    ...(drains && Object.keys(policy.drain).length > 0 ? { drain: policy.drain as Fragment['spec'] } : {}),
  });
}

const isOutside = ({ kind }: Want): boolean => kind === 'corrective' || kind === 'join';

/** Absent where no drift is known and none may be overwritten: so most grants stay small. */
function driftOf(state: State, node: NodeState, { kind }: Want): { readonly drift?: Drift } {
  const drift = {
    differences: driftToCorrect(node),
    overwrite: kind === 'rollback' || !keepsDrift(state, node),
  };
  return drift.overwrite || drift.differences.length > 0 ? { drift } : {};
}

/** Nodes with the same `from`, `to` and policies share one plan, so it is computed once. */
function planNeed(state: State, node: NodeState, from: string, want: Want, planning: PlanCache): PlanNeed {
  const policies = policiesFor(state, want.change, planning).filter((policy) =>
    selects(selectorOf(policy), node.labels),
  );
  const drift = driftToCorrect(node);
  const key = [
    from,
    want.to,
    want.change,
    state.policyVersion.get(),
    policies.map(({ name }) => name).join(),
    ...(drift.length > 0 ? [JSON.stringify(drift)] : []),
  ].join('|');
  return { key, node: node.node, labels: node.labels, from, to: want.to, drift, policies };
}

function policiesFor(state: State, change: string, { policies }: PlanCache): readonly Fragment[] {
  const cached = policies.get(change);
  if (cached !== undefined) return cached;
  const own = state.changes.get(change);
  const policy = policiesOf(
    'DisruptionPolicy',
    state.policies.values(),
    own && { apply: own.policies, delete: own.policyDeletes },
  );
  policies.set(change, policy);
  return policy;
}
