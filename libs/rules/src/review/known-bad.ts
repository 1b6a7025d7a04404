import { reasonFor, type KnownBadView, type Reason } from '#libs/contracts';

/** Why a config is known-bad. */
export type KnownBadStory = Pick<KnownBadView, 'hash' | 'change' | 'node' | 'reason' | 'since' | 'fleet'>;

/** The message about a known-bad config, or about one that is made of the same fragments. */
export function knownBadWords(story: KnownBadStory, isItself: boolean): string {
  const what = isItself
    ? `config ${story.hash.slice(0, 12)}`
    : `a config made of the same fragments as ${story.hash.slice(0, 12)}`;
  const where = story.fleet === undefined ? story.node : `${story.node} of the fleet ${story.fleet}`;
  const how = `${where} reported it as invalid in ${story.change} at ${story.since}: ${story.reason}`;
  return `${what} is known-bad: ${how}; to allow it again: sluice clear ${story.hash.slice(0, 12)} --reason WHY`;
}

/** The reasons for rejecting a known-bad config: one for each fragment that the change touches, and at least one. */
export const knownBadReasons = (touched: readonly string[], node: string, message: string): readonly Reason[] =>
  (touched.length === 0 ? [''] : touched).map((fragment) =>
    reasonFor({ fragment, field: 'spec', nodes: [node] }, 'known-bad', message),
  );
