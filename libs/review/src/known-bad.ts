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
  const how = `${story.node} found it invalid in ${story.change} at ${story.since}: ${story.reason}`;
  return `${what} is known to be bad: ${how}; if you know better: sluice forgive ${story.hash.slice(0, 12)} --reason WHY`;
}
