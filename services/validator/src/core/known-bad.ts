import type { Draft } from '#libs/engine';
import type { Input, ReviewNeed } from './inputs.js';
import type { State, UnjudgedLease } from './state.js';

/**
 * Judges each recorded `invalid` of a forward lease once. The config becomes known-bad, unless another node or rollout
 * shows that it works: then it is cleared, because the node is to blame.
 */
export function judgeAll(draft: Draft<State, Input, ReviewNeed>): void {
  const all = [...draft.state.unjudged.values()].sort((a, b) => a.sequence - b.sequence);
  for (const one of all) {
    if (draft.full) return;
    const clearedBecause = whyCleared(draft.state, one);
    const { sequence: _, ...lease } = one;
    const knownBad = clearedBecause === undefined;
    draft.emit({ type: 'config.judged', ...lease, knownBad, clearedBecause: clearedBecause ?? '' });
  }
}

/** Why a config is cleared; undefined if it is known-bad. */
export function whyCleared(state: State, { hash }: Pick<UnjudgedLease, 'hash'>): string | undefined {
  for (const [node, committed] of state.committed.entries())
    if (committed === hash) return `it is the committed config of ${node}`;
  const targeted = new Set<string>();
  for (const [change, { targets, complete }] of state.rollouts.entries()) {
    for (const [node, target] of Object.entries(targets)) {
      targeted.add(node);
      if (target.from === hash) return `it is the last good config of ${node}`;
      if (complete && target.to === hash) return `it is the config of ${node} in ${change}, which is complete`;
    }
  }
  for (const [node, inForce] of state.inForce.entries())
    if (inForce === hash && !targeted.has(node)) return `it is the last good config of ${node}`;
  return undefined;
}
