import { Violation, type Oracle } from '../world/world.js';

/**
 * No node starts a lease that had ended before its applier started, or connected to its server: the server may be cut
 * off from the others, and show what was true long ago.
 */
export function noOldLeases(): Oracle {
  /** When each lease ended. */
  const ended = new Map<string, number>();
  /** The lease that each node works on. */
  const works = new Map<string, string | undefined>();
  return {
    name: 'no old leases',
    onFact(world, fact) {
      if (fact.type === 'node.lease.settled') ended.set(fact.lease, world.clock.nowMs);
    },
    onJournal(_world, node, { work }) {
      const before = works.get(node.name);
      works.set(node.name, work?.lease);
      if (work === undefined || work.lease === before || work.lease === node.revived) return;
      const endedMs = ended.get(work.lease);
      if (endedMs !== undefined && endedMs < node.contactMs)
        throw new Violation(`${node.name} starts ${work.lease}, which ended before it connected to its server`);
    },
  };
}
