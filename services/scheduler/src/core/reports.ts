import type { Because, NodeReport } from '#libs/contracts';
import type { SchedulerDraft } from './draft.js';
import { nodeOf } from './indexes.js';

import { settleLease } from './leases.js';
import type { Report } from './state.js';

/**
 * Takes a report: it is recorded, and settles the lease that it names if that is the node's and ready. One that is older
 * than what was taken changes nothing; one for an ended lease settles nothing but tells what the node has.
 */
export function takeReport(draft: SchedulerDraft, sequence: number, report: NodeReport): void {
  if (report.kind === 'progress') return;
  const node = nodeOf(draft.state, report.node);
  if (!isNewer(report, node.report)) return;
  const lease = node.lease;
  const verdict = lease?.id === report.lease && lease.phase === 'ready' ? becauseOf(report, lease.hash) : undefined;
  draft.emit({
    type: 'node.reported', node: report.node, report: report.kind, incarnation: report.incarnation, birth: report.birth, seq: report.seq, hash: report.hash,
    lease: report.lease, verdict: report.verdict, reason: report.reason, restored: report.verdict === 'applied' || report.verdict === '' || report.restored,
    bootId: report.bootId, fresh: report.fresh, what: report.what, reportSequence: sequence,
  });
  if (lease !== undefined && verdict !== undefined) settleLease(draft, report.node, verdict.because, verdict.reason, report.restored);
}

/** A lower incarnation never counts; the same number with another birth is somebody else; within it `seq` orders. */
function isNewer(report: NodeReport, last: Report | undefined): boolean {
  if (last === undefined || report.incarnation > last.incarnation) return true;
  return report.incarnation === last.incarnation && report.birth === last.birth && report.seq > last.seq;
}

function becauseOf(report: NodeReport, to: string): { readonly because: Because; readonly reason: string } | undefined {
  switch (report.verdict) {
    case 'applied':
      if (report.hash === to) return { because: 'applied', reason: '' };
      return { because: 'failed', reason: `it says applied, but has ${report.hash.slice(0, 12)} in force` };
    case 'invalid':
    case 'failed':
      return { because: report.verdict, reason: report.reason };
    case 'refused':
      return { because: 'stale', reason: report.reason };
    case '':
      return undefined;
  }
}
