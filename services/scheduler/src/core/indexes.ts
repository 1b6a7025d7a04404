import { budgetOf, choosePool, DEFAULT_POOL, poolPolicies, poolsSelecting, type PoolPolicy } from '#libs/budget';
import { nodeToken } from '#libs/contracts';
import { viewKey } from '#libs/kernel';
import { noLongerOwed } from './frozen-rollout.js';
import {
  EMPTY_TALLY,
  nodeOf,
  parseTargetKey,
  targetKey,
  wentWrong,
  type Indexed,
  type NodeState,
  type State,
  type Tally,
  type TargetClass,
  type Want,
} from './state.js';
import { circumstancesOf, classOf, stuckBecause, wantOf } from './want.js';

/** A node counts against its pool: mid-change, unknown, silent, out of service in Kubernetes, taken by another tool, or not back on a good config. */
export function isUnavailable(node: NodeState): boolean {
  if (node.lease !== undefined) return !node.lease.free;
  if (!node.joined || node.skippedBy !== '') return false;
  return node.silent || node.outOfService !== '' || node.taken !== undefined || node.report?.restored === false;
}

/** The budget of a pool now: the committed one, or a lower one that an open rollout carries. */
export function poolBudget(state: State, pool: string): number {
  const members = state.members.get(pool) ?? 0;
  let budget = budgetOf(state.pools.get(pool) ?? DEFAULT_POOL, members);
  for (const change of state.openChanges) {
    const open = state.changes.get(change);
    if (open === undefined || !open.started) continue;
    const carried = poolPolicies(open.policies).get(pool);
    if (carried !== undefined && state.pools.has(pool)) budget = Math.min(budget, budgetOf(carried, members));
  }
  return budget;
}

export const poolPolicy = (state: State, pool: string): PoolPolicy => state.pools.get(pool) ?? DEFAULT_POOL;

/** Writes a node and brings every index up to date with it. `sequence` orders its place in the queue. */
export function putNode(state: State, changed: NodeState, sequence: number): void {
  // Once it is available again it counts in its own pool only.
  const node = changed.alsoIn.length > 0 && !isUnavailable(changed) ? { ...changed, alsoIn: [] } : changed;
  const before = state.nodes.get(node.node);
  const released = before?.lease?.change ?? '';
  state.nodes.set(node.node, node);
  countMember(state, node);
  countUnavailable(state, node);
  watchLease(state, before, node);
  if (node.taken === undefined || node.taken.forMs === 0) state.borrowed.delete(node.node);
  else state.borrowed.add(node.node);
  if (node.report?.fresh === true && node.leases === 0) state.fresh.set(node.node, true);
  else state.fresh.delete(node.node);
  if (node.owed === '' && state.owedBy.has(node.node)) noLongerOwed(state, node.node);
  placeNode(state, node, sequence);
  // A lease may be of a rollout that the node is no longer a target of, and is shown there until it is released.
  for (const change of new Set([node.change, node.lease?.change ?? '', released]))
    if (change !== '') countTarget(state, change, node.node);
  const token = nodeToken(node.node);
  state.touched.add(viewKey('status', token));
  state.touched.add(viewKey('pools', node.pool));
}

/** Whether nothing is to be done for a lease until its node answers or its deadline is over. */
const isWorking = ({ joined, lease }: NodeState): boolean => joined && lease?.phase === 'ready' && lease.because === '';

const deadlineKey = ({ node, lease }: NodeState): string =>
  `${String(Math.ceil((lease?.sinceMs ?? 0) + (lease?.applyMs ?? 0))).padStart(16, '0')}|${node}`;
/** When the lease of this entry in `working` is over. */
export const deadlineMsOf = (key: string): number => Number(key.slice(0, key.indexOf('|')));

function watchLease(state: State, before: NodeState | undefined, node: NodeState): void {
  if (before !== undefined && isWorking(before)) state.working.delete(deadlineKey(before));
  if (isWorking(node)) state.working.add(deadlineKey(node));
  if (node.lease === undefined || isWorking(node)) state.attended.delete(node.node);
  else state.attended.add(node.node);
}

