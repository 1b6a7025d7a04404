import leven from 'leven';

/** The known word that a misspelt one most likely means; undefined if none is similar. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  const lower = word.toLowerCase();
  const [best] = known
    .map((candidate) => ({ candidate, distance: leven(lower, candidate.toLowerCase()) }))
    .filter(({ candidate, distance }) => distance <= mostEdits(Math.max(word.length, candidate.length)))
    .sort((a, b) => a.distance - b.distance);
  return best?.candidate;
}

/** Two letters that were exchanged are two edits. */
const mostEdits = (length: number): number => (length < 4 ? 1 : Math.max(2, length / 3));

/** The end of a message about an unknown word: what it may mean, and what there is, as in `known fields: …`. */
export function knownWords(word: string, what: string, known: readonly string[]): string {
  // A long word costs time by its length, and is not misspelt.
  const meant = word.length > MAX_WORD ? undefined : nearest(word, known);
  return `${meant === undefined ? 'known' : `did you mean ${meant}? Known`} ${what}: ${known.join(', ')}`;
}

const MAX_WORD = 64;
