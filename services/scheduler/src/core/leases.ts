import type { LeaseEndReason, DrainOutcome, Fragment, TakenReport } from '#libs/contracts';
import { emitRollout, type SchedulerDraft } from './draft.js';
import { drainTerms } from './fold/leases.js';
import { deadlineMsOf } from './indexes.js';
import { isOpen, isUnanswered, type ApplyingLease, type DrainingLease, type EndedLease, type Lease } from './lease.js';
import {
  isTarget,
  nodeOfPlace,
  poolPolicy,
  targetKey,
  type NodeState,
  type Rollout,
  type State,
  type TargetState,
} from './state.js';
import type { Reading } from './inputs.js';
import { hasReadReports } from './reading.js';
import { wantedHash } from './want.js';

const drains = (lease: Lease): boolean => lease.actions.some((action) => action.kind === 'drain');

/** How a lease ends, and the report that ends it, if one does. */
interface LeaseOutcome {
  readonly because: LeaseEndReason;
  readonly reason: string;
  readonly restored: boolean;
  readonly report?: TakenReport;
}

/** Settles the lease of a node, and decides everything that follows from it in the same batch. */
export function settleLease(
  draft: SchedulerDraft,
  name: string,
  lease: Lease,
  { because, reason, restored, report }: LeaseOutcome,
): void {
  const { kind, hash, recipe } = lease;
  draft.emit({
    type: 'node.lease.settled',
    ...about(name, lease),
    kind,
    hash,
    recipe: because === 'invalid' ? recipe : '',
    because,
    reason,
    restored,
    ...(report === undefined ? {} : { report }),
    released: isOverWith(lease, because),
  });
  if (kind === 'forward') afterForward(draft, name, lease, because, reason);
  else if (because === 'invalid' || because === 'failed' || because === 'unknown' || because === 'unreachable')
    defer(draft, name, lease, `${kind} lease ended as ${because}: ${reason}`);
  const settled = draft.state.nodes.get(name)?.lease;
  if (settled !== undefined && !isOpen(settled)) finishLease(draft, name, settled);
}

/** The fields that every fact about a lease has. */
const about = (node: string, { id, pool, change }: Lease) => ({ node, pool, lease: id, change });

const defer = (draft: SchedulerDraft, name: string, lease: Lease, reason: string): void =>
  draft.emit({ type: 'node.deferred', ...about(name, lease), reason });

/** Ends that need no further step: nothing failed, and no applier can still be working. */
const ENDS_AT_ONCE: ReadonlySet<LeaseEndReason> = new Set<LeaseEndReason>([
  'applied',
  'escalated',
  'stale',
  'cancelled',
]);
const isOverWith = (lease: Lease, because: LeaseEndReason): boolean => ENDS_AT_ONCE.has(because) && !drains(lease);

/** Moves an ended lease towards `released`, as far as possible now. */
function finishLease(draft: SchedulerDraft, name: string, lease: EndedLease): void {
  if (isUnanswered(lease)) return;
  if (drains(lease) && lease.phase === 'settled')
    return draft.emit({ type: 'node.lease.uncordoning', ...about(name, lease) });
  if ((drains(lease) && lease.phase !== 'uncordoned') || !mayRelease(draft, lease)) return;
  const { kind, hash, because } = lease;
  draft.emit({ type: 'node.lease.released', ...about(name, lease), kind, hash, because });
}

/** The applier of a skipped or removed node may still be working, so its unit becomes free one `applyTimeout` later. */
function mayRelease(draft: SchedulerDraft, lease: EndedLease): boolean {
  if (lease.because !== 'skipped' && lease.because !== 'left') return true;
  if (lease.answered) return true;
  const shownMs = draft.state.shownMs.get(lease.id);
  if (shownMs === undefined) return false;
  const atMs = shownMs + lease.applyMs;
  if (draft.now.monotonicMs >= atMs) return true;
  draft.wakeAt(atMs);
  return false;
}

