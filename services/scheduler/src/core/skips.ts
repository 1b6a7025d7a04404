import { durationText } from '#libs/manifests';
import type { SchedulerDraft } from './draft.js';
import { isUndecided, settleLease } from './leases.js';
import { nodeOf, poolPolicy, type NodeState } from './state.js';

/** Nobody waits for the node any more, until it is heard or its rollout ends. */
export function skipNode(draft: SchedulerDraft, node: NodeState, by: string, reason: string): void {
  const { node: name, pool, change = '' } = node;
  if (node.skippedBy === undefined || (by !== 'scheduler' && isOtherSkip(node, by, reason)))
    draft.emit({ type: 'node.skipped', node: name, pool, lease: node.lease?.id ?? '', change, by, reason });
  const lease = draft.state.nodes.get(name)?.lease;
  if (lease !== undefined && isUndecided(lease))
    settleLease(draft, name, lease, {
      because: 'skipped',
      reason: reason === '' ? `skipped by ${by}` : reason,
      restored: true,
    });
}

/** Whether a person skips a node that is skipped already, and says more than the last one. */
const isOtherSkip = ({ skippedBy, skippedBecause }: NodeState, by: string, reason: string): boolean =>
  skippedBy === 'scheduler' || (reason !== '' && (skippedBy !== by || skippedBecause !== reason));

/** Skips the nodes that are silent for longer than their pool waits for them. */
export function skipSilent(draft: SchedulerDraft): void {
  for (const pool of draft.state.poolNames()) skipTargets(draft, pool);
  for (const pool of draft.state.pools.keys()) {
    const { ignoreSilentMs } = poolPolicy(draft.state, pool);
    if (ignoreSilentMs === undefined) continue;
    for (const name of [...draft.state.poolSet(pool).silent]) {
      if (draft.full) return;
      const node = nodeOf(draft.state, name);
      const dueMs = node.silentSinceMs + ignoreSilentMs;
      if (node.skippedBy !== undefined) continue;
      if (draft.now.monotonicMs < dueMs) draft.wakeAt(dueMs);
      else skipNode(draft, node, 'scheduler', `silent for ${durationText(ignoreSilentMs)}`);
    }
  }
}

/** Skips silent targets at once, unless their pool says otherwise. One with a lease is skipped once that has ended. */
function skipTargets(draft: SchedulerDraft, pool: string): void {
  if (poolPolicy(draft.state, pool).countsSilentTargets) return;
  for (const name of [...draft.state.poolSet(pool).silentTargets]) {
    if (draft.full) return;
    const node = nodeOf(draft.state, name);
    if (node.lease === undefined)
      skipNode(draft, node, 'scheduler', 'it is silent, and a silent target does not count');
  }
}
