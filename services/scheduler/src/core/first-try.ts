import { isOpen, type Lease } from './lease.js';
import { isUntouchedBy, nodeOf, type NodeState, type State } from './state.js';

/**
 * A change can be committed although no node has tried it, if all its nodes were deferred. The first node that gets it
 * later then does what a canary does in a rollout: the others wait until it has applied the config, and if it fails,
 * they keep what they have. Nodes with the same fragments (recipe) try together, because their hashes may differ.
 */

/** The node that tries the committed config of `node` before it; undefined if `node` needs to wait for none. */
export function firstToTry(state: State, { node, desired }: NodeState): string | undefined {
  if (desired === undefined || desired.joining || (state.having.get(desired.recipe) ?? 0) > 0) return undefined;
  const trying = state.trying.get(desired.recipe) ?? [];
  const atWork = trying.find((other) => nodeOf(state, other).lease !== undefined);
  const first = atWork ?? trying[0];
  return first === node ? undefined : first;
}

/** Why `node` waits for that node, and what to do if it cannot apply the config. */
export function firstTryText(state: State, first: string): string {
  const { lease, lastLease } = nodeOf(state, first);
  const done = lease ?? lastLease;
  const ended =
    done === undefined || isOpen(done) ? 'it has a lease' : `its lease ended as ${done.because}: ${done.reason}`;
  return (
    `no node has applied the committed config yet, and ${first} tries it first (${ended}); ` +
    `if ${first} cannot apply it, apply a change that corrects it, or set ${first} aside with "sluice take ${first}"`
  );
}

/** Whether the node has an unfinished lease to its desired config, or the last one that it tried has failed. */
export function isTrying(node: NodeState): boolean {
  const { desired, lease, lastLease, joined, taken, skippedBy } = node;
  if (!joined || desired === undefined || desired.joining) return false;
  if (lease !== undefined) return isTryOf(lease, desired.hash) && skippedBy === undefined;
  if (taken !== undefined || skippedBy !== undefined || lastLease === undefined) return false;
  return isTryOf(lastLease, desired.hash) && FAILED.has(lastLease.because) && !isUntouchedBy(node, lastLease.id);
}
/** A forward lease that failed was judged in its rollout: the change was committed all the same. */
const isTryOf = ({ kind, hash }: Lease, desired: string): boolean => kind !== 'forward' && hash === desired;
const FAILED: ReadonlySet<string> = new Set(['invalid', 'failed', 'unknown', 'escalated']);
