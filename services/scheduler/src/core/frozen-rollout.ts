import type { NodeProgress, PoolProgress } from '#libs/contracts';
import { viewKey } from '#libs/kernel';
import {
  EMPTY_TALLY,
  nodeOf,
  nodeOfPlace,
  parseTargetKey,
  targetKey,
  wentWrong,
  type Rollout,
  type State,
} from './state.js';
import { goalOf } from './want.js';

/** Enough for a screen; `ops.rollout.get` pages through all. */
const WORST = 50;

/** Keeps what is shown of a rollout whose targets are about to be forgotten. */
export function freeze(state: State, change: string): void {
  const rollout = state.rollouts.get(change);
  if (rollout === undefined || rollout.frozen !== undefined) return;
  // What is under way goes on, and is no longer this rollout's to show.
  const worst = worstNodes(state, rollout).filter((row) => !UNDER_WAY.has(row.state));
  const pools = Object.fromEntries(
    Object.entries(poolProgress(state, rollout)).map(([pool, progress]) => [pool, { ...progress, active: 0 }]),
  );
  const tally = state.tallies.get(change) ?? EMPTY_TALLY;
  const owed = tally.owed === 0 ? {} : owedIn(state, rollout);
  const names = Object.keys(owed);
  state.rollouts.set(change, { ...rollout, frozen: { tally, pools, worst, owed } });
  for (const name of names) state.owedBy.set(name, [...(state.owedBy.get(name) ?? []), change]);
  // Whoever the next rollout takes over is owed nothing by this one, and some may have got it just now.
  for (const name of names)
    if (rollout.phase === 'superseded' || nodeOf(state, name).owed === '') noLongerOwed(state, name);
}

/** Who is still owed what a rollout leaves him → that hash. */
function owedIn(state: State, rollout: Rollout): Readonly<Record<string, string>> {
  const owed: Record<string, string> = {};
  for (const name of rollout.nodes) {
    const key = targetKey(rollout.change, name);
    const target = state.targets.get(key);
    if (target !== undefined && state.classes.get(key)?.tally === 'owed') owed[name] = goalOf(rollout, target);
  }
  return owed;
}

/** A node got what ended rollouts owed it, or is owed it no more: they show it so. */
export function noLongerOwed(state: State, name: string): void {
  const node = nodeOf(state, name);
  for (const change of state.owedBy.get(name) ?? []) {
    const rollout = state.rollouts.get(change);
    if (rollout?.frozen === undefined) continue;
    const {
      tally,
      pools,
      worst,
      owed: { [name]: goal, ...owed },
    } = rollout.frozen;
    // One that keeps what it has, or was given something newer, has not got it from this one.
    const has = node.joined && node.report?.hash === goal ? 'settled' : 'left';
    const progress = pools[node.pool];
    const frozen = {
      tally: { ...tally, owed: tally.owed - 1, [has]: tally[has] + 1 },
      pools:
        progress === undefined || has === 'left'
          ? pools
          : { ...pools, [node.pool]: { ...progress, done: progress.done + 1 } },
      worst: worst.filter((row) => row.node !== name || row.state !== 'owed'),
      owed,
    };
    state.rollouts.set(change, { ...rollout, frozen });
    state.touched.add(viewKey('rollouts', change));
  }
  state.owedBy.delete(name);
}

/** How far each pool is in a rollout. */
export function poolProgress(state: State, rollout: Rollout): Readonly<Record<string, PoolProgress>> {
  if (rollout.frozen !== undefined) return rollout.frozen.pools;
  const pools: Record<string, PoolProgress> = {};
  for (const [key, tally] of state.poolTallies.entries()) {
    const { change, node: pool } = parseTargetKey(key);
    if (change !== rollout.change) continue;
    const nodes = tally.settled + tally.active + tally.pending + tally.owed;
    if (nodes > 0) pools[pool] = { nodes, done: tally.settled, active: tally.active };
  }
  return Object.fromEntries(Object.entries(pools).sort(([a], [b]) => (a < b ? -1 : 1)));
}

const UNDER_WAY = new Set(['draining', 'ready', 'uncordoning', 'pending']);

const RANK: Readonly<Record<string, number>> = {
  invalid: 0,
  failed: 1,
  escalated: 2,
  unknown: 3,
  owed: 4,
  draining: 5,
  ready: 6,
  uncordoning: 7,
  pending: 8,
  applied: 9,
  back: 9,
};

/** The nodes that a person wants to see first: what went wrong, then what is going on. */
export function worstNodes(state: State, rollout: Rollout): readonly NodeProgress[] {
  if (rollout.frozen !== undefined) return rollout.frozen.worst;
  const names = new Set<string>();
  const isOfThis = (name: string): boolean => state.nodes.get(name)?.lease?.change === rollout.change;
  for (const name of state.attended) if (isOfThis(name)) names.add(name);
  // Of those that only work, the ones that have for the longest.
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

/** How one node stands in a rollout. */
export function nodeProgress(state: State, change: string, name: string): NodeProgress {
  const node = nodeOf(state, name);
  const phase = state.rollouts.get(change)?.phase;
  const key = targetKey(change, name);
  const target = state.targets.get(key);
  const { pool } = node;
  const lease = node.lease?.change === change ? node.lease : undefined;
  if (lease !== undefined && lease.because === '')
    return { node: name, pool, state: lease.phase, reason: lease.kind, since: lease.grantedAt };
  const tally = state.classes.get(key)?.tally;
  const since = target?.at ?? '';
  const goesBack = phase === 'reverting' || phase === 'reverted';
  if (tally === 'settled' && target?.verdict !== 'invalid' && target?.verdict !== 'failed')
    return { node: name, pool, state: goesBack ? 'back' : 'applied', reason: '', since };
  if (target !== undefined && wentWrong(target)) {
    return { node: name, pool, state: target.verdict, reason: target.reason, since };
  }
  if (tally === 'owed') return { node: name, pool, state: 'owed', reason: target?.owed ?? '', since };
  return { node: name, pool, state: tally === 'left' ? 'left' : 'pending', reason: '', since };
}
