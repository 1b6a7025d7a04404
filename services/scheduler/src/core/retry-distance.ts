/** The first failure waits a minute, each further one twice as long, up to an hour. */
const FIRST_MS = 60_000;
const LONGEST_MS = 3_600_000;
/** And from the third try on up to so much of it longer. */
const SPREAD = 1 / 4;
const TOGETHER = 2;

/**
 * How long a node waits for its next try. What has failed more than twice waits somewhat longer, each node in a way of its own: what fails together because
 * each is in the other's way, as two drains are whose pods have nowhere else to go, would fail together for ever. Chance, but the same for every copy of the fold.
 */
export function retryMs(node: string, tries: number): number {
  const ms = Math.min(FIRST_MS * 2 ** (tries - 1), LONGEST_MS);
  return tries <= TOGETHER ? ms : ms * (1 + SPREAD * drawnFrom(`${node} ${tries}`));
}

/** FNV-1a (Fowler, Noll, Vo) with the finalizer of MurmurHash3, so that names that differ in one letter are far apart; in [0, 1). */
function drawnFrom(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32;
}
