import { emitRollout, type SchedulerDraft } from './draft.js';
import { parseMaxUnavailable, parseRolloutPolicy, selects } from '#libs/manifests';
import { budgetOf, policiesOf } from '#libs/rules';
import { leasedBy, mayRollBackBeyond, poolBudget, roomIn } from './indexes.js';
import { isUnanswered } from './lease.js';
import { EMPTY_TALLY, nodeOf, parseTargetKey, type Change, type NodeState, type Rollout, type State } from './state.js';
import { holdersText } from './views.js';
import { isKnownBad, blockedBecause } from './want.js';

/**
 * Starts every change with a current review. A correction supersedes the changes that it replaces in the same batch.
 */
export function startRollouts(draft: SchedulerDraft): void {
  for (const name of [...draft.state.openChanges]) {
    const change = draft.state.changes.get(name);
    if (draft.full || change === undefined || !mayStart(draft.state, change)) continue;
    const paused = change.replaces.find((older) => draft.state.changes.get(older)?.paused === true);
    for (const older of change.replaces)
      emitRollout(draft, 'superseded', older, { by: name, reason: `corrected by ${name}` });
    const nodes = Object.keys(change.targets).length;
    const pending = nodes === 0 ? {} : { pending: nodes };
    const reason = nodes === 0 ? 'it affects no nodes' : '';
    const extra = {
      attempt: change.attempt,
      replaces: change.replaces,
      maxFailures: maxFailuresOf(draft.state, change),
      maxUnavailable: maxUnavailableOf(change, nodes),
      reason,
    };
    emitRollout(draft, 'started', name, { ...extra, applied: 0, ...pending });
    if (paused === undefined || change.paused) continue;
    // Who paused a rollout wants no node to change, whatever the newest content is.
    // Of a correction of a correction, the reason of the person who paused the first.
    const why = draft.state.changes.get(paused)?.pausedBecause?.split('which was paused ').at(-1) ?? '';
    emitRollout(draft, 'paused', name, { by: 'scheduler', reason: `it corrects ${paused}, which was paused ${why}` });
  }
}

function mayStart(state: State, change: Change): boolean {
  // A change that was superseded earlier in this batch is no longer open.
  if (
    !change.open ||
    change.started ||
    change.aborted ||
    change.validated?.attempt !== change.attempt ||
    change.attempt === 0
  )
    return false;
  if (!change.replaces.every((older) => isReplaceable(state, older))) return false;
  if (!isFreeOfOthers(state, change)) return false;
  return !isReviewOutdated(state, change, change.validated.sequence);
}

/**
 * A node is a target of one rollout at a time. The merge queue ensures this, but a node may be relabelled meanwhile.
 */
const isFreeOfOthers = (state: State, change: Change): boolean =>
  Object.keys(change.targets).every((name) => {
    const other = state.nodes.get(name)?.change;
    return other === undefined || change.replaces.includes(other);
  });

/**
 * A correction can only replace a change that is still open and rolling. Otherwise the correction is rendered again
 * after that change has been committed or judged.
 */
function isReplaceable(state: State, older: string): boolean {
  const change = state.changes.get(older);
  if (change === undefined || !change.open || change.aborted) return false;
  return !change.started || state.rollouts.get(older)?.phase === 'rolling';
}

/**
 * A node has reported one of the configs as invalid since the review: the change is reviewed again after the judgement.
 */
function isReviewOutdated(state: State, change: Change, reviewed: number): boolean {
  if (![...state.invalids.values()].some((sequence) => sequence > reviewed) && state.knownBad.size === 0) return false;
  return Object.values(change.targets).some((target) => {
    if (target.from === target.to) return false;
    const since = Math.max(state.invalids.get(target.to) ?? 0, state.invalids.get(target.recipe) ?? 0);
    return since > reviewed || isKnownBad(state, target);
  });
}

/** Defers targets that cannot get a lease, so that no rollout waits for them. */
export function deferBlocked(draft: SchedulerDraft): void {
  for (const key of [...draft.state.blocked]) {
    if (draft.full) return;
    const { change, node: name } = parseTargetKey(key);
    const node = nodeOf(draft.state, name);
    const [rollout, target] = [draft.state.rollouts.get(change), draft.state.targets.get(key)];
    if (rollout === undefined || target === undefined) continue;
    const reason = blockedBecause(draft.state, rollout, target, node);
    if (reason !== undefined)
      draft.emit({ type: 'node.deferred', node: name, pool: node.pool, lease: '', change, reason });
  }
}

