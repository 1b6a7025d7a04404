import type { PublishedChange } from '../evidence.js';
import type { Oracle } from './oracle.js';

/** I8 and I10: what was acknowledged is stored as it was sent, and every published change ends exactly once. */
export const ended: Oracle = {
  name: 'I8 I10 ended',
  judge({ facts, published, acknowledged }) {
    const ends = new Map<string, string[]>();
    for (const fact of facts) {
      if (
        fact.type === 'config.committed' ||
        fact.type === 'config.rejected' ||
        fact.type === 'config.deduplicated' ||
        fact.type === 'config.ended'
      )
        ends.set(fact.change, [...(ends.get(fact.change) ?? []), fact.type]);
    }
    const bodies = new Map(published.map(({ change, body }) => [change, contentOf(body)]));
    return [
      ...[...acknowledged]
        .filter(([change, body]) => bodies.get(change) !== contentOf(body))
        .map(([change]) => `${change} was acknowledged, and is not there as it was sent`),
      ...published
        .filter(({ change }) => ends.get(change)?.length !== 1)
        .map(({ change }) => `${change} has ${ends.get(change)?.join(' and ') ?? 'no end'}`),
    ];
  },
};

const contentOf = (body: PublishedChange['body']): string => JSON.stringify([body.apply ?? [], body.delete ?? []]);