function countMember(state: State, node: NodeState): void {
  const before = state.indexed.get(node.node);
  const member = node.joined ? node.pool : '';
  const silentIn = node.silent ? member : '';
  if (before?.member === member && before.silentIn === silentIn) return;
  if (before !== undefined && before.member !== '') addMembers(state, before.member, -1);
  if (member !== '') addMembers(state, member, 1);
  if (before !== undefined && before.silentIn !== '') state.poolSet(before.silentIn).silent.delete(node.node);
  if (silentIn !== '') state.poolSet(silentIn).silent.add(node.node);
  state.indexed.set(node.node, { ...(before ?? NOT_INDEXED), member, silentIn });
}

const NOT_INDEXED: Indexed = { countsIn: [], selectedBy: [], member: '', silentIn: '' };

function addMembers(state: State, pool: string, by: number): void {
  state.members.set(pool, (state.members.get(pool) ?? 0) + by);
  state.touched.add(viewKey('pools', pool));
}

function countUnavailable(state: State, node: NodeState): void {
  const before = state.indexed.get(node.node) ?? NOT_INDEXED;
  const countsIn = isUnavailable(node)
    ? [...new Set([node.pool, ...(node.lease === undefined ? [] : [node.lease.pool]), ...node.alsoIn])]
    : [];
  for (const pool of before.countsIn) if (!countsIn.includes(pool)) state.poolSet(pool).unavailable.delete(node.node);
  for (const pool of countsIn) if (!before.countsIn.includes(pool)) state.poolSet(pool).unavailable.add(node.node);
  for (const pool of [...before.countsIn, ...countsIn]) state.touched.add(viewKey('pools', pool));
  state.indexed.set(node.node, { ...before, countsIn });
}

const RANK = { escalated: 0, corrective: 1, back: 2, forward: 3, join: 3, repair: 4 } as const;

function placeNode(state: State, node: NodeState, sequence: number): void {
  const before = state.places.get(node.node);
  const want = wantOf(state, node);
  if (want?.change === '' && node.retry?.kind === 'later') state.backingOff.add(node.node);
  else state.backingOff.delete(node.node);
  const wanted = want === undefined || isHeld(node, want) ? undefined : want;
  const unavailable = isUnavailable(node);
  if (
    before !== undefined &&
    wanted !== undefined &&
    sameWant(before.want, wanted) &&
    before.pool === node.pool &&
    before.unavailable === unavailable
  )
    return;
  if (before !== undefined) {
    queueOf(state, before.pool, before.unavailable).delete(before.key);
    state.places.delete(node.node);
    state.touched.add(viewKey('pools', before.pool));
  }
  if (wanted === undefined) return;
  const since = before !== undefined && sameWant(before.want, wanted) ? before.since : sequence;
  // What one node takes only with a restart is seen to the end before others try the same.
  const rank = RANK[node.escalated === wanted.to ? 'escalated' : wanted.kind];
  const key = `${rank}|${String(since).padStart(16, '0')}|${node.node}`;
  queueOf(state, node.pool, unavailable).add(key);
  state.touched.add(viewKey('pools', node.pool));
  state.places.set(node.node, { pool: node.pool, key, unavailable, want: wanted, since });
}

/** Outside rollouts, what went wrong last is not tried again at once. */
const isHeld = (node: NodeState, want: Want): boolean =>
  want.change === '' &&
  node.retry !== undefined &&
  (node.retry.kind === 'later' || node.retry.circumstances === circumstancesOf(node, want.to));

const queueOf = (state: State, pool: string, unavailable: boolean) =>
  unavailable ? state.poolSet(pool).downQueue : state.poolSet(pool).queue;
const sameWant = (a: Want, b: Want): boolean => a.kind === b.kind && a.change === b.change && a.to === b.to;

/** Counts a target in its class, and in its pool's. */
export function countTarget(state: State, change: string, name: string): void {
  const key = targetKey(change, name);
  const rollout = state.rollouts.get(change);
  const target = state.targets.get(key);
  if (rollout === undefined || target === undefined) return;
  const node = nodeOf(state, name);
  const before = state.classes.get(key);
  const now = { tally: classOf(rollout, target, node), pool: node.pool };
  if (stuckBecause(state, rollout, target, node) === '') state.stuck.delete(key);
  else state.stuck.add(key);
  if (target.owed !== '' || wentWrong(target)) state.troubled.add(key);
  else state.troubled.delete(key);
  state.touched.add(viewKey('rollouts', change));
  if (before?.tally === now.tally && before.pool === now.pool) return;
  if (before !== undefined) {
    count(state, change, before.tally, -1);
    countInPool(state, targetKey(change, before.pool), before.tally, -1);
  }
  count(state, change, now.tally, 1);
  countInPool(state, targetKey(change, now.pool), now.tally, 1);
  state.classes.set(key, now);
}