/**
 * Whether a lease still waits for a report of its node: it is open, or it is unknown and unanswered. An answered lease
 * only has to be released.
 */
export const isUndecided = (lease: Lease): boolean => isOpen(lease) || isUnanswered(lease);

/** Handles deadlines, finished drains, and ended leases that can be released. */
export function advanceLeases(draft: SchedulerDraft, reading: Reading): void {
  const terms = termsOfPools(draft.state);
  // Skip the leases whose appliers are working: there can be thousands, and each report would visit all of them.
  for (const name of [...draft.state.attended, ...overdue(draft)]) {
    if (draft.full) return;
    const node = draft.state.nodes.get(name);
    if (node?.lease === undefined) continue;
    if (!node.joined && isUndecided(node.lease))
      settleLease(draft, name, node.lease, { because: 'left', reason: 'the node has left', restored: true });
    else if (isOpen(node.lease)) advanceOpen(draft, node, node.lease, terms, reading);
    else finishLease(draft, name, node.lease);
  }
}

function overdue(draft: SchedulerDraft): readonly string[] {
  const names: string[] = [];
  for (const key of draft.state.working) {
    if (deadlineMsOf(key) > draft.now.monotonicMs) {
      draft.wakeAt(deadlineMsOf(key));
      return names;
    }
    names.push(nodeOfPlace(key));
  }
  return names;
}

type Terms = ReturnType<typeof termsOfPools>;

/** The drain settings of each pool, computed on first use; undefined for a pool that is not committed. */
function termsOfPools({ committedPools: pools }: State): (pool: string) => string | undefined {
  const cached = new Map<string, string | undefined>();
  return (name) => {
    if (!cached.has(name)) {
      const pool = pools.get(name);
      cached.set(name, pool === undefined ? undefined : drainTerms(pool));
    }
    return cached.get(name);
  };
}

function advanceOpen(
  draft: SchedulerDraft,
  node: NodeState,
  lease: DrainingLease | ApplyingLease,
  terms: Terms,
  reading: Reading,
): void {
  if (lease.phase === 'draining') return advanceDrain(draft, node, lease, terms);
  const deadlineMs = lease.sinceMs + lease.applyMs;
  if (draft.now.monotonicMs < deadlineMs) return draft.wakeAt(deadlineMs);
  if (!hasReadReports(draft, reading, deadlineMs, lease.applyMs)) return;
  const reason = `no answer within ${Math.round(lease.applyMs / 1000)} s`;
  // The change cannot have harmed the applier, which runs elsewhere. Another copy of it goes on with the target.
  if (isTarget(node)) return settleLease(draft, node.node, lease, { because: 'unreachable', reason, restored: false });
  draft.emit({ type: 'node.unknown', ...about(node.node, lease), hash: lease.hash, reason });
  settleLease(draft, node.node, lease, { because: 'unknown', reason, restored: false });
}

function advanceDrain(draft: SchedulerDraft, node: NodeState, lease: DrainingLease, terms: Terms): void {
  if (isPointless(draft, node, lease)) {
    const reason = 'its rollout no longer needs it';
    return settleLease(draft, node.node, lease, { because: 'cancelled', reason, restored: true });
  }
  if (lease.drain === 'done')
    return draft.emit({ type: 'node.lease.applying', ...about(node.node, lease), hash: lease.hash });
  if (lease.drain !== 'under-way') return endDrain(draft, node.node, lease, lease.drain.outcome, lease.drain.reason);
  // The settings of the pool whose unit the lease has; if that pool is not committed, of the pool that the node is in
  // now.
  const pool = draft.state.committedPools.has(lease.pool) ? lease.pool : node.pool;
  if (lease.drainTerms !== undefined && (terms(pool) ?? lease.drainTerms) !== lease.drainTerms)
    return amend(draft, node.node, lease, pool);
  const deadlineMs = lease.sinceMs + lease.drainMs;
  if (draft.now.monotonicMs < deadlineMs) return draft.wakeAt(deadlineMs);
  const reason = `not drained within ${Math.round(lease.drainMs / 1000)} s`;
  endDrain(draft, node.node, lease, lease.defers ? 'deferred' : 'failed', reason);
}

