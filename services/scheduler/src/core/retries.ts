import type { SchedulerDraft } from './draft.js';
import type { State } from './state.js';

/**
 * The nodes whose next try is due, in the order in which they became due. Time does not change the fold, so these nodes
 * are in no queue: each decision sorts them here.
 */
export function dueNodes(state: State, draft: SchedulerDraft): readonly string[] {
  const due: { readonly node: string; readonly atMs: number }[] = [];
  for (const name of state.backingOff) {
    const node = state.nodes.get(name);
    if (node?.retry?.kind !== 'later') continue;
    if (node.retry.atMs <= draft.now.monotonicMs) due.push({ node: name, atMs: node.retry.atMs });
    else draft.wakeAt(node.retry.atMs);
  }
  // Sorting is stable: nodes that are due at the same time stay in the order of their names.
  return due.sort((a, b) => a.atMs - b.atMs).map((one) => one.node);
}

/** The wait is one minute after the first failure and doubles with each further one, up to an hour. */
const FIRST_MS = 60_000;
const LONGEST_MS = 3_600_000;
/** From the third try on, the wait is longer by up to this share. */
const SPREAD = 1 / 4;
const TOGETHER = 2;

/**
 * How long a node waits before its next try. After two failures, each node waits a different time. Without that, nodes
 * that block each other would fail together forever, for example two drains whose pods have nowhere else to go. The
 * jitter is derived from the name of the node, so it is the same in every copy of the fold.
 */
export function retryMs(node: string, tries: number): number {
  const ms = Math.min(FIRST_MS * 2 ** (tries - 1), LONGEST_MS);
  return tries <= TOGETHER ? ms : ms * (1 + SPREAD * drawnFrom(`${node} ${tries}`));
}

/**
 * FNV-1a (Fowler, Noll, Vo) with the finalizer of MurmurHash3, so that names that differ in one letter are far apart;
 * in [0, 1).
 */
function drawnFrom(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32;
}
