import { budgetOf, choosePool, DEFAULT_POOL, poolPolicies, poolsSelecting, type PoolPolicy } from '#libs/rules';
import { fragmentId, nodeToken } from '#libs/contracts';
import { viewKey, type Table } from '#libs/engine';
import { recipeTriedBy } from './first-try.js';
import { endDeferrals } from './frozen-rollout.js';
import { isOpen, isUnanswered } from './lease.js';
import {
  ALL_ROLLED_BACK,
  EMPTY_TALLY,
  nodeOf,
  parseTargetKey,
  poolPolicy,
  targetKey,
  wentWrong,
  isKnownToHave,
  type NodeState,
  type Rollout,
  type State,
  type Tally,
  type TargetClass,
  type TargetCount,
  type TargetState,
  type Want,
  isTarget,
} from './state.js';
import { circumstancesOf, classOf, blockedBecause, wantOf } from './want.js';

/**
 * Whether a node counts against the budget of its pool: it has a lease, is silent, is out of service in Kubernetes, is
 * taken, or is degraded.
 */
export function isUnavailable(node: NodeState): boolean {
  if (node.lease !== undefined) return !node.lease.free;
  if (!node.joined || node.skippedBy !== undefined) return false;
  return node.silent || node.outOfService !== undefined || node.taken !== undefined || node.report?.restored === false;
}

/** The current budget of a pool: the committed one, or the one that an open rollout brings, whichever is lower. */
export function poolBudget(state: State, pool: string): number {
  const members = state.members.get(pool) ?? 0;
  const policy = poolPolicy(state, pool);
  return Math.min(budgetOf(policy, members), budgetOf(state.pools.get(pool) ?? policy, members));
}

/** The nodes that have an open lease of this pool, without the free ones. */
export const changingIn = (state: State, pool: string): readonly string[] =>
  state.leased().filter((name) => {
    const { lease } = nodeOf(state, name);
    return lease !== undefined && lease.pool === pool && !lease.free && isOpen(lease);
  });

/** The nodes that have a lease of this change. One that did not report in time keeps its lease. */
export const leasedBy = (state: State, change: string): readonly string[] =>
  state.leased().filter((name) => nodeOf(state, name).lease?.change === change);

/** How many more nodes the change itself lets change now. The budgets of their pools limit that, too. */
export const roomIn = (state: State, { change, maxUnavailable }: Rollout): number =>
  maxUnavailable === 0 ? Infinity : maxUnavailable - leasedBy(state, change).length;

/**
 * Whether one node of the pool may roll back beyond the budget. A node that is silent, or unknown after another lease
 * than a rollback, may never answer: it must not keep the others on a failed change. So if there would be room without
 * these nodes, one node at a time may roll back. If that one becomes unknown too, no further one may.
 */
export function mayRollBackBeyond(state: State, pool: string): boolean {
  const others = [...state.poolSet(pool).unavailable]
    .map((name) => nodeOf(state, name))
    .filter((node) => !isLost(node));
  return others.length < poolBudget(state, pool) && others.every(({ lease }) => lease === undefined);
}

const isLost = ({ lease, silent: isSilent }: NodeState): boolean =>
  lease === undefined ? isSilent : isUnanswered(lease) && lease.kind !== 'rollback';

/** Updates an index when a node changes. `sequence` orders new places in a queue. */
type NodeIndex = (state: State, before: NodeState | undefined, after: NodeState, sequence: number) => void;

/** Writes a node and updates every index. */
export function putNode(state: State, changed: NodeState, sequence: number): void {
  const node = withDerived(changed);
  const before = state.nodes.get(node.node);
  state.nodes.set(node.node, node);
  for (const update of NODE_INDEXES) update(state, before, node, sequence);
  state.touched.add(viewKey('status', nodeToken(node.node)));
  state.touched.add(viewKey('pools', node.pool));
}

function withDerived(node: NodeState): NodeState {
  // Once it is available again, it counts in its current pool only.
  const alsoIn = node.alsoIn.length > 0 && !isUnavailable(node) ? [] : node.alsoIn;
  const lastDesired = hasDesired(node) ? node.report?.hash : node.lastDesired;
  return alsoIn === node.alsoIn && lastDesired === node.lastDesired ? node : { ...node, alsoIn, lastDesired };
}

/** Whether the node is known to have its desired config. */
export const hasDesired = (node: NodeState): boolean =>
  node.desired !== undefined && isKnownToHave(node, node.desired.hash);

/** How many nodes a pool has. */
const members: NodeIndex = (state, before, after) => {
  const [old, now] = [memberOf(before), memberOf(after)];
  if (old === now) return;
  if (old !== undefined) addMembers(state, old, -1);
  if (now !== undefined) addMembers(state, now, 1);
};
const memberOf = (node: NodeState | undefined): string | undefined => (node?.joined === true ? node.pool : undefined);

