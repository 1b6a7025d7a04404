import { SILENT_AFTER_MS } from '../world/services.js';
import { Violation, type Oracle, type World } from '../world/world.js';

/** How long a decision that is based on earlier messages may take to reach the ledger. */
const DECIDED_MS = 20_000;

/** A node that has reported is not recorded as silent before it has been silent for long enough. */
export const signsOfLife: Oracle = {
  name: 'signs of life',
  onFact(world, fact) {
    if (fact.type !== 'node.silent') return;
    const reportedMs = world.reportedMs.get(fact.node);
    if (reportedMs === undefined || !listenedSince(world, reportedMs)) return;
    const agoMs = world.clock.nowMs - reportedMs;
    if (agoMs > DECIDED_MS && agoMs < SILENT_AFTER_MS)
      throw new Violation(`${fact.node} is said to be silent ${Math.round(agoMs / 1_000)} s after it reported`);
  },
};

/** Each copy that may have recorded it has led, with a connection, since then. */
function listenedSince(world: World, sinceMs: number): boolean {
  const agoMs = world.clock.nowMs - sinceMs;
  return world
    .serving('inventory')
    .every(
      ({ connected, leading, leadingSinceMs, monotonicMs }) =>
        connected && (!leading || (leadingSinceMs !== undefined && monotonicMs - leadingSinceMs > agoMs)),
    );
}
