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

/** The first failure waits a minute, each further one twice as long, up to an hour. */
const FIRST_MS = 60_000;
const LONGEST_MS = 3_600_000;
/** And from the third try on up to so much of it longer. */
const SPREAD = 1 / 4;
const TOGETHER = 2;

/**
 * How long a node waits for its next try. What has failed more than twice waits somewhat longer, each node in a way of
 * its own: what fails together because each is in the other's way, as two drains are whose pods have nowhere else to
 * go, would fail together for ever. Chance, but the same for every copy of the fold.
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
