import { countTarget, dropTargets, hasDesired, putNode, reassignAll, recountRollout } from '../indexes.js';
import type { Lease } from '../lease.js';
import {
  targetKey,
  type Change,
  type NodeState,
  type Retry,
  type Rollout,
  type State,
  type TargetState,
} from '../state.js';
import { freeze } from '../frozen-rollout.js';
import { retryMs } from '../retries.js';

/** Changes some fields of a change, if it is known. */
export function patchChange(state: State, name: string, patch: Partial<Change>): void {
  const change = state.changes.get(name);
  if (change !== undefined) state.changes.set(name, { ...change, ...patch });
}

/** The pools in a change apply from the start of its rollout until it ends without being committed. */
export function repool(state: State, name: string, sequence: number): void {
  const change = state.changes.get(name);
  const policies = [...(change?.policies ?? []), ...(change?.policyDeletes ?? [])];
  if (policies.some(({ kind }) => kind === 'Pool')) reassignAll(state, sequence);
}

/** Changes some fields of a target, and updates its tallies. */
export function patchTarget(
  state: State,
  change: string,
  node: string,
  patch: Partial<Pick<TargetState, 'deferred' | 'left' | 'startedBy'>>,
): void {
  const key = targetKey(change, node);
  const target = state.targets.get(key);
  if (target === undefined) return;
  state.targets.set(key, { ...target, ...patch });
  countTarget(state, change, node);
}

/** Changes the lease of a node if it is still the same one. `change` returns undefined if the phase does not match. */
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

/** Changes some fields of a rollout, and updates the tallies of all its targets. */
export function patchRollout(state: State, name: string, sequence: number, patch: Partial<Rollout>): void {
  const rollout = state.rollouts.get(name);
  if (rollout === undefined) return;
  state.rollouts.set(name, { ...rollout, ...patch });
  recountRollout(state, name, sequence);
}

/** Ends a rollout: saves its result and deletes its targets. */
export function drop(state: State, name: string): void {
  freeze(state, name);
  dropTargets(state, name);
}

/**
 * At the end of a rollout, a skipped node that is alive is no longer skipped, and an escalation is forgotten, because
 * the next change may not need a reboot.
 */
export const leftRollout = (node: NodeState): NodeState => ({
  ...node,
  change: undefined,
  escalated: undefined,
  skippedBy: node.silent ? node.skippedBy : undefined,
  deferred: hasDesired(node) ? undefined : node.deferred,
});

/** When a node is tried again. The wait grows with each failure. */
export function laterThan(node: NodeState, readMs: number, restarts = node.retry?.restarts ?? 0): Retry {
  const tries = (node.retry?.kind === 'later' ? node.retry.tries : 0) + 1;
  return { kind: 'later', tries, atMs: readMs + retryMs(node.node, tries), restarts };
}
