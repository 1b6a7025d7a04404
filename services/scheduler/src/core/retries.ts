import type { SchedulerDraft } from './draft.js';

import type { State } from './state.js';

/**
 * The nodes whose next try is due. Time alone changes no fold, so they stand in no queue: they are put into one here,
 * for this decision, in the order in which their time came.
 */
export function dueNodes(state: State, draft: SchedulerDraft): readonly string[] {
  const due: { readonly node: string; readonly atMs: number }[] = [];
  for (const name of state.backingOff) {
    const node = state.nodes.get(name);
    if (node?.retry?.kind !== 'later') continue;
    if (node.retry.atMs <= draft.now.monotonicMs) due.push({ node: name, atMs: node.retry.atMs });
    else draft.wakeAt(node.retry.atMs);
  }
  // Sorting is stable: those whose time came at once stay in the order of their names.
  return due.sort((a, b) => a.atMs - b.atMs).map((one) => one.node);
}
