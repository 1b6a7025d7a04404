import { viewKey } from '#libs/engine';
import { countTarget, dropTargets, putNode, recountRollout } from '../indexes.js';
import { isUnanswered, type Lease } from '../lease.js';
import { targetKey, type Change, type NodeState, type Retry, type Rollout, type State } from '../state.js';
import { freeze } from '../frozen-rollout.js';
import { retryMs } from '../retries.js';

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

/** Changes some fields of a target, and counts it again. */
export function patchTarget(
  state: State,
  change: string,
  node: string,
  patch: { readonly deferred?: string; readonly left?: boolean },
): void {
  const key = targetKey(change, node);
  const target = state.targets.get(key);
  if (target === undefined) return;
  state.targets.set(key, { ...target, ...patch });
  countTarget(state, change, node);
}

/** Changes a node's lease, if it still has that one; `change` gives undefined where the lease is in another phase. */
export function changeLease(
  state: State,
  { node: name, lease }: { readonly node: string; readonly lease: string },
  sequence: number,
  change: (lease: Lease) => Lease | undefined,
): void {
  const node = state.nodes.get(name);
  const changed = node?.lease?.id === lease ? change(node.lease) : undefined;
  if (node !== undefined && changed !== undefined) putNode(state, { ...node, lease: changed }, sequence);
}

/** Changes some fields of a rollout, and counts all of its targets again. */
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

/**
 * A live node that was skipped is only skipped until the rollout ends; and what it could not be given without a restart
 * may be given in another way next time.
 */
export const leftRollout = (node: NodeState): NodeState => ({
  ...node,
  change: '',
  escalated: undefined,
  skippedBy: node.silent ? node.skippedBy : undefined,
  deferred: hasDesired(node) ? undefined : node.deferred,
});

/** As far as is known: of a node that has not answered its lease, nothing is. */
const hasDesired = (node: NodeState): boolean =>
  node.desired !== undefined && node.report?.hash === node.desired.hash && !isUnanswered(node.lease);

/** The next try of a node, further away each time. */
export function laterThan(node: NodeState, readMs: number, restarts = node.retry?.restarts ?? 0): Retry {
  const tries = (node.retry?.kind === 'later' ? node.retry.tries : 0) + 1;
  return { kind: 'later', tries, atMs: readMs + retryMs(node.node, tries), restarts };
}
