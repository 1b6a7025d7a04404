import { VERDICTS, type LeaseEndReason, type Verdict } from './enums.js';
import type { Fact, FactOf } from './facts.js';

/** The report that this fact took, in the shape of `node.reported`; undefined if none. An empty `bootId`: unchanged. */
export function takenReport(fact: Fact): Omit<FactOf<'node.reported'>, 'type' | 'v' | 'at'> | undefined {
  if (fact.type === 'node.reported') return fact;
  if (fact.type !== 'node.lease.settled' || fact.report === undefined) return undefined;
  const {
    node,
    lease,
    reason,
    restored,
    because,
    report: { incarnation, nonce, seq, hash, verdict, bootId, reportSequence, notUndone, ...more },
  } = fact;
  const outcome = because === 'escalated' ? 'failed' : verdict === '' && isVerdict(because) ? because : verdict;
  const report = outcome === '' || outcome === 'refused' ? 'announced' : outcome;
  return {
    node,
    report,
    incarnation,
    nonce,
    seq,
    hash: hash === '' ? fact.hash : hash,
    lease,
    verdict: outcome,
    reason: verdict === '' ? reason : '',
    restored,
    bootId,
    fresh: false,
    differences: [],
    notUndone,
    reportSequence,
    leftovers: more.leftovers,
    ...(more.untouched === undefined ? {} : { untouched: more.untouched }),
    ...(more.unavailable === undefined ? {} : { unavailable: more.unavailable }),
  };
}

const isVerdict = (because: LeaseEndReason): because is LeaseEndReason & Verdict =>
  (VERDICTS as readonly string[]).includes(because);

/** The fields that order the reports of one node. */
export interface ReportStamp {
  readonly incarnation: number;
  readonly nonce: number;
  readonly seq: number;
}

/** How far a report may be above the last incarnation of its node. An applier that starts over takes the next one. */
export const MOST_INCARNATION_JUMP = 1_000;

/**
 * Why this report is refused; undefined if it is not. A report with a much higher incarnation would make all later
 * reports of the node's own applier count as old. `known`: the last incarnation; 0 if there is none.
 */
export const refusedJump = ({ node, incarnation }: ReportStamp & { readonly node: string }, lastIncarnation: number) =>
  incarnation <= lastIncarnation + MOST_INCARNATION_JUMP
    ? undefined
    : `incarnation ${incarnation} of ${node} is more than ${MOST_INCARNATION_JUMP} above the last one, ${lastIncarnation}; if it is right, remove the node (sluice remove ${node} --force): its applier then starts over`;

/** Whether report `a` is later. The same incarnation with another nonce is another applier: neither is later. */
export const isLaterReport = (a: ReportStamp, b: ReportStamp): boolean =>
  a.incarnation > b.incarnation || (a.incarnation === b.incarnation && a.nonce === b.nonce && a.seq > b.seq);