/** The drain settings of the pool have changed. They apply to the drain in progress, and its timer starts over. */
function amend(draft: SchedulerDraft, node: string, lease: Lease, pool: string): void {
  const { drainMs, drain } = poolPolicy(draft.state, pool);
  const drainField = Object.keys(drain).length > 0 ? { drain: drain as Fragment['spec'] } : {};
  draft.emit({ type: 'node.lease.amended', ...about(node, lease), drainMs, ...drainField });
  draft.wakeAt(draft.now.monotonicMs + drainMs);
}

/**
 * Ends a lease whose drain failed. The node was not changed. If the outcome is `deferred`, the rollout continues
 * without the node. Outside a rollout, the lease counts as failed and is tried again later.
 */
function endDrain(draft: SchedulerDraft, name: string, lease: Lease, outcome: DrainOutcome, reason: string): void {
  if (outcome === 'failed' || lease.change === '')
    return settleLease(draft, name, lease, { because: 'failed', reason, restored: true });
  settleLease(draft, name, lease, { because: 'cancelled', reason: `deferred: ${reason}`, restored: true });
  defer(draft, name, lease, `deferred: ${reason}`);
}

/** A lease that is still draining, but whose rollout is reverting, has ended or was superseded. */
function isPointless(draft: SchedulerDraft, node: NodeState, lease: Lease): boolean {
  if (lease.change === '') return false;
  const phase = draft.state.rollouts.get(lease.change)?.phase;
  return lease.kind === 'forward' ? phase !== 'rolling' || node.change !== lease.change : phase !== 'reverting';
}

function afterForward(
  draft: SchedulerDraft,
  name: string,
  lease: Lease,
  because: LeaseEndReason,
  reason: string,
): void {
  const { change } = lease;
  const rollout = draft.state.rollouts.get(change);
  if (because === 'invalid') {
    for (const other of alsoFailing(draft, change, lease))
      failRollout(draft, other, `${name} in ${change} reported its config as invalid: ${reason}`);
    if (rollout?.phase === 'rolling') return failRollout(draft, change, `${name} is invalid: ${reason}`);
  }
  if (rollout?.phase !== 'rolling') return;
  if (because === 'unreachable') return defer(draft, name, lease, `unreachable: ${reason}`);
  if (because !== 'failed' && because !== 'unknown') return;
  if (rollout.failed + rollout.unknown > rollout.maxFailures) {
    const limit = rollout.maxFailures === 0 ? '' : `; at most ${rollout.maxFailures} may fail`;
    return failRollout(draft, change, `${name} is ${because}: ${reason}${limit}`);
  }
  defer(draft, name, lease, `${because}: ${reason}`);
}

/** Records that a rollout has failed and starts to roll it back. */
function failRollout(draft: SchedulerDraft, change: string, reason: string): void {
  emitRollout(draft, 'failed', change, { reason });
  emitRollout(draft, 'reverting', change, { reason });
}

/** The other rollouts in progress that would still deliver this hash or recipe to a node. */
function alsoFailing(draft: SchedulerDraft, change: string, lease: Lease): readonly string[] {
  const rolling = [...draft.state.rollouts.values()].filter(
    (rollout) => rollout.phase === 'rolling' && rollout.change !== change,
  );
  return rolling
    .filter((rollout) => rollout.nodes.some((name) => isUnsettledWith(draft, rollout, name, lease)))
    .map((rollout) => rollout.change);
}

function isUnsettledWith(draft: SchedulerDraft, rollout: Rollout, name: string, lease: Lease): boolean {
  const target: TargetState | undefined = draft.state.targets.get(targetKey(rollout.change, name));
  if (target === undefined || target.left) return false;
  const same = target.to === lease.hash || (lease.recipe !== '' && target.recipe === lease.recipe);
  return same && draft.state.nodes.get(name)?.report?.hash !== wantedHash(rollout, target);
}