/** Records the ends of rollouts: complete, reverted, succeeded. */
export function endRollouts(draft: SchedulerDraft): void {
  for (const rollout of [...draft.state.rollouts.values()]) {
    if (draft.full) return;
    const tally = draft.state.tallies.get(rollout.change) ?? EMPTY_TALLY;
    const over = tally.pending === 0 && tally.active === 0;
    if (rollout.phase === 'rolling' && over) {
      emitRollout(draft, 'complete', rollout.change, {
        reason: rollout.nodes.length === 0 ? 'it affects no nodes' : '',
      });
    } else if (rollout.phase === 'reverting' && over && !awaitsJudgement(draft.state, rollout.change)) {
      emitRollout(draft, 'reverted', rollout.change, { reason: rollout.reason });
    } else if (rollout.phase === 'complete' && draft.state.changes.get(rollout.change)?.open === false) {
      emitRollout(draft, 'succeeded', rollout.change);
    }
  }
}

const awaitsJudgement = (state: State, change: string): boolean => [...state.unjudged.values()].includes(change);

/** Records rollouts that can grant nothing, with the nodes that use up the budgets and are not changing. */
export function reportStalls(draft: SchedulerDraft): void {
  for (const rollout of [...draft.state.rollouts.values()]) {
    const goesOn = (rollout.phase === 'rolling' && !rollout.paused) || rollout.phase === 'reverting';
    if (draft.full || !goesOn) continue;
    const nodes = holdersOf(draft.state, rollout).slice(0, MOST_HOLDERS);
    if (nodes.length === 0 || nodes.join(' ') === rollout.stalledBy.join(' ')) continue;
    const reason = `waits for ${holdersText(draft.state, nodes)}: see sluice why ${rollout.change}`;
    emitRollout(draft, 'stalled', rollout.change, { nodes, reason });
  }
}

/** Limits the size of the fact, which must fit into a message. */
const MOST_HOLDERS = 1_000;

/** The nodes that stall a rollout; none while one of its leases, or a lease in one of its pools, is in progress. */
function holdersOf(state: State, rollout: Rollout): readonly string[] {
  const tally = state.tallies.get(rollout.change) ?? EMPTY_TALLY;
  if (tally.active > 0 || tally.pending === 0) return [];
  const holders = [...unitHoldersOf(state, rollout)];
  return holders.some((name) => endsOnItsOwn(nodeOf(state, name))) ? [] : holders.sort();
}

/** The nodes that take what the rollout needs: the places of its own pace, or the units of all its pools. */
function unitHoldersOf(state: State, rollout: Rollout): ReadonlySet<string> {
  if (rollout.phase === 'rolling' && roomIn(state, rollout) <= 0) return new Set(leasedBy(state, rollout.change));
  const holders = new Set<string>();
  for (const [key, count] of state.poolTallies.entries()) {
    const { change, node: pool } = parseTargetKey(key);
    if (change !== rollout.change || count.pending === 0) continue;
    const { unavailable } = state.poolSet(pool);
    if (unavailable.size < poolBudget(state, pool)) return new Set();
    if (rollout.phase === 'reverting' && mayRollBackBeyond(state, pool)) return new Set();
    for (const name of unavailable) holders.add(name);
  }
  return holders;
}

/** Every lease ends on its own, except an unanswered one. That one ends when its node is skipped or removed. */
const endsOnItsOwn = ({ lease, joined, skippedBy }: NodeState): boolean =>
  lease !== undefined && (!isUnanswered(lease) || !joined || skippedBy !== undefined);

/**
 * How many nodes may fail: the number in the change, else that of the strictest policy that selects a target, else 0.
 */
function maxFailuresOf(state: State, change: Change): number {
  if (change.maxFailures !== undefined) return change.maxFailures;
  const carried = { apply: change.policies, delete: change.policyDeletes };
  const policies = policiesOf('RolloutPolicy', state.policies.values(), carried).map(parseRolloutPolicy);
  const labels = Object.keys(change.targets).map((name) => nodeOf(state, name).labels);
  const selecting = policies.filter((policy) => labels.some((one) => selects(policy.selector, one)));
  return selecting.length === 0 ? 0 : Math.min(...selecting.map((policy) => policy.maxFailures));
}

/** How many of `nodes` the change lets change at once; 0 if it sets no limit. */
const maxUnavailableOf = ({ maxUnavailable }: Change, nodes: number): number =>
  maxUnavailable === undefined ? 0 : budgetOf({ maxUnavailable: parseMaxUnavailable(maxUnavailable) }, nodes);
