import type { Because, DrainOutcome, Fragment, TakenReport } from '#libs/contracts';
import { termsOf } from './drain-terms.js';
import { emitRollout, type SchedulerDraft } from './draft.js';
import { deadlineMsOf, poolPolicy } from './indexes.js';
import type { Lease, NodeState, Rollout, TargetState } from './state.js';
import { nodeOfPlace, targetKey } from './state.js';
import { goalOf } from './want.js';

const drains = (lease: Lease): boolean => lease.actions.some((action) => action.kind === 'drain');

/** How a lease ends, and the report that ends it, if one does. */
interface Settling {
  readonly because: Because;
  readonly reason: string;
  readonly restored: boolean;
  readonly report?: TakenReport;
}

/** Settles the lease that a node holds and decides, in the same batch, all that follows from it. */
export function settleLease(
  draft: SchedulerDraft,
  name: string,
  lease: Lease,
  { because, reason, restored, report }: Settling,
): void {
  const { id, pool, change, kind, hash, recipe } = lease;
  draft.emit({
    type: 'node.lease.settled',
    node: name,
    pool,
    lease: id,
    change,
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
  else if (because === 'invalid' || because === 'failed' || because === 'unknown') {
    draft.emit({
      type: 'node.owed',
      node: name,
      pool,
      lease: id,
      change,
      reason: `${kind} lease ended ${because}: ${reason}`,
    });
  }
  const settled = draft.state.nodes.get(name)?.lease;
  if (settled !== undefined) finishLease(draft, name, settled);
}

/** What leaves nothing behind: no failure that something follows from, and no applier that may still be at work. */
const ENDS_AT_ONCE: ReadonlySet<Because> = new Set<Because>(['applied', 'escalated', 'stale', 'cancelled']);
const isOverWith = (lease: Lease, because: Because): boolean => ENDS_AT_ONCE.has(because) && !drains(lease);

/** Takes an ended lease on its way to released, as far as that can be done now. */
function finishLease(draft: SchedulerDraft, name: string, lease: Lease): void {
  const { id, pool, change, kind, hash, because } = lease;
  if (because === '' || isUndecided(lease)) return;
  if (drains(lease) && lease.phase === 'settled')
    draft.emit({ type: 'node.lease.uncordoning', node: name, pool, lease: id, change });
  if ((drains(lease) && !lease.uncordoned) || !mayRelease(draft, lease)) return;
  draft.emit({ type: 'node.lease.released', node: name, pool, lease: id, change, kind, hash, because });
}

/** An applier that was skipped or has left may still be at work: its unit is free only when its time is over. */
function mayRelease(draft: SchedulerDraft, lease: Lease): boolean {
  if (lease.because !== 'skipped' && lease.because !== 'left') return true;
  if (lease.answered) return true;
  const shownMs = draft.state.shownMs.get(lease.id);
  if (shownMs === undefined) return false;
  const atMs = shownMs + lease.applyMs;
  if (draft.now.monotonicMs >= atMs) return true;
  draft.wakeAt(atMs);
  return false;
}

/** Whether a lease still waits for its node: under way, or unknown and without an answer since. What was answered only has to be released. */
export const isUndecided = (lease: Lease): boolean =>
  lease.because === '' || (lease.because === 'unknown' && !lease.answered);

/** Deadlines, drains that are done, and ended leases whose time is over. */
export function advanceLeases(draft: SchedulerDraft): void {
  const terms = termsOf(draft.state.pools);
  // Nobody has to look at thousands of leases at which appliers are at work, each time that one of them is done.
  for (const name of [...draft.state.attended, ...overdue(draft)]) {
    if (draft.full) return;
    const node = draft.state.nodes.get(name);
    if (node?.lease === undefined) continue;
    if (!node.joined && isUndecided(node.lease))
      settleLease(draft, name, node.lease, { because: 'left', reason: 'the node has left', restored: true });
    else if (node.lease.because === '') advanceOpen(draft, node, node.lease, terms);
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

function advanceOpen(draft: SchedulerDraft, node: NodeState, lease: Lease, terms: ReturnType<typeof termsOf>): void {
  if (lease.phase === 'draining') return advanceDrain(draft, node, lease, terms);
  const deadlineMs = lease.sinceMs + lease.applyMs;
  if (draft.now.monotonicMs < deadlineMs) return draft.wakeAt(deadlineMs);
  const reason = `no answer within ${Math.round(lease.applyMs / 1000)} s`;
  draft.emit({
    type: 'node.unknown',
    node: node.node,
    change: lease.change,
    pool: lease.pool,
    lease: lease.id,
    hash: lease.hash,
    reason,
  });
  settleLease(draft, node.node, lease, { because: 'unknown', reason, restored: false });
}

function advanceDrain(draft: SchedulerDraft, node: NodeState, lease: Lease, terms: ReturnType<typeof termsOf>): void {
  if (isPointless(draft, node, lease))
    return settleLease(draft, node.node, lease, {
      because: 'cancelled',
      reason: 'its rollout no longer wants it',
      restored: true,
    });
  if (lease.stopped !== '') return endDrain(draft, node.node, lease, lease.stopped, lease.stoppedBecause);
  if (lease.drained) {
    return draft.emit({
      type: 'node.lease.ready',
      node: node.node,
      pool: lease.pool,
      lease: lease.id,
      change: lease.change,
      hash: lease.hash,
    });
  }
  // Of the pool whose unit it has; where nobody has written that one, of the one that the node is in now.
  const says = draft.state.pools.has(lease.pool) ? lease.pool : node.pool;
  if (lease.drainTerms !== '' && (terms(says) ?? lease.drainTerms) !== lease.drainTerms)
    return amend(draft, node.node, lease, says);
  const deadlineMs = lease.sinceMs + lease.drainMs;
  if (draft.now.monotonicMs < deadlineMs) return draft.wakeAt(deadlineMs);
  endDrain(
    draft,
    node.node,
    lease,
    lease.defers ? 'deferred' : 'failed',
    `not drained within ${Math.round(lease.drainMs / 1000)} s`,
  );
}

/** Its pool has been given other words about drains since: they hold for what is drained already, and the time begins anew. */
function amend(draft: SchedulerDraft, node: string, { id, pool, change }: Lease, says: string): void {
  const { drainMs, drain } = poolPolicy(draft.state, says);
  draft.emit({
    type: 'node.lease.amended',
    node,
    pool,
    lease: id,
    change,
    drainMs,
    ...(Object.keys(drain).length > 0 ? { drain: drain as Fragment['spec'] } : {}),
  });
  draft.wakeAt(draft.now.monotonicMs + drainMs);
}

/** Nothing was done to the node. Deferred, a rollout goes on without it, and it is owed; outside a rollout it is tried again later, as after a failure. */
function endDrain(draft: SchedulerDraft, name: string, lease: Lease, outcome: DrainOutcome, reason: string): void {
  if (outcome === 'failed' || lease.change === '')
    return settleLease(draft, name, lease, { because: 'failed', reason, restored: true });
  settleLease(draft, name, lease, { because: 'cancelled', reason: `deferred: ${reason}`, restored: true });
  draft.emit({
    type: 'node.owed',
    node: name,
    pool: lease.pool,
    lease: lease.id,
    change: lease.change,
    reason: `deferred: ${reason}`,
  });
}

/** A lease that still drains for a rollout that has turned, ended or been superseded. */
function isPointless(draft: SchedulerDraft, node: NodeState, lease: Lease): boolean {
  if (lease.change === '') return false;
  const phase = draft.state.rollouts.get(lease.change)?.phase;
  return lease.kind === 'forward' ? phase !== 'rolling' || node.change !== lease.change : phase !== 'reverting';
}

function afterForward(draft: SchedulerDraft, name: string, lease: Lease, because: Because, reason: string): void {
  const { id, pool, change } = lease;
  const rollout = draft.state.rollouts.get(change);
  if (because === 'invalid') {
    for (const other of alsoFailing(draft, change, lease))
      failRollout(draft, other, `${name} in ${change} found its config invalid: ${reason}`);
    if (rollout?.phase === 'rolling') return failRollout(draft, change, `${name} is invalid: ${reason}`);
  }
  if (rollout?.phase !== 'rolling' || (because !== 'failed' && because !== 'unknown')) return;
  if (rollout.failed + rollout.unknown > rollout.maxFailures) {
    const tolerated = rollout.maxFailures === 0 ? '' : `, more than the ${rollout.maxFailures} tolerated`;
    return failRollout(draft, change, `${name} is ${because}: ${reason}${tolerated}`);
  }
  draft.emit({ type: 'node.owed', node: name, pool, lease: id, change, reason: `${because}: ${reason}` });
}

/** Turns a rollout round: it has failed, and goes back. */
export function failRollout(draft: SchedulerDraft, change: string, reason: string): void {
  emitRollout(draft, 'failed', change, { reason });
  emitRollout(draft, 'reverting', change, { reason });
}

/** The other rollouts under way that would still bring this hash or recipe to a node. */
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
  return same && draft.state.nodes.get(name)?.report?.hash !== goalOf(rollout, target);
}