function count(state: State, change: string, tally: TargetClass, by: number): void {
  state.tallies.set(change, add(state.tallies.get(change), tally, by));
}

function countInPool(state: State, key: string, tally: TargetClass, by: number): void {
  state.poolTallies.set(key, add(state.poolTallies.get(key), tally, by));
}

const add = (tally: Tally = EMPTY_TALLY, key: TargetClass, by: number): Tally => ({ ...tally, [key]: tally[key] + by });

/** Forgets the targets of a rollout that is over. */
export function dropTargets(state: State, change: string): void {
  for (const name of state.rollouts.get(change)?.nodes ?? []) {
    const key = targetKey(change, name);
    state.targets.delete(key);
    state.classes.delete(key);
    state.stuck.delete(key);
    state.troubled.delete(key);
  }
  state.tallies.delete(change);
  for (const key of [...state.poolTallies.keys()])
    if (parseTargetKey(key).change === change) state.poolTallies.delete(key);
}

/** Brings every target of a rollout up to date after its phase changed. */
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

/** Finds the pool of a node whose labels or presence changed. A node that moves while it is unavailable counts in both. */
export function assignPool(state: State, node: NodeState): NodeState {
  const selectedBy = noteSelecting(state, node);
  return node.joined
    ? moved(
        node,
        choosePool(selectedBy, (pool) => tieBudget(state, pool)),
      )
    : node;
}

/** Notes which pools select a node. */
export function noteSelecting(state: State, node: NodeState): readonly string[] {
  const selectedBy = node.joined ? poolsSelecting(state.pools.values(), node.labels) : [];
  const before = state.indexed.get(node.node) ?? NOT_INDEXED;
  for (const pool of before.selectedBy) state.selected.set(pool, (state.selected.get(pool) ?? 0) - 1);
  for (const pool of selectedBy) state.selected.set(pool, (state.selected.get(pool) ?? 0) + 1);
  if (selectedBy.length > 1) state.manyPools.add(node.node);
  else state.manyPools.delete(node.node);
  state.indexed.set(node.node, { ...before, selectedBy });
  return selectedBy;
}

const tieBudget = (state: State, pool: string): number =>
  budgetOf(poolPolicy(state, pool), state.selected.get(pool) ?? 0);

function moved(node: NodeState, pool: string): NodeState {
  if (pool === node.pool) return node;
  const alsoIn = isUnavailable(node) ? [...new Set([...node.alsoIn, node.pool])].filter((name) => name !== pool) : [];
  return { ...node, pool, alsoIn };
}

/** A percentage of more or fewer members may turn the choice of a node that several pools select. */
export function reassignShared(state: State, sequence: number): void {
  for (const name of [...state.manyPools]) {
    const node = state.nodes.get(name);
    const selectedBy = state.indexed.get(name)?.selectedBy ?? [];
    if (node === undefined) continue;
    const now = moved(
      node,
      choosePool(selectedBy, (pool) => tieBudget(state, pool)),
    );
    if (now !== node) putNode(state, now, sequence);
  }
}

/** After a commit of policies: the pools anew, and every node's place in them. */
export function reassignAll(state: State, sequence: number): void {
  const pools = poolPolicies(state.policies.values());
  for (const name of [...state.pools.keys()]) if (!pools.has(name)) state.pools.delete(name);
  for (const [name, policy] of pools) state.pools.set(name, policy);
  // First all are counted, then the choice is made: one made on half a count would leave a node in a pool that it never was in.
  for (const node of state.nodes.values()) noteSelecting(state, node);
  for (const node of [...state.nodes.values()]) putNode(state, assignPool(state, node), sequence);
  reassignShared(state, sequence);
  for (const name of state.poolNames()) state.touched.add(viewKey('pools', name));
}
