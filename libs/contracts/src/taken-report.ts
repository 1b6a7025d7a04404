import type { Fact, FactOf } from './facts.js';

/**
 * The report that was taken by this fact, as `node.reported` gives it, whether it settled a lease or not; undefined for a fact
 * that takes none. An empty `bootId` is the one before.
 */
export function takenReport(fact: Fact): Omit<FactOf<'node.reported'>, 'type' | 'v' | 'at'> | undefined {
  if (fact.type === 'node.reported') return fact;
  if (fact.type !== 'node.lease.settled' || fact.report === undefined) return undefined;
  const {
    node,
    lease,
    reason,
    restored,
    because,
    report: { incarnation, birth, seq, hash, verdict, bootId, reportSequence },
  } = fact;
  const said =
    because === 'escalated'
      ? 'failed'
      : verdict === '' && (because === 'applied' || because === 'invalid' || because === 'failed')
        ? because
        : verdict;
  const report = said === '' || said === 'refused' ? 'announced' : said;
  return {
    node,
    report,
    incarnation,
    birth,
    seq,
    hash: hash === '' ? fact.hash : hash,
    lease,
    verdict: said,
    reason: verdict === '' ? reason : '',
    restored,
    bootId,
    fresh: false,
    what: [],
    reportSequence,
  };
}