function addMembers(state: State, pool: string, by: number): void {
  state.members.set(pool, (state.members.get(pool) ?? 0) + by);
  state.touched.add(viewKey('pools', pool));
}

/** The members of a pool for which something holds. */
const membersThatAre =
  (set: 'silent' | 'silentTargets' | 'unavailableTargets' | 'unhealthy', is: (node: NodeState) => boolean): NodeIndex =>
  (state, before, after) => {
    const poolOf = (node: NodeState | undefined) => (node !== undefined && is(node) ? memberOf(node) : undefined);
    const [old, now] = [poolOf(before), poolOf(after)];
    if (old === now) return;
    if (old !== undefined) state.poolSet(old)[set].delete(after.node);
    if (now !== undefined) state.poolSet(now)[set].add(after.node);
  };
const silent = membersThatAre('silent', (node) => node.silent);
const silentTargets = membersThatAre(
  'silentTargets',
  (node) => node.silent && node.skippedBy === undefined && isTarget(node),
);
const unavailableTargets = membersThatAre('unavailableTargets', ({ report }) => report?.unavailable !== undefined);
const unhealthy = membersThatAre('unhealthy', ({ failingProbes }) => failingProbes.length > 0);

/** The nodes that count against the budget of a pool. */
const unavailable: NodeIndex = (state, before, after) => {
  const [old, now] = [poolsOfUnavailable(before), poolsOfUnavailable(after)];
  for (const pool of old) if (!now.includes(pool)) state.poolSet(pool).unavailable.delete(after.node);
  for (const pool of now) if (!old.includes(pool)) state.poolSet(pool).unavailable.add(after.node);
  for (const pool of [...old, ...now]) state.touched.add(viewKey('pools', pool));
};
const poolsOfUnavailable = (node: NodeState | undefined): readonly string[] =>
  node === undefined || !isUnavailable(node)
    ? []
    : [...new Set([node.pool, ...(node.lease === undefined ? [] : [node.lease.pool]), ...node.alsoIn])];

/** Leases whose appliers are working, by deadline; and leases that need a decision. */
const leases: NodeIndex = (state, before, after) => {
  const [old, now] = [deadlineKey(before), deadlineKey(after)];
  if (old !== undefined) state.working.delete(old);
  if (now !== undefined) state.working.add(now);
  state.attended.toggle(after.node, after.lease !== undefined && now === undefined);
};

/** The deadline of a lease that needs no decision before it, unless the node reports. */
function deadlineKey(node: NodeState | undefined): string | undefined {
  if (node?.joined !== true || node.lease?.phase !== 'applying') return undefined;
  return `${String(Math.ceil(node.lease.sinceMs + node.lease.applyMs)).padStart(16, '0')}|${node.node}`;
}
/** The deadline of an entry in `working`. */
export const deadlineMsOf = (key: string): number => Number(key.slice(0, key.indexOf('|')));

/** Taken nodes that are given back automatically. */
const borrowed: NodeIndex = (state, _, { node, taken }) =>
  state.borrowed.toggle(node, taken !== undefined && taken.forMs !== 0);

/** Fresh nodes that have never had a lease. */
const fresh: NodeIndex = (state, _, { node, report, leases: count }) => {
  if (report?.fresh === true && count === 0) state.fresh.set(node, true);
  else state.fresh.delete(node);
};

/** Ended rollouts that deferred the node. Their views show why it is deferred now. */
const deferred: NodeIndex = (state, before, after) => {
  if (before?.deferred !== after.deferred)
    for (const change of state.deferredBy.get(after.node) ?? []) state.touched.add(viewKey('rollouts', change));
  if (after.deferred === undefined && state.deferredBy.has(after.node)) endDeferrals(state, after.node);
};

/** The nodes that have had the desired config with a recipe, and those that try it. */
const firstTries: NodeIndex = (state, before, after) => {
  const [had, has] = [recipeHadBy(before), recipeHadBy(after)];
  if (had !== has) {
    if (had !== undefined) addHaving(state, had, -1);
    if (has !== undefined) addHaving(state, has, 1);
  }
  const [tried, tries] = [before && recipeTriedBy(before), recipeTriedBy(after)];
  if (tried === tries) return;
  if (tried !== undefined) putTrying(state, tried, (names) => names.filter((name) => name !== after.node));
  if (tries !== undefined) putTrying(state, tries, (names) => [...names, after.node].sort());
};
const recipeHadBy = (node: NodeState | undefined): string | undefined =>
  node?.joined === true && node.lastDesired === node.desired?.hash ? node.desired?.recipe : undefined;

function addHaving(state: State, recipe: string, by: number): void {
  const count = (state.having.get(recipe) ?? 0) + by;
  // Recipes come and go with every change: none may stay behind.
  if (count > 0) state.having.set(recipe, count);
  else state.having.delete(recipe);
}

