import type { NodeProgress, PoolProgress } from '#libs/contracts';
import { viewKey } from '#libs/engine';
import { isOpen } from './lease.js';
import {
  EMPTY_TALLY,
  nodeOf,
  nodeOfPlace,
  parseTargetKey,
  targetKey,
  wentWrong,
  type Rollout,
  type RolloutPhase,
  type State,
} from './state.js';
import { goalOf } from './want.js';

/** Enough for a screen. `ops.rollout.get` returns all nodes, in pages. */
const WORST = 50;

/** Saves what views show of a rollout before its targets are deleted. */
export function freeze(state: State, change: string): void {
  const rollout = state.rollouts.get(change);
  if (rollout === undefined || rollout.frozen !== undefined) return;
  // Open leases continue, but this rollout no longer shows them.
  const worst = worstNodes(state, rollout).filter((row) => !UNDER_WAY.has(row.state));
  const pools = Object.fromEntries(
    Object.entries(poolProgress(state, rollout)).map(([pool, progress]) => [pool, { ...progress, active: 0 }]),
  );
  const tally = state.tallies.get(change) ?? EMPTY_TALLY;
  const deferred = tally.deferred === 0 ? {} : deferredIn(state, rollout);
  const names = Object.keys(deferred);
  state.rollouts.set(change, { ...rollout, frozen: { tally, pools, worst, deferred } });
  for (const name of names) state.deferredBy.set(name, [...(state.deferredBy.get(name) ?? []), change]);
  // A node that the next rollout takes over is no longer deferred by this one. Others may have just got their config.
  for (const name of names)
    if (rollout.phase === 'superseded' || nodeOf(state, name).deferred === undefined) noLongerDeferred(state, name);
}

/** The nodes that a rollout has deferred and that still lack its config, with the hash of that config. */
function deferredIn(state: State, rollout: Rollout): Readonly<Record<string, string>> {
  const deferred: Record<string, string> = {};
  for (const name of rollout.nodes) {
    const key = targetKey(rollout.change, name);
    const target = state.targets.get(key);
    if (target !== undefined && state.classes.get(key)?.tally === 'deferred') deferred[name] = goalOf(rollout, target);
  }
  return deferred;
}

/** Updates ended rollouts when a node gets the config that they deferred, or no longer needs it. */
export function noLongerDeferred(state: State, name: string): void {
  const node = nodeOf(state, name);
  for (const change of state.deferredBy.get(name) ?? []) {
    const rollout = state.rollouts.get(change);
    if (rollout?.frozen === undefined) continue;
    const {
      tally,
      pools,
      worst,
      deferred: { [name]: goal, ...deferred },
    } = rollout.frozen;
    // A node that keeps its config, or got a newer one, did not get it from this rollout.
    const has = node.joined && node.report?.hash === goal ? 'settled' : 'left';
    const progress = pools[node.pool];
    const frozen = {
      tally: { ...tally, deferred: tally.deferred - 1, [has]: tally[has] + 1 },
      pools:
        progress === undefined || has === 'left'
          ? pools
          : { ...pools, [node.pool]: { ...progress, done: progress.done + 1 } },
      worst: worst.filter((row) => row.node !== name || row.state !== 'deferred'),
      deferred,
    };
    state.rollouts.set(change, { ...rollout, frozen });
    state.touched.add(viewKey('rollouts', change));
  }
  state.deferredBy.delete(name);
}

/** The progress of each pool in a rollout. */
export function poolProgress(state: State, rollout: Rollout): Readonly<Record<string, PoolProgress>> {
  if (rollout.frozen !== undefined) return rollout.frozen.pools;
  const pools: Record<string, PoolProgress> = {};
  for (const [key, tally] of state.poolTallies.entries()) {
    const { change, node: pool } = parseTargetKey(key);
    if (change !== rollout.change) continue;
    const nodes = tally.settled + tally.active + tally.pending + tally.deferred;
    const untouched = rollsBack(rollout.phase) ? (state.untouched.get(key) ?? 0) : 0;
    if (nodes > 0) pools[pool] = { nodes, done: tally.settled, active: tally.active, untouched };
  }
  return Object.fromEntries(Object.entries(pools).sort(([a], [b]) => (a < b ? -1 : 1)));
}

const rollsBack = (phase: RolloutPhase | undefined): boolean => phase === 'reverting' || phase === 'reverted';

const UNDER_WAY = new Set(['draining', 'applying', 'uncordoning', 'pending']);

const RANK: Readonly<Record<string, number>> = {
  invalid: 0,
  failed: 1,
  escalated: 2,
  unknown: 3,
  deferred: 4,
  draining: 5,
  applying: 6,
  uncordoning: 7,
  pending: 8,
  applied: 9,
  'rolled-back': 9,
  untouched: 9,
};

/** The nodes that people want to see first: failures, then nodes in progress. */
export function worstNodes(state: State, rollout: Rollout): readonly NodeProgress[] {
  if (rollout.frozen !== undefined) return rollout.frozen.worst;
  const names = new Set<string>();
  const isOfThis = (name: string): boolean => state.nodes.get(name)?.lease?.change === rollout.change;
  for (const name of state.attended) if (isOfThis(name)) names.add(name);
  // Among nodes in progress, the ones that have been busy longest.
  let working = 0;
  for (const key of state.working) {
    if (working >= WORST) break;
    const name = nodeOfPlace(key);
    if (!isOfThis(name)) continue;
    names.add(name);
    working += 1;
  }
  for (const key of state.troubled) if (key.startsWith(`${rollout.change}/`)) names.add(parseTargetKey(key).node);
  const rows = [...names].map((name) => nodeProgress(state, rollout.change, name));
  rows.sort((a, b) => (RANK[a.state] ?? 9) - (RANK[b.state] ?? 9) || (a.node < b.node ? -1 : 1));
  return rows.slice(0, WORST);
}

/** The state of one node in a rollout. */
export function nodeProgress(state: State, change: string, name: string): NodeProgress {
  const node = nodeOf(state, name);
  const key = targetKey(change, name);
  const target = state.targets.get(key);
  const { pool } = node;
  const lease = node.lease?.change === change ? node.lease : undefined;
  if (lease !== undefined && isOpen(lease))
    return { node: name, pool, state: lease.phase, reason: lease.kind, since: lease.grantedAt };
  const tally = state.classes.get(key)?.tally;
  const { outcome } = target ?? {};
  const since = outcome?.at ?? '';
  if (tally === 'settled' && outcome?.because !== 'invalid' && outcome?.because !== 'failed')
    return { node: name, pool, state: settledAs(state, change, name), reason: '', since };
  if (target !== undefined && wentWrong(target) && outcome !== undefined)
    return { node: name, pool, state: outcome.because, reason: outcome.reason, since };
  if (tally === 'deferred') return { node: name, pool, state: 'deferred', reason: target?.deferred ?? '', since };
  return { node: name, pool, state: tally === 'left' ? 'left' : 'pending', reason: '', since };
}

function settledAs(state: State, change: string, name: string): string {
  if (!rollsBack(state.rollouts.get(change)?.phase)) return 'applied';
  return state.classes.get(targetKey(change, name))?.untouched === true ? 'untouched' : 'rolled-back';
}
