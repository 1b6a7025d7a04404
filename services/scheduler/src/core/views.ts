import {
  nodeOfToken,
  nodeToken,
  type LeaseView,
  type PoolView,
  type RolloutView,
  type StatusView,
  type ViewBucket,
} from '#libs/contracts';
import { viewKey, type ViewBody, type ViewKey } from '#libs/engine';
import { applyMsOf } from '#libs/manifests';
import { DEFAULT_POOL } from '#libs/rules';
import { poolProgress, unknownIn, worstNodes } from './frozen-rollout.js';
import { poolBudget } from './indexes.js';
import { isOpen, type Lease } from './lease.js';
import { appliedIn, EMPTY_TALLY, nodeOf, poolPolicy, type NodeState, type State, type TakenUnit } from './state.js';
import { takenText, unavailableText } from './want.js';

/** Who paused a change and why, as views show it. */
export const pausedText = (by: string, reason: string): string => `by ${by}${reason === '' ? '' : `: ${reason}`}`;

type Body<T> = Omit<T, 'ledger'>;
/**
 * How many unavailable nodes the value of a pool names. There can be many, and the value is written in each turn, so it
 * must stay small.
 */
const SHOWN_UNAVAILABLE = 100;
/** How many silent, unhealthy and unavailable nodes it names. */
const SHOWN = 10;

/** Every key of the scheduler's views. */
export function* viewKeys(state: State): Iterable<string> {
  for (const name of state.nodes.keys()) {
    yield viewKey('status', nodeToken(name));
    yield viewKey('leases', nodeToken(name));
  }
  for (const name of state.poolNames()) yield viewKey('pools', name);
  for (const name of state.rollouts.keys()) yield viewKey('rollouts', name);
}

/** The value of one key; undefined if there is nothing to show. */
export function view(state: State, { bucket, key }: ViewKey): ViewBody | undefined {
  const show: Partial<Record<ViewBucket, (key: string) => ViewBody | undefined>> = {
    status: (token) => statusView(state, nodeOfToken(token)),
    leases: (token) => leaseView(state, nodeOfToken(token)),
    pools: (pool) => poolView(state, pool),
    rollouts: (change) => rolloutView(state, change),
  };
  return show[bucket]?.(key);
}

function statusView(state: State, name: string): Body<StatusView> | undefined {
  const node = state.nodes.get(name);
  if (node === undefined) return undefined;
  const { report } = node;
  return {
    node: name,
    incarnation: report?.incarnation ?? 0,
    nonce: report?.nonce ?? 0,
    seq: report?.seq ?? 0,
    hash: report?.hash ?? '',
    lease: report?.lease ?? '',
    verdict: report?.verdict ?? '',
    reason: report?.reason ?? '',
    restored: report?.restored ?? true,
    desired: node.desired?.hash ?? '',
    pool: node.pool,
    deferred: node.deferred ?? '',
    incompatible: node.incompatible.length > 0,
    incompatibleReasons: node.incompatible,
    drifted: node.drift?.differences ?? [],
    driftedSince: node.drift?.since ?? '',
    failingProbes: node.failingProbes,
    notUndone: node.notUndone,
    leftovers: report?.leftovers ?? [],
    skipped: node.skippedBy ?? '',
    change: node.change ?? '',
    ...(node.taken === undefined ? {} : { taken: takenView(node.taken) }),
    ...(report?.unavailable === undefined ? {} : { unavailable: report.unavailable }),
    leaseLedger: (node.lease ?? node.lastLease) === undefined ? 0 : node.leaseLedger,
    ...(node.unsure ? { unsure: true } : {}),
  };
}

const takenView = ({ owner, reason, at, forMs }: TakenUnit) => ({ owner, reason, at, forMs });

