import type { NodeProgress, PoolProgress } from '#libs/contracts';
import { viewKey } from '#libs/engine';
import { isOpen } from './lease.js';
import {
  ALL_ROLLED_BACK,
  EMPTY_TALLY,
  isKnownToHave,
  isUntouchedBy,
  nodeOf,
  nodeOfPlace,
  parseTargetKey,
  targetKey,
  wentWrong,
  type DeferredNode,
  type FrozenRollout,
  type NodeResults,
  type NodeState,
  type Rollout,
  type State,
} from './state.js';
import { rollsBack, wantedHash } from './want.js';

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
  const results = resultsOf(rollout.nodes.map((name) => nodeProgress(state, change, name)));
  state.rollouts.set(change, { ...rollout, frozen: { tally, pools, worst, deferred, results } });
  for (const name of names) state.deferredBy.set(name, [...(state.deferredBy.get(name) ?? []), change]);
  // A node that the next rollout takes over is no longer deferred by this one. Others may have just got their config.
  for (const name of names) endDeferrals(state, name);
}

/** The nodes that a rollout has deferred and that still lack its config. */
function deferredIn(state: State, rollout: Rollout): FrozenRollout['deferred'] {
  const deferred = new Map<string, DeferredNode>();
  for (const name of rollout.nodes) {
    const key = targetKey(rollout.change, name);
    const target = state.targets.get(key);
    if (target !== undefined && state.classes.get(key)?.tally === 'deferred')
      deferred.set(name, { hash: wantedHash(rollout, target), startedBy: target.startedBy });
  }
  return Object.fromEntries(deferred);
}

/** Most nodes of a rollout end in the same way, so this is short. */
const resultsOf = (rows: readonly NodeProgress[]): readonly NodeResults[] =>
  joined(rows.map(({ state, pool }) => ({ state: UNDER_WAY.has(state) ? 'superseded' : state, pool, count: 1 })));

/** The results once the node with this index has ended differently. */
function withResult(results: readonly NodeResults[], index: number, state: string): readonly NodeResults[] {
  let first = 0;
  return joined(
    results.flatMap((one): readonly NodeResults[] => {
      const at = index - first;
      first += one.count;
      return at < 0 || at >= one.count
        ? [one]
        : [
            { ...one, count: at },
            { ...one, state, count: 1 },
            { ...one, count: one.count - at - 1 },
          ];
    }),
  );
}

function joined(all: readonly NodeResults[]): readonly NodeResults[] {
  const results: NodeResults[] = [];
  for (const one of all) {
    const last = results.at(-1);
    if (one.count === 0) continue;
    if (last?.state === one.state && last.pool === one.pool)
      results[results.length - 1] = { ...last, count: last.count + one.count };
    else results.push(one);
  }
  return results;
}

/** How nodes of an ended rollout ended, with the reason of those that need attention. `names` follow each other. */
export function frozenProgress(state: State, rollout: Rollout, names: readonly string[]): readonly NodeProgress[] {
  const { nodes, frozen } = rollout;
  if (frozen === undefined) return [];
  const worst = new Map(worstNodes(state, rollout).map((row) => [row.node, row]));
  const results = frozen.results.flatMap((one) => Array.from({ length: one.count }, () => one));
  const first = nodes.indexOf(names[0] ?? '');
  return names.map((node, i) => {
    const { state = '', pool = '' } = results[first + i] ?? {};
    return worst.get(node) ?? { node, pool, state, reason: '', since: '' };
  });
}

/** Updates ended rollouts when a node gets the config that they deferred, or will not get it from them. */
export function endDeferrals(state: State, name: string): void {
  const node = nodeOf(state, name);
  const still: string[] = [];
  for (const change of state.deferredBy.get(name) ?? []) {
    const rollout = state.rollouts.get(change);
    if (rollout?.frozen === undefined) continue;
    const {
      tally,
      pools,
      worst,
      deferred: { [name]: goal, ...deferred },
    } = rollout.frozen;
    if (rollout.phase !== 'superseded' && mayStillGet(node, goal)) {
      still.push(change);
      continue;
    }
    // A node that keeps its config, or got a newer one, did not get it from this rollout.
    const has = node.joined && isKnownToHave(node, goal?.hash) ? 'settled' : 'left';
    const isBack = has === 'settled' && rollsBack(rollout.phase);
    const isUntouched = isBack && neverChanged(goal, node);
    const rolledBack = rolledBackAs(node);
    const result =
      has === 'left'
        ? node.joined
          ? 'superseded'
          : 'left'
        : isUntouched
          ? 'untouched'
          : isBack
            ? rolledBack.state
            : 'applied';
    const progress = Object.hasOwn(pools, node.pool) ? pools[node.pool] : undefined;
    const frozen = {
      ...rollout.frozen,
      tally: { ...tally, deferred: tally.deferred - 1, [has]: tally[has] + 1 },
      pools:
        progress === undefined || has === 'left'
          ? pools
          : {
              ...pools,
              [node.pool]: {
                ...progress,
                done: progress.done + 1,
                untouched: progress.untouched + (isUntouched ? 1 : 0),
              },
            },
      worst: [
        ...(result === 'partly-rolled-back' ? [{ node: name, pool: node.pool, ...rolledBack, since: '' }] : []),
        ...worst.filter((row) => row.node !== name || !(row.state === 'deferred' || isUntouched)),
      ].slice(0, WORST),
      results: withResult(rollout.frozen.results, rollout.nodes.indexOf(name), result),
      deferred,
    };
    state.rollouts.set(change, { ...rollout, frozen });
    state.touched.add(viewKey('rollouts', change));
  }
  if (still.length > 0) state.deferredBy.set(name, still);
  else state.deferredBy.delete(name);
}

