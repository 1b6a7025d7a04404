import { isLaterReport, refusedJump, type LeaseEndReason, type NodeReport, type TakenReport } from '#libs/contracts';
import type { SchedulerDraft } from './draft.js';
import { settleLease } from './leases.js';
import type { Lease } from './lease.js';
import { nodeOf } from './state.js';

/**
 * Handles a report. If it names the lease that the node is applying, it settles that lease. A report for an ended lease
 * settles nothing, but shows which config the node has. A report that is older than the last one changes nothing.
 * Returns why the report is refused; undefined if it is not.
 */
export function takeReport(draft: SchedulerDraft, sequence: number, report: NodeReport): string | undefined {
  if (report.kind === 'progress') return undefined;
  const node = nodeOf(draft.state, report.node);
  if (node.report !== undefined && !isLaterReport(report, node.report)) return undefined;
  const refusal = refusedJump(report, node.report?.incarnation ?? 0);
  if (refusal !== undefined) return refusal;
  const lease = node.lease;
  const verdict = lease?.id === report.lease && lease.phase === 'applying' ? becauseOf(report, lease) : undefined;
  const restored = report.verdict === 'applied' || report.verdict === '' || report.restored;
  // A report that only ends its lease becomes part of `node.lease.settled`. Any other report is a fact of its own.
  const isPart = verdict !== undefined && report.kind === report.verdict;
  if (!isPart) draft.emit({ type: 'node.reported', ...contentOf(report), restored, reportSequence: sequence });
  if (lease !== undefined && verdict !== undefined)
    settleLease(draft, report.node, lease, {
      ...verdict,
      restored,
      ...(isPart ? { report: partOf(sequence, report, lease.hash, verdict.because, node.report?.bootId) } : {}),
    });
  takeHealth(draft, report);
  return undefined;
}

/** Records that other probes of the node fail than before, or that none does. */
function takeHealth(draft: SchedulerDraft, { node, kind, failingProbes }: NodeReport): void {
  if (kind !== 'applied' && kind !== 'probed') return;
  const { pool, failingProbes: before } = nodeOf(draft.state, node);
  if (JSON.stringify(failingProbes) === JSON.stringify(before)) return;
  if (failingProbes.length === 0) draft.emit({ type: 'node.healthy', node, pool });
  else draft.emit({ type: 'node.unhealthy', node, pool, failingProbes });
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
  notUndone,
  untouched,
  unavailable,
  leftovers,
}: NodeReport) => ({
  node,
  report,
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
  notUndone,
  leftovers,
  ...(untouched === undefined ? {} : { untouched }),
  ...(unavailable === undefined ? {} : { unavailable }),
});

/** The fields of a report that the rest of `node.lease.settled` does not contain. */
function partOf(
  reportSequence: number,
  report: NodeReport,
  to: string,
  because: LeaseEndReason,
  knownBoot: string | undefined,
): TakenReport {
  const { incarnation, nonce, seq, hash, verdict, bootId, notUndone, untouched, unavailable, leftovers } = report;
  return {
    incarnation,
    nonce,
    seq,
    hash: hash === to ? '' : hash,
    verdict: verdict === because || because === 'escalated' ? '' : verdict,
    bootId: bootId === knownBoot ? '' : bootId,
    reportSequence,
    notUndone,
    leftovers,
    ...(untouched === undefined ? {} : { untouched }),
    ...(unavailable === undefined ? {} : { unavailable }),
  };
}

/**
 * A failure that asks for a reboot is an escalation, not a failure, unless the lease already had a drain or a reboot.
 * The next lease of the node has both.
 */
const isEscalated = (report: NodeReport, { actions }: Lease): boolean =>
  report.needsRestart && !actions.some(({ kind }) => kind === 'drain' || kind === 'reboot');

function becauseOf(
  report: NodeReport,
  lease: Lease,
): { readonly because: LeaseEndReason; readonly reason: string } | undefined {
  switch (report.verdict) {
    case 'applied':
      if (report.hash === lease.hash) return { because: 'applied', reason: report.reason };
      return { because: 'failed', reason: `it reported applied, but its active config is ${report.hash.slice(0, 12)}` };
    case 'invalid':
      return { because: 'invalid', reason: report.reason };
    case 'failed':
      return { because: isEscalated(report, lease) ? 'escalated' : 'failed', reason: report.reason };
    case 'unreachable':
      return { because: 'unreachable', reason: report.reason };
    case 'refused':
      return { because: 'stale', reason: report.reason };
    case '':
      return undefined;
  }
}
