import { NO_ANSWER } from '../../../services/applier/src/testing/memory-node.js';
import { Violation, type Oracle } from '../world/world.js';

/** Ends that count as failures of the change. */
const FAILURES: readonly string[] = ['failed', 'invalid', 'unknown'];

/** What an applier says if only the time of its lease was over. */
const TOO_LATE = /^(?:not confirmed \d+ ms|nothing was started: \d+ ms is not enough)/;

/** A target that does not answer, or not in time, has not failed: no change is rolled back because of it. */
export const unreachable = (): Oracle => ({
  name: 'unreachable is not failed',
  onFact(world, fact) {
    if (fact.type !== 'node.lease.settled' || world.nodes.get(fact.node)?.isTarget !== true) return;
    // After its deadline it may not count any more, although it is still in the middle of the change.
    if (fact.because === 'unreachable') world.excused.add(fact.node);
    const isAway = fact.reason.startsWith(NO_ANSWER.reason) || (TOO_LATE.test(fact.reason) && !isProbed(fact.reason));
    if (FAILURES.includes(fact.because) && isAway)
      throw new Violation(`${fact.lease} ended as ${fact.because}: ${fact.reason}`);
  },
});

/** A probe that has failed by the deadline is to blame. */
const isProbed = (reason: string): boolean => reason.includes(', because the probe ');
