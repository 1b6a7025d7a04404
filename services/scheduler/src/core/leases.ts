import type { Because, DrainOutcome, Fragment, TakenReport } from '#libs/contracts';
import { emitRollout, type SchedulerDraft } from './draft.js';
import { drainTerms } from './fold/leases.js';
import { deadlineMsOf, poolPolicy } from './indexes.js';
import { isOpen, isUnanswered, type ApplyingLease, type DrainingLease, type EndedLease, type Lease } from './lease.js';
import { nodeOfPlace, targetKey, type NodeState, type Rollout, type State, type TargetState } from './state.js';
import { goalOf } from './want.js';

const drains = (lease: Lease): boolean => lease.actions.some((action) => action.kind === 'drain');

/** How a lease ends, and the report that ends it, if one does. */
interface LeaseOutcome {
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
  else if (because === 'invalid' || because === 'failed' || because === 'unknown')
    defer(draft, name, lease, `${kind} lease ended as ${because}: ${reason}`);
  const settled = draft.state.nodes.get(name)?.lease;
  if (settled !== undefined && !isOpen(settled)) finishLease(draft, name, settled);
}

/** What every fact about a lease says. */
const about = (node: string, { id, pool, change }: Lease) => ({ node, pool, lease: id, change });

const defer = (draft: SchedulerDraft, name: string, lease: Lease, reason: string): void =>
  draft.emit({ type: 'node.deferred', ...about(name, lease), reason });

/** What leaves nothing behind: no failure that something follows from, and no applier that may still be at work. */
const ENDS_AT_ONCE: ReadonlySet<Because> = new Set<Because>(['applied', 'escalated', 'stale', 'cancelled']);
const isOverWith = (lease: Lease, because: Because): boolean => ENDS_AT_ONCE.has(because) && !drains(lease);

/** Takes an ended lease on its way to released, as far as that can be done now. */
function finishLease(draft: SchedulerDraft, name: string, lease: EndedLease): void {
  if (isUnanswered(lease)) return;
  if (drains(lease) && lease.phase === 'settled')
    return draft.emit({ type: 'node.lease.uncordoning', ...about(name, lease) });
  if ((drains(lease) && lease.phase !== 'uncordoned') || !mayRelease(draft, lease)) return;
  const { kind, hash, because } = lease;
  draft.emit({ type: 'node.lease.released', ...about(name, lease), kind, hash, because });
}

/** An applier that was skipped or has left may still be at work: its unit is free only when its time is over. */
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
 * Whether a lease still waits for its node: under way, or unknown and without an answer since. What was answered only
 * has to be released.
 */
export const isUndecided = (lease: Lease): boolean => isOpen(lease) || isUnanswered(lease);

/** Deadlines, drains that are done, and ended leases whose time is over. */
export function advanceLeases(draft: SchedulerDraft): void {
  const terms = termsOfPools(draft.state);
  // Nobody has to look at thousands of leases at which appliers are at work, each time that one of them is done.
  for (const name of [...draft.state.attended, ...overdue(draft)]) {
    if (draft.full) return;
    const node = draft.state.nodes.get(name);
    if (node?.lease === undefined) continue;
    if (!node.joined && isUndecided(node.lease))
      settleLease(draft, name, node.lease, { because: 'left', reason: 'the node has left', restored: true });
    else if (isOpen(node.lease)) advanceOpen(draft, node, node.lease, terms);
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

/** How each pool has its nodes drained, worked out when it is first asked for; undefined for a pool without a Pool. */
function termsOfPools({ pools }: State): (pool: string) => string | undefined {
  const known = new Map<string, string | undefined>();
  return (name) => {
    if (!known.has(name)) {
      const pool = pools.get(name);
      known.set(name, pool === undefined ? undefined : drainTerms(pool));
    }
    return known.get(name);
  };
}

function advanceOpen(draft: SchedulerDraft, node: NodeState, lease: DrainingLease | ApplyingLease, terms: Terms): void {
  if (lease.phase === 'draining') return advanceDrain(draft, node, lease, terms);
  const deadlineMs = lease.sinceMs + lease.applyMs;
  if (draft.now.monotonicMs < deadlineMs) return draft.wakeAt(deadlineMs);
  const reason = `no answer within ${Math.round(lease.applyMs / 1000)} s`;
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
  // Of the pool whose unit it has; where nobody has written that one, of the one that the node is in now.
  const says = draft.state.pools.has(lease.pool) ? lease.pool : node.pool;
  if (lease.drainTerms !== '' && (terms(says) ?? lease.drainTerms) !== lease.drainTerms)
    return amend(draft, node.node, lease, says);
  const deadlineMs = lease.sinceMs + lease.drainMs;
  if (draft.now.monotonicMs < deadlineMs) return draft.wakeAt(deadlineMs);
  const reason = `not drained within ${Math.round(lease.drainMs / 1000)} s`;
  endDrain(draft, node.node, lease, lease.defers ? 'deferred' : 'failed', reason);
}

/**
 * Its pool has been given other words about drains since: they hold for what is drained already, and the time begins
 * again.
 */
function amend(draft: SchedulerDraft, node: string, lease: Lease, says: string): void {
  const { drainMs, drain } = poolPolicy(draft.state, says);
  const written = Object.keys(drain).length > 0 ? { drain: drain as Fragment['spec'] } : {};
  draft.emit({ type: 'node.lease.amended', ...about(node, lease), drainMs, ...written });
  draft.wakeAt(draft.now.monotonicMs + drainMs);
}

/**
 * Nothing was done to the node. Deferred, a rollout goes on without it, and it is deferred; outside a rollout it is
 * tried again later, as after a failure.
 */
function endDrain(draft: SchedulerDraft, name: string, lease: Lease, outcome: DrainOutcome, reason: string): void {
  if (outcome === 'failed' || lease.change === '')
    return settleLease(draft, name, lease, { because: 'failed', reason, restored: true });
  settleLease(draft, name, lease, { because: 'cancelled', reason: `deferred: ${reason}`, restored: true });
  defer(draft, name, lease, `deferred: ${reason}`);
}

/** A lease that still drains for a rollout that has turned, ended or been superseded. */
function isPointless(draft: SchedulerDraft, node: NodeState, lease: Lease): boolean {
  if (lease.change === '') return false;
  const phase = draft.state.rollouts.get(lease.change)?.phase;
  return lease.kind === 'forward' ? phase !== 'rolling' || node.change !== lease.change : phase !== 'reverting';
}

function afterForward(draft: SchedulerDraft, name: string, lease: Lease, because: Because, reason: string): void {
  const { change } = lease;
  const rollout = draft.state.rollouts.get(change);
  if (because === 'invalid') {
    for (const other of alsoFailing(draft, change, lease))
      failRollout(draft, other, `${name} in ${change} reported its config as invalid: ${reason}`);
    if (rollout?.phase === 'rolling') return failRollout(draft, change, `${name} is invalid: ${reason}`);
  }
  if (rollout?.phase !== 'rolling' || (because !== 'failed' && because !== 'unknown')) return;
  if (rollout.failed + rollout.unknown > rollout.maxFailures) {
    const tolerated = rollout.maxFailures === 0 ? '' : `, more than the ${rollout.maxFailures} tolerated`;
    return failRollout(draft, change, `${name} is ${because}: ${reason}${tolerated}`);
  }
  defer(draft, name, lease, `${because}: ${reason}`);
}

/** Turns a rollout around: it has failed, and is rolled back. */
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