function leaseView(state: State, name: string): Body<LeaseView> | undefined {
  const node = state.nodes.get(name);
  const lease = node?.lease ?? node?.lastLease;
  if (node === undefined || lease === undefined) return undefined;
  const { id, pool, change, kind, hash, from, actions, applyMs, drainMs, undo, grantedAt } = lease;
  const phase = node.lease === undefined ? 'released' : lease.phase === 'uncordoned' ? 'uncordoning' : lease.phase;
  const { because, reason, settledAt } = isOpen(lease) ? OPEN : lease;
  const granted = { change, kind, hash, from, actions, applyMs, drainMs, ...(undo === true ? { undo } : {}) };
  const drift = isOpen(lease) ? { drift: lease.drift } : {};
  return { node: name, pool, lease: id, phase, ...granted, because, reason, grantedAt, settledAt, ...drift };
}

const OPEN = { because: '', reason: '', settledAt: '' } as const;

/** Why a node counts against its pool, for people. */
export function unavailableBecause(node: NodeState): string {
  if (node.lease !== undefined) return leaseState(node.lease);
  const unavailable = unavailableText(node);
  if (unavailable !== undefined) return unavailable;
  if (node.silent) return 'silent';
  if (node.taken !== undefined) return takenText(node.taken);
  if (node.outOfService !== undefined) return node.outOfService;
  return 'degraded: rollback failed';
}

/** Nodes that hold units, each with the reason, for people. */
export function holdersText(state: State, names: readonly string[]): string {
  const shown = names.slice(0, NAMED).map((name) => `${name} (${unavailableBecause(nodeOf(state, name))})`);
  return `${shown.join(', ')}${names.length > NAMED ? ` and ${names.length - NAMED} more` : ''}`;
}

const NAMED = 5;

const leaseState = (lease: Lease): string => {
  if (isOpen(lease)) return lease.phase;
  return lease.because === 'unknown'
    ? 'unknown: it did not report by the deadline of its lease'
    : `${lease.because}, not yet released`;
};

export function poolView(state: State, pool: string): Body<PoolView> {
  const policy = poolPolicy(state, pool);
  const sets = state.poolSet(pool);
  const unavailable = sets.unavailable.first(SHOWN_UNAVAILABLE).map((name) => {
    const node = nodeOf(state, name);
    return { node: name, because: unavailableBecause(node), lease: node.lease?.id ?? '' };
  });
  const gone = pool !== 'default' && policy === DEFAULT_POOL;
  return {
    pool,
    maxUnavailable: policy.text,
    budget: poolBudget(state, pool),
    members: state.members.get(pool) ?? 0,
    unavailable,
    used: sets.unavailable.size,
    waiting: sets.queue.size + sets.downQueue.size,
    applyMs: applyMsOf(policy),
    drainMs: policy.drainMs,
    drift: policy.drift,
    gone,
    silent: sets.silent.size,
    silentNodes: sets.silent.first(SHOWN),
    unhealthy: sets.unhealthy.size,
    unhealthyNodes: sets.unhealthy
      .first(SHOWN)
      .map((node) => ({ node, failingProbes: nodeOf(state, node).failingProbes })),
    targetsUnavailable: sets.unavailableTargets.size,
    unavailableTargets: sets.unavailableTargets
      .first(SHOWN)
      .map((node) => ({ node, reason: nodeOf(state, node).report?.unavailable ?? '' })),
  };
}

export function rolloutView(state: State, change: string): Body<RolloutView> | undefined {
  const rollout = state.rollouts.get(change);
  if (rollout === undefined) return undefined;
  const tally = rollout.frozen?.tally ?? state.tallies.get(change) ?? EMPTY_TALLY;
  const { phase, paused, failed, maxFailures, maxUnavailable, reason, startedAt, aborted } = rollout;
  return {
    change,
    phase,
    paused,
    nodes: rollout.nodes.length,
    applied: appliedIn(phase, tally),
    failed,
    unknown: unknownIn(state, rollout),
    deferred: tally.deferred,
    pending: tally.pending + tally.active,
    maxFailures,
    maxUnavailable,
    reason: paused && phase === 'rolling' ? (rollout.pausedBecause ?? reason) : reason,
    pools: poolProgress(state, rollout),
    worst: worstNodes(state, rollout),
    stalledBy: rollout.stalledBy,
    startedAt,
    endedAt: rollout.endedAt ?? '',
    supersededBy: rollout.supersededBy ?? '',
    aborted,
  };
}
