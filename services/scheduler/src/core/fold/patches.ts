import { viewKey } from '#libs/kernel';
import { countTarget, dropTargets, putNode, recountRollout } from '../indexes.js';
import { targetKey, type Change, type Lease, type NodeState, type Retry, type Rollout, type State } from '../state.js';
import { freeze } from '../frozen-rollout.js';
import { retryMs } from '../retry-distance.js';

/** Changes some fields of a change, if it is known. */
export function patchChange(state: State, name: string, patch: Partial<Change>): void {
  const change = state.changes.get(name);
  if (change !== undefined) state.changes.set(name, { ...change, ...patch });
}

/** A lowered budget that a change carries holds from its start to its end: the views of those pools show it. */
export function touchBudgets(state: State, name: string): void {
  for (const { kind, name: pool } of state.changes.get(name)?.policies ?? [])
    if (kind === 'Pool') state.touched.add(viewKey('pools', pool));
}

/** Changes some fields of a target, and counts it anew. */
export function patchTarget(
  state: State,
  change: string,
  node: string,
  patch: { readonly owed?: string; readonly left?: boolean },
): void {
  const key = targetKey(change, node);
  const target = state.targets.get(key);
  if (target === undefined) return;
  state.targets.set(key, { ...target, ...patch });
  countTarget(state, change, node);
}

/** Changes some fields of a node's lease, if it still holds that one. */
export function patchLease(state: State, name: string, lease: string, sequence: number, patch: Partial<Lease>): void {
  const node = state.nodes.get(name);
  if (node?.lease?.id !== lease) return;
  putNode(state, { ...node, lease: { ...node.lease, ...patch } }, sequence);
}

/** Changes some fields of a rollout, and counts all of its targets anew. */
export function patchRollout(state: State, name: string, sequence: number, patch: Partial<Rollout>): void {
  const rollout = state.rollouts.get(name);
  if (rollout === undefined) return;
  state.rollouts.set(name, { ...rollout, ...patch });
  recountRollout(state, name, sequence);
}

/** Its nodes go their own ways from here: what it came to is kept, its targets are not. */
export function drop(state: State, name: string): void {
  freeze(state, name);
  dropTargets(state, name);
}

/** A live node that was skipped is only skipped until the rollout ends; and what it could not be given without a restart may be given in another way next time. */
export const leftRollout = (node: NodeState): NodeState => ({
  ...node,
  change: '',
  escalated: '',
  skippedBy: node.silent ? node.skippedBy : '',
  owed: hasDesired(node) ? '' : node.owed,
});

/** As far as is known: of a node that has not answered its lease, nothing is. */
const hasDesired = (node: NodeState): boolean =>
  node.desired !== undefined &&
  node.report?.hash === node.desired.hash &&
  !(node.lease?.because === 'unknown' && !node.lease.answered);

/** The next try of a node, further away each time. */
export function laterThan(node: NodeState, readMs: number, restarts = node.retry?.restarts ?? 0): Retry {
  const tries = (node.retry?.kind === 'later' ? node.retry.tries : 0) + 1;
  return { kind: 'later', tries, atMs: readMs + retryMs(node.node, tries), restarts };
}
