import { isOpen } from './lease.js';
import { isUntouchedBy, nodeOf, type NodeState, type State } from './state.js';

/**
 * A change can be committed although no node has tried it, if all its nodes were deferred. The first node that gets it
 * later then does what a canary does in a rollout: the others wait until it has applied the config, and if it fails,
 * they keep what they have. Nodes with the same fragments (recipe) try together, because their hashes may differ.
 */

/** The node that tries the committed config of `node` before it; undefined if `node` needs to wait for none. */
export function firstToTry(state: State, { node, desired }: NodeState): string | undefined {
  if (desired === undefined || desired.joining || state.having.get(desired.recipe) !== undefined) return undefined;
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

/**
 * The recipe that the node tries: that of its unfinished lease, or of its last one, if that failed and the node still
 * needs it. A forward lease that failed was judged in its rollout: the change was committed all the same.
 */
export function recipeTriedBy(node: NodeState): string | undefined {
  const { desired, lease, lastLease, joined, taken, skippedBy } = node;
  if (!joined || skippedBy !== undefined) return undefined;
  if (lease !== undefined) return lease.kind === 'corrective' ? lease.recipe : undefined;
  if (taken !== undefined || lastLease?.kind !== 'corrective' || lastLease.recipe !== desired?.recipe) return undefined;
  return FAILED.has(lastLease.because) && !isUntouchedBy(node, lastLease.id) ? lastLease.recipe : undefined;
}
const FAILED: ReadonlySet<string> = new Set(['invalid', 'failed', 'unknown', 'escalated']);
