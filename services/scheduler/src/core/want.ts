import { durationText } from '#libs/manifests';
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
const reachable = (node: NodeState): boolean => !node.silent && node.taken === undefined && node.skippedBy === '';

/** A lease of the node is on its way, so that what it has may change any moment. */
const underWay = (node: NodeState): boolean =>
  node.lease !== undefined && (node.lease.phase === 'draining' || node.lease.phase === 'ready');

/** Where a target leads now: forward to its `to`, or back to its `from`. */
export const goalOf = (rollout: Pick<Rollout, 'phase'>, target: Pick<TargetState, 'from' | 'to'>): string =>
  rollout.phase === 'reverting' || rollout.phase === 'reverted' ? target.from : target.to;

/** In which class a target counts, judged by what the node has in force. */
export function classOf(rollout: Rollout, target: TargetState, node: NodeState): TargetClass {
  const active = underWay(node);
  if (target.left || !node.joined) return active && node.lease?.change === rollout.change ? 'active' : 'left';
  if (active) return 'active';
  // What it has is not known: its last word was said before the lease that it has not answered.
  if (node.lease?.because === 'unknown' && !node.lease.answered) return target.owed !== '' ? 'owed' : 'pending';
  if (node.report?.hash === goalOf(rollout, target)) return 'settled';
  return target.owed !== '' ? 'owed' : 'pending';
}

/** A pending target that no lease can be granted for: it is to be owed, or the rollout would wait for ever. */
export function stuckBecause(state: State, rollout: Rollout, target: TargetState, node: NodeState): string {
  if (classOf(rollout, target, node) !== 'pending') return '';
  if (node.skippedBy !== '') return `skipped by ${node.skippedBy}`;
  if (node.lease?.because === 'unknown') return 'unknown: it has not answered, and keeps its lease until it does';
  if (node.lease !== undefined) return '';
  if (node.report === undefined) return 'it has never reported what it has';
  if (node.silent) return 'silent';
  if (node.taken !== undefined) return takenText(node.taken);
  if (state.changes.get(rollout.change)?.validated?.unfit.includes(node.node) === true)
    return 'the committed state does not fit it either';
  if (rollout.phase === 'rolling' && isCondemned(state, target)) return 'its config is known to be bad';
  return '';
}

export const isCondemned = (state: State, target: { readonly to: string; readonly recipe: string }): boolean =>
  state.condemned.has(target.to) || state.condemned.has(target.recipe);

/** What a node should be given next, whatever the budgets say; undefined when it needs nothing or must wait. */
export function wantOf(state: State, node: NodeState): Want | undefined {
  if (!node.joined || node.lease !== undefined || !reachable(node)) return undefined;
  const rollout = state.rollouts.get(node.change);
  const target = state.targets.get(targetKey(node.change, node.node));
  if (rollout === undefined || target === undefined || target.left) return wantOutside(state, node);
  if (classOf(rollout, target, node) !== 'pending') return undefined;
  if (stuckBecause(state, rollout, target, node) !== '') return undefined;
  switch (rollout.phase) {
    case 'rolling':
      if (rollout.paused) return undefined;
      return { kind: 'forward', change: rollout.change, to: target.to, recipe: target.recipe };
    case 'reverting':
      return { kind: 'back', change: rollout.change, to: target.from, recipe: '' };
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
    node.report?.birth,
    node.report?.bootId,
    Object.entries(node.labels).sort(),
  ]);
