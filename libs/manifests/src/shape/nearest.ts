import leven from 'leven';

/** The known word that a misspelt one probably means; undefined if none is similar. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  const lower = word.toLowerCase();
  const [best] = known
    .map((candidate) => ({ candidate, distance: leven(lower, candidate.toLowerCase()) }))
    .filter(({ candidate, distance }) => distance <= mostEdits(Math.max(word.length, candidate.length)))
    .sort((a, b) => a.distance - b.distance);
  return best?.candidate;
}

/** Two exchanged letters are two edits. */
const mostEdits = (length: number): number => (length < 4 ? 1 : Math.max(2, length / 3));

/** The end of a message about an unknown word: a suggestion, and the known words, as in `known fields: …`. */
export function knownWords(word: string, what: string, known: readonly string[]): string {
  // Comparing a long word takes time, and it is not a typo.
  const meant = word.length > MAX_WORD ? undefined : nearest(word, known);
  return `${meant === undefined ? 'known' : `did you mean ${meant}? Known`} ${what}: ${known.join(', ')}`;
}

const MAX_WORD = 64;
