import type { Reason } from '#libs/contracts';

const MOST_LINES = 5;

/** Reasons in one line, as a status and a refusal say them: of which fragment if it is another one, which field, and what is wrong. */
export function wordsOf(reasons: readonly Reason[], id: string): string {
  const lines = reasons
    .slice(0, MOST_LINES)
    .map(({ fragment, field, message }) =>
      [fragment === id ? '' : fragment, field, message].filter((part) => part !== '').join(': '),
    );
  return `${lines.join('; ')}${reasons.length > MOST_LINES ? ` (and ${reasons.length - MOST_LINES} more)` : ''}`;
}
