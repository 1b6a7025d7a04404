import type { Reason } from '#libs/contracts';

/** How a config came to be known as bad. */
export interface KnownBadStory {
  readonly hash: string;
  readonly change: string;
  readonly node: string;
  readonly reason: string;
  readonly since: string;
}

/** The one sentence about a known-bad config: of itself, or of one made of the same fragments. */
export function knownBadWords(story: KnownBadStory, isItself: boolean): string {
  const what = isItself
    ? `config ${story.hash.slice(0, 12)}`
    : `a config made of the same fragments as ${story.hash.slice(0, 12)}`;
  const how = `${story.node} reported it as invalid in ${story.change} at ${story.since}: ${story.reason}`;
  return `${what} is known-bad: ${how}; to allow it again: sluice clear ${story.hash.slice(0, 12)} --reason WHY`;
}

/** Why a node is not given a known-bad config, for each fragment that a change touches. There is always one reason. */
export const knownBadReasons = (touched: readonly string[], node: string, message: string): readonly Reason[] =>
  (touched.length === 0 ? [''] : touched).map((fragment) => ({
    fragment,
    field: 'spec',
    code: 'known-bad',
    message,
    nodes: [node],
  }));