function putTrying(state: State, recipe: string, change: (names: readonly string[]) => readonly string[]): void {
  const names = change(state.trying.get(recipe) ?? []);
  if (names.length > 0) state.trying.set(recipe, names);
  else state.trying.delete(recipe);
}

/** The queues of pools. */
const queues: NodeIndex = (state, _, after, sequence) => placeNode(state, after, sequence);

/** The tallies of rollouts. A lease also counts in its own rollout if the node is no longer a target there. */
const tallies: NodeIndex = (state, before, after) => {
  for (const change of new Set([after.change, after.lease?.change, before?.lease?.change]))
    if (change !== undefined && change !== '') countTarget(state, change, after.node);
};

/** The order matters: later indexes depend on earlier ones. */
const NODE_INDEXES = [
  members,
  unavailable,
  silent,
  silentTargets,
  unavailableTargets,
  unhealthy,
  leases,
  borrowed,
  fresh,
  deferred,
  firstTries,
  queues,
  tallies,
] as const;

const RANK = { escalated: 0, corrective: 1, rollback: 2, forward: 3, join: 3, repair: 4 } as const;

function placeNode(state: State, node: NodeState, sequence: number): void {
  const before = state.places.get(node.node);
  const want = wantOf(state, node);
  state.backingOff.toggle(node.node, want?.change === '' && node.retry?.kind === 'later');
  const goal = want === undefined || isHeld(node, want) ? undefined : want;
  const unavailable = isUnavailable(node);
  if (
    before !== undefined &&
    goal !== undefined &&
    sameWant(before.want, goal) &&
    before.pool === node.pool &&
    before.unavailable === unavailable
  )
    return;
  if (before !== undefined) {
    queueOf(state, before.pool, before.unavailable).delete(before.key);
    state.places.delete(node.node);
    state.touched.add(viewKey('pools', before.pool));
  }
  if (goal === undefined) return;
  const since = before !== undefined && sameWant(before.want, goal) ? before.since : sequence;
  // Escalated nodes go first: learn early whether a reboot helps, before other nodes try the same config.
  const rank = RANK[node.escalated === goal.to ? 'escalated' : goal.kind];
  const key = `${rank}|${String(since).padStart(16, '0')}|${node.node}`;
  queueOf(state, node.pool, unavailable).add(key);
  state.touched.add(viewKey('pools', node.pool));
  state.places.set(node.node, { pool: node.pool, key, unavailable, want: goal, since });
}

/** Outside rollouts, a node that failed is not tried again at once. */
const isHeld = (node: NodeState, want: Want): boolean =>
  want.change === '' &&
  node.retry !== undefined &&
  (node.retry.kind === 'later' || node.retry.circumstances === circumstancesOf(node, want.to));

const queueOf = (state: State, pool: string, unavailable: boolean) =>
  unavailable ? state.poolSet(pool).downQueue : state.poolSet(pool).queue;
const sameWant = (a: Want, b: Want): boolean => a.kind === b.kind && a.change === b.change && a.to === b.to;

/** Counts a target in its class, for the rollout and for the pool. */
export function countTarget(state: State, change: string, name: string): void {
  const key = targetKey(change, name);
  const rollout = state.rollouts.get(change);
  const target = state.targets.get(key);
  if (rollout === undefined || target === undefined) return;
  const node = nodeOf(state, name);
  const before = state.classes.get(key);
  const tally = classOf(rollout, target, node);
  const notRolledBack = tally === 'settled' ? whyNotRolledBack(target, node) : undefined;
  const now: TargetCount = { tally, pool: node.pool, notRolledBack };
  state.blocked.toggle(key, blockedBecause(state, rollout, target, node) !== undefined);
  const isWhole = node.notUndone.length === 0 && node.report?.restored !== false;
  state.troubled.toggle(key, target.deferred !== undefined || wentWrong(target) || !isWhole);
  state.touched.add(viewKey('rollouts', change));
  if (before?.tally === tally && before.pool === now.pool && before.notRolledBack === notRolledBack) return;
  if (before !== undefined) count(state, change, before, -1);
  count(state, change, now, 1);
  state.classes.set(key, now);
}

function whyNotRolledBack({ startedBy }: TargetState, { report }: NodeState): TargetCount['notRolledBack'] {
  if (startedBy === undefined) return 'untouched';
  return report?.restored === false ? 'degraded' : undefined;
}

function count(state: State, change: string, { tally, pool, notRolledBack }: TargetCount, by: number): void {
  const key = targetKey(change, pool);
  state.tallies.set(change, add(state.tallies.get(change), tally, by));
  state.poolTallies.set(key, add(state.poolTallies.get(key), tally, by));
  if (notRolledBack === undefined) return;
  const counted = state.notRolledBack.get(key) ?? ALL_ROLLED_BACK;
  state.notRolledBack.set(key, { ...counted, [notRolledBack]: counted[notRolledBack] + by });
}

