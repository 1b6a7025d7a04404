import { answered, refused, type Answer } from '#libs/engine';
import type { SchedulerDraft } from './draft.js';
import { isUnavailable, poolBudget } from './indexes.js';
import type { Request } from './inputs.js';
import { holdersText } from './views.js';
import { takenText } from './want.js';

/**
 * Takes a node out of service for another tool. I1 holds as for a lease: the unavailable nodes of the pool, including
 * this one, do not exceed its budget. A node with a lease cannot be taken, and a taken node gets no lease.
 */
export function takeUnit(
  draft: SchedulerDraft,
  { node: name, pool = '', owner, reason, by, forMs = 0 }: Request & { readonly op: 'pool.take' },
): Answer {
  const { state } = draft;
  const node = state.nodes.get(name);
  if (node === undefined || !node.joined) return refused('not-found', `node ${name} is not in the fleet`);
  if (pool !== '' && pool !== node.pool) return refused('conflict', `${name} is in pool ${node.pool}, not ${pool}`);
  if (node.taken !== undefined && node.taken.owner !== owner)
    return refused('conflict', `${name} is ${takenText(node.taken)}`);
  if (node.lease !== undefined)
    return refused('conflict', `${name} has the lease ${node.lease.id}: try again when it is released`);
  if (node.taken === undefined) {
    const { unavailable } = state.poolSet(node.pool);
    const budget = poolBudget(state, node.pool);
    if (!isUnavailable(node) && unavailable.size >= budget)
      return refused(
        'no-room',
        `the budget of pool ${node.pool} is used up: ${unavailable.size} unavailable, ${budget} allowed: ${holdersText(draft.state, [...unavailable])}`,
      );
  }
  const why = reason === '' ? (node.taken?.reason ?? '') : reason;
  // The owner may extend the time, or take the node for good: that is a new fact, and the time starts over.
  if (node.taken === undefined || node.taken.forMs !== forMs || forMs > 0 || node.taken.reason !== why)
    draft.emit({ type: 'node.taken', node: name, pool: node.pool, owner, reason: why, by, forMs });
  return answered({ node: name, pool: node.pool, owner, taken: true });
}

/** Puts a node back into service; only the owner that took it can give it back. `returned`: whether it was taken. */
export function giveUnit(
  draft: SchedulerDraft,
  { node: name, owner, by }: Request & { readonly op: 'pool.give' },
): Answer {
  const node = draft.state.nodes.get(name);
  if (node === undefined) return refused('not-found', `node ${name} not found`);
  if (node.taken !== undefined && node.taken.owner !== owner)
    return refused('conflict', `${name} is ${takenText(node.taken)}; only that owner can give it back, not ${owner}`);
  const returned = node.taken !== undefined;
  if (returned) draft.emit({ type: 'node.returned', node: name, pool: node.pool, owner, by, expired: false });
  return answered({ node: name, pool: node.pool, owner, taken: false, returned });
}

/** Gives back every node whose time is over. */
export function giveExpired(draft: SchedulerDraft): void {
  for (const name of [...draft.state.borrowed]) {
    if (draft.full) return;
    const node = draft.state.nodes.get(name);
    if (node?.taken === undefined) continue;
    const { owner, sinceMs, forMs } = node.taken;
    if (draft.now.monotonicMs >= sinceMs + forMs)
      draft.emit({ type: 'node.returned', node: name, pool: node.pool, owner, by: 'scheduler', expired: true });
    else draft.wakeAt(sinceMs + forMs);
  }
}
