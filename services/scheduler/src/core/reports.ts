import { isLaterReport, type Because, type NodeReport, type TakenReport } from '#libs/contracts';
import type { SchedulerDraft } from './draft.js';
import { settleLease } from './leases.js';
import type { Lease } from './lease.js';
import { nodeOf } from './state.js';

/**
 * Takes a report: it settles the lease that it names if that is the node's and ready, and is recorded either way. One
 * that is older than what was taken changes nothing; one for an ended lease settles nothing but tells what the node
 * has.
 */
export function takeReport(draft: SchedulerDraft, sequence: number, report: NodeReport): void {
  if (report.kind === 'progress') return;
  const node = nodeOf(draft.state, report.node);
  if (node.report !== undefined && !isLaterReport(report, node.report)) return;
  const lease = node.lease;
  const verdict = lease?.id === report.lease && lease.phase === 'applying' ? becauseOf(report, lease) : undefined;
  const restored = report.verdict === 'applied' || report.verdict === '' || report.restored;
  // One that says nothing but how its lease ended is a part of that fact; others are facts of their own, before it.
  const isPart = verdict !== undefined && report.kind === report.verdict;
  if (!isPart) draft.emit({ type: 'node.reported', ...contentOf(report), restored, reportSequence: sequence });
  if (lease === undefined || verdict === undefined) return;
  settleLease(draft, report.node, lease, {
    ...verdict,
    restored,
    ...(isPart ? { report: partOf(sequence, report, lease.hash, verdict.because, node.report?.bootId) } : {}),
  });
}

const contentOf = ({
  node,
  kind: report,
  incarnation,
  nonce,
  seq,
  hash,
  lease,
  verdict,
  reason,
  bootId,
  fresh,
  differences,
}: NodeReport) => ({ node, report, incarnation, nonce, seq, hash, lease, verdict, reason, bootId, fresh, differences });

/** What of a report the settled lease does not say itself. */
function partOf(
  reportSequence: number,
  report: NodeReport,
  to: string,
  because: Because,
  knownBoot: string | undefined,
): TakenReport {
  const { incarnation, nonce, seq, hash, verdict, bootId } = report;
  return {
    incarnation,
    nonce,
    seq,
    hash: hash === to ? '' : hash,
    verdict: verdict === because || because === 'escalated' ? '' : verdict,
    bootId: bootId === knownBoot ? '' : bootId,
    reportSequence,
  };
}

/**
 * A failure for want of a restart is none yet, unless the lease had one or drained for it: the next lease of that node
 * has both.
 */
const isEscalated = (report: NodeReport, { actions }: Lease): boolean =>
  report.needsRestart && !actions.some(({ kind }) => kind === 'drain' || kind === 'reboot');

function becauseOf(
  report: NodeReport,
  lease: Lease,
): { readonly because: Because; readonly reason: string } | undefined {
  switch (report.verdict) {
    case 'applied':
      if (report.hash === lease.hash) return { because: 'applied', reason: report.reason };
      return { because: 'failed', reason: `it reported applied, but has ${report.hash.slice(0, 12)} in force` };
    case 'invalid':
      return { because: 'invalid', reason: report.reason };
    case 'failed':
      return { because: isEscalated(report, lease) ? 'escalated' : 'failed', reason: report.reason };
    case 'refused':
      return { because: 'stale', reason: report.reason };
    case '':
      return undefined;
  }
}