const add = (tally: Tally = EMPTY_TALLY, key: TargetClass, by: number): Tally => ({ ...tally, [key]: tally[key] + by });

/** Deletes the targets of an ended rollout. */
export function dropTargets(state: State, change: string): void {
  for (const name of state.rollouts.get(change)?.nodes ?? []) {
    const key = targetKey(change, name);
    state.targets.delete(key);
    state.classes.delete(key);
    state.blocked.delete(key);
    state.troubled.delete(key);
  }
  state.tallies.delete(change);
  for (const key of [...state.poolTallies.keys()])
    if (parseTargetKey(key).change === change) {
      state.poolTallies.delete(key);
      state.notRolledBack.delete(key);
    }
}

/** Updates every target of a rollout after its phase has changed. */
export function recountRollout(state: State, change: string, sequence: number): void {
  for (const name of state.rollouts.get(change)?.nodes ?? []) {
    const node = state.nodes.get(name);
    if (node === undefined) continue;
    placeNode(state, node, sequence);
    countTarget(state, change, name);
    state.touched.add(viewKey('status', nodeToken(name)));
  }
  state.touched.add(viewKey('rollouts', change));
}

/**
 * Finds the pool of a node whose labels or presence have changed. An unavailable node that moves counts in both pools.
 */
export function assignPool(state: State, node: NodeState): NodeState {
  const selectedBy = noteSelecting(state, node);
  return node.joined ? chosen(state, node, selectedBy) : node;
}

/** Updates which pools select a node. */
export function noteSelecting(state: State, node: NodeState): readonly string[] {
  const selectedBy = node.joined ? poolsSelecting(state.pools.values(), node.labels) : [];
  for (const pool of state.selectedBy.get(node.node) ?? [])
    state.selected.set(pool, (state.selected.get(pool) ?? 0) - 1);
  for (const pool of selectedBy) state.selected.set(pool, (state.selected.get(pool) ?? 0) + 1);
  state.manyPools.toggle(node.node, selectedBy.length > 1);
  state.selectedBy.set(node.node, selectedBy);
  return selectedBy;
}

const tieBudget = (state: State, pool: string): number =>
  budgetOf(state.pools.get(pool) ?? DEFAULT_POOL, state.selected.get(pool) ?? 0);

/** The node in the pool that it belongs to, of those that select it. */
function chosen(state: State, node: NodeState, selectedBy: readonly string[]): NodeState {
  const pool = choosePool(selectedBy, (name) => tieBudget(state, name));
  if (pool === node.pool) return node;
  const alsoIn = isUnavailable(node) ? [...new Set([...node.alsoIn, node.pool])].filter((name) => name !== pool) : [];
  return { ...node, pool, alsoIn };
}

/** A percentage budget depends on the number of members, so it can change which of several pools a node belongs to. */
export function reassignShared(state: State, sequence: number): void {
  for (const name of [...state.manyPools]) {
    const node = state.nodes.get(name);
    if (node === undefined) continue;
    const now = chosen(state, node, state.selectedBy.get(name) ?? []);
    if (now !== node) putNode(state, now, sequence);
  }
}

/** Recomputes all pools, and the pool of every node, after a change with pools has started or ended. */
export function reassignAll(state: State, sequence: number): void {
  readPools(state);
  // Count all members first, then choose: a choice made on a partial count could put a node into the wrong pool.
  for (const node of state.nodes.values()) noteSelecting(state, node);
  for (const node of [...state.nodes.values()]) putNode(state, assignPool(state, node), sequence);
  reassignShared(state, sequence);
  for (const name of state.poolNames()) state.touched.add(viewKey('pools', name));
}

/** Reads the pools from the policies: those of a change apply from the start of its own rollout. */
export function readPools(state: State): void {
  const carried = new Map([...state.policies.values()].map((fragment) => [fragmentId(fragment), fragment]));
  for (const name of state.openChanges) {
    const change = state.changes.get(name);
    if (change?.started !== true) continue;
    for (const ref of change.policyDeletes) carried.delete(fragmentId(ref));
    for (const fragment of change.policies) carried.set(fragmentId(fragment), fragment);
  }
  replace(state.committedPools, poolPolicies(state.policies.values()));
  replace(state.pools, poolPolicies(carried.values()));
  for (const name of [...state.committedPools.keys(), ...state.pools.keys()]) state.knownPools.add(name);
}

function replace(table: Table<string, PoolPolicy>, pools: ReadonlyMap<string, PoolPolicy>): void {
  for (const name of [...table.keys()]) if (!pools.has(name)) table.delete(name);
  for (const [name, policy] of pools) table.set(name, policy);
}
