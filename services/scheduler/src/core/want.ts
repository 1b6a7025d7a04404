import { durationText } from '#libs/manifests';
import { isOpen, isUnanswered, outcomeOf } from './lease.js';
import {
  targetKey,
  type NodeState,
  type Rollout,
  type State,
  type TargetClass,
  type TakenUnit,
  type TargetState,
  type Want,
} from './state.js';

/** Who has taken a node out of service, for people. */
export const takenText = ({ owner, reason, forMs, at }: TakenUnit): string =>
  `taken by ${owner}${forMs === 0 ? '' : ` for ${durationText(forMs)} from ${at}`}${reason === '' ? '' : `: ${reason}`}`;

/** A node can be reached and asked to change. */
const reachable = (node: NodeState): boolean =>
  !node.silent && node.taken === undefined && node.skippedBy === undefined;

/** A lease of the node is on its way, so that what it has may change any moment. */
const underWay = ({ lease }: NodeState): boolean => lease !== undefined && isOpen(lease);

/** Where a target leads now: forward to its `to`, or back to its `from`. */
export const goalOf = (rollout: Pick<Rollout, 'phase'>, target: Pick<TargetState, 'from' | 'to'>): string =>
  rollout.phase === 'reverting' || rollout.phase === 'reverted' ? target.from : target.to;

/** In which class a target counts, judged by what the node has in force. */
export function classOf(rollout: Rollout, target: TargetState, node: NodeState): TargetClass {
  const active = underWay(node);
  if (target.left || !node.joined) return active && node.lease?.change === rollout.change ? 'active' : 'left';
  if (active) return 'active';
  // What it has is not known: its last word was said before the lease that it has not answered.
  if (!isUnanswered(node.lease) && node.report?.hash === goalOf(rollout, target)) return 'settled';
  return target.deferred === undefined ? 'pending' : 'deferred';
}

/** A pending target that no lease can be granted for: it must be deferred, or the rollout would wait for ever. */
export function blockedBecause(
  state: State,
  rollout: Rollout,
  target: TargetState,
  node: NodeState,
): string | undefined {
  if (classOf(rollout, target, node) !== 'pending') return undefined;
  if (node.skippedBy !== undefined) return `skipped by ${node.skippedBy}`;
  if (outcomeOf(node.lease) === 'unknown') return 'unknown: it has not answered and keeps its lease until it does';
  if (node.lease !== undefined) return undefined;
  if (node.report === undefined) return 'it has never reported its config';
  if (node.silent) return 'silent';
  if (node.taken !== undefined) return takenText(node.taken);
  if (state.changes.get(rollout.change)?.validated?.incompatible.includes(node.node) === true)
    return 'the committed state is incompatible with it too';
  if (rollout.phase === 'rolling' && isKnownBad(state, target)) return 'its config is known-bad';
  return undefined;
}

export const isKnownBad = (state: State, target: { readonly to: string; readonly recipe: string }): boolean =>
  state.knownBad.has(target.to) || state.knownBad.has(target.recipe);

/** What a node should be given next, whatever the budgets say; undefined when it needs nothing or must wait. */
export function wantOf(state: State, node: NodeState): Want | undefined {
  if (!node.joined || node.lease !== undefined || !reachable(node)) return undefined;
  const rollout = state.rollouts.get(node.change);
  const target = state.targets.get(targetKey(node.change, node.node));
  if (rollout === undefined || target === undefined || target.left) return wantOutside(state, node);
  if (classOf(rollout, target, node) !== 'pending') return undefined;
  if (blockedBecause(state, rollout, target, node) !== undefined) return undefined;
  switch (rollout.phase) {
    case 'rolling':
      if (rollout.paused) return undefined;
      return { kind: 'forward', change: rollout.change, to: target.to, recipe: target.recipe };
    case 'reverting':
      return { kind: 'rollback', change: rollout.change, to: target.from, recipe: '' };
    case 'complete':
    case 'succeeded':
    case 'reverted':
    case 'superseded':
      return undefined;
  }
}

/** Outside a rollout a node gets the committed config, or has its drift repaired. */
function wantOutside(state: State, node: NodeState): Want | undefined {
  const { desired, report } = node;
  if (desired === undefined || report === undefined) return undefined;
  const want = { change: '', to: desired.hash, recipe: desired.recipe } as const;
  if (report.hash !== desired.hash) return { kind: desired.joining ? 'join' : 'corrective', ...want };
  const repairs = state.pools.get(node.pool)?.drift === 'repair';
  return node.drifted.length > 0 && repairs ? { kind: 'repair', ...want } : undefined;
}

/** What must differ before a node that called `hash` invalid, or was restarted for it in vain, is asked again. */
export const circumstancesOf = (node: NodeState, hash: string): string =>
  JSON.stringify([
    hash,
    node.report?.incarnation,
    node.report?.nonce,
    node.report?.bootId,
    Object.entries(node.labels).sort(),
  ]);
