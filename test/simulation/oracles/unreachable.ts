import { NO_ANSWER } from '../../../services/applier/src/testing/memory-node.js';
import { Violation, type Oracle } from '../world/world.js';

/** Ends that count as failures of the change. */
const FAILURES: readonly string[] = ['failed', 'invalid', 'unknown'];

/** A target that does not answer has not failed: no change is rolled back because of it. */
export const unreachable = (): Oracle => ({
  name: 'unreachable is not failed',
  onFact(world, fact) {
    if (fact.type !== 'node.lease.settled' || world.nodes.get(fact.node)?.isTarget !== true) return;
    // After its deadline it may not count any more, although it is still in the middle of the change.
    if (fact.because === 'unreachable') world.excused.add(fact.node);
    if (FAILURES.includes(fact.because) && fact.reason.startsWith(NO_ANSWER.reason))
      throw new Violation(`${fact.lease} ended as ${fact.because}: ${fact.reason}`);
  },
});