/**
 * Whether the node may still get the config that an ended rollout deferred. One that is incompatible with the committed
 * config keeps its own until that is fixed.
 */
function mayStillGet(node: NodeState, goal: DeferredNode | undefined): boolean {
  const { joined, deferred, change, incompatible, desired } = node;
  if (deferred !== undefined) return true;
  if (!joined || change !== undefined || goal === undefined) return false;
  return incompatible.length > 0 || (desired?.hash === goal.hash && !isKnownToHave(node, goal.hash));
}

/** Whether no lease of the rollout changed the node, as far as it has reported. */
const neverChanged = (deferred: DeferredNode | undefined, node: NodeState): boolean =>
  deferred?.startedBy === undefined || isUntouchedBy(node, deferred.startedBy);

/** The progress of each pool in a rollout. */
export function poolProgress(state: State, rollout: Rollout): Readonly<Record<string, PoolProgress>> {
  if (rollout.frozen !== undefined) return rollout.frozen.pools;
  const pools = new Map<string, PoolProgress>();
  for (const [key, tally] of state.poolTallies.entries()) {
    const { change, node: pool } = parseTargetKey(key);
    if (change !== rollout.change) continue;
    const nodes = tally.settled + tally.active + tally.pending + tally.deferred;
    const notRolledBack = (rollsBack(rollout.phase) ? state.notRolledBack.get(key) : undefined) ?? ALL_ROLLED_BACK;
    if (nodes > 0) pools.set(pool, { nodes, done: tally.settled, active: tally.active, ...notRolledBack });
  }
  return Object.fromEntries([...pools].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/**
 * How many nodes did not answer by the deadline of their lease, and have not got the config since. A rollback shows how
 * many did not answer, no matter what became of them, because that is why it rolls back.
 */
export function unknownIn(state: State, { change, phase, unknown, frozen }: Rollout): number {
  if (unknown === 0 || rollsBack(phase)) return unknown;
  if (frozen !== undefined)
    return frozen.results.reduce((sum, result) => sum + (result.state === 'unknown' ? result.count : 0), 0);
  const isUnknown = (key: string): boolean =>
    state.targets.get(key)?.outcome?.because === 'unknown' && state.classes.get(key)?.tally !== 'settled';
  return [...state.troubled].filter((key) => key.startsWith(`${change}/`) && isUnknown(key)).length;
}

const UNDER_WAY = new Set(['draining', 'applying', 'uncordoning', 'pending']);

const RANK: ReadonlyMap<string, number> = new Map(
  Object.entries({
    invalid: 0,
    failed: 1,
    degraded: 1,
    escalated: 2,
    'partly-rolled-back': 2,
    unknown: 3,
    deferred: 4,
    draining: 5,
    applying: 6,
    uncordoning: 7,
    pending: 8,
    applied: 9,
    'rolled-back': 9,
    untouched: 9,
  }),
);

/** The nodes that people want to see first: failures, then nodes in progress. */
export function worstNodes(state: State, rollout: Rollout): readonly NodeProgress[] {
  if (rollout.frozen !== undefined) return rollout.frozen.worst.map((row) => asOfNow(state, rollout.change, row));
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
  rows.sort((a, b) => (RANK.get(a.state) ?? 9) - (RANK.get(b.state) ?? 9) || (a.node < b.node ? -1 : 1));
  return rows.slice(0, WORST);
}

/** A node may be deferred for another reason than when its rollout ended. */
function asOfNow(state: State, change: string, row: NodeProgress): NodeProgress {
  const { deferred } = nodeOf(state, row.node);
  const isStill = row.state === 'deferred' && state.deferredBy.get(row.node)?.includes(change) === true;
  return isStill && deferred !== undefined ? { ...row, reason: deferred } : row;
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
    return { node: name, pool, ...settledAs(state, change, node), since };
  if (target !== undefined && wentWrong(target) && outcome !== undefined)
    return { node: name, pool, state: outcome.because, reason: outcome.reason, since };
  if (tally === 'deferred') return { node: name, pool, state: 'deferred', reason: target?.deferred ?? '', since };
  return { node: name, pool, state: tally === 'left' ? 'left' : 'pending', reason: '', since };
}

/** How a settled target ended, and what people must know about it. */
function settledAs(
  state: State,
  change: string,
  { node, report, notUndone }: NodeState,
): Pick<NodeProgress, 'state' | 'reason'> {
  if (!rollsBack(state.rollouts.get(change)?.phase)) return { state: 'applied', reason: '' };
  const notRolledBack = state.classes.get(targetKey(change, node))?.notRolledBack;
  if (notRolledBack === 'untouched') return { state: 'untouched', reason: '' };
  if (notRolledBack === 'degraded') return { state: 'degraded', reason: report?.reason ?? '' };
  return rolledBackAs({ notUndone });
}

const rolledBackAs = ({ notUndone }: Pick<NodeState, 'notUndone'>): Pick<NodeProgress, 'state' | 'reason'> =>
  notUndone.length > 0
    ? { state: 'partly-rolled-back', reason: `rolled back, except ${notUndone.join(', ')}` }
    : { state: 'rolled-back', reason: '' };
