import { FACTS, isLaterReport, takenReport } from '#libs/contracts';
import type { StoredReport } from '../world/bus.js';
import { Violation, type Oracle } from '../world/world.js';

/** How long it may take until the scheduler has read a report. A turn may take 20 s, and it may need several. */
const READ_MS = 70_000;

/** The last report of a node by its own count, and since when its reports say that it cannot be used. */
interface LastReport {
  readonly stored: StoredReport;
  readonly sinceMs: number | undefined;
}

/**
 * No lease is granted to a target that has said that it cannot be used, and has not taken that back: not once the
 * scheduler has recorded that, nor long after it was stored. What was decided before may reach the ledger much later,
 * if the server is away, so the latter counts only if the scheduler has appended something else since then.
 */
export function unavailableTargets(): Oracle {
  const recorded = new Map<string, string | undefined>();
  const lastReports = new Map<string, LastReport>();
  let read = 0;
  /** When the scheduler appended its last batch, and the one before. */
  let decidedMs = 0;
  let beforeMs = 0;
  const hear = (stored: StoredReport): void => {
    const { report, storedMs } = stored;
    const before = lastReports.get(report.node);
    if (before !== undefined && !isLaterReport(report, before.stored.report)) return;
    const sinceMs = report.unavailable === undefined ? undefined : (before?.sinceMs ?? storedMs);
    lastReports.set(report.node, { stored, sinceMs });
  };
  return {
    name: 'unavailable targets',
    onFact({ bus, clock: { nowMs } }, fact) {
      const report = takenReport(fact);
      if (report !== undefined) recorded.set(report.node, report.unavailable);
      if (FACTS[fact.type].owners.includes('scheduler') && nowMs > decidedMs)
        [beforeMs, decidedMs] = [decidedMs, nowMs];
      if (fact.type !== 'node.lease.granted') return;
      const { lease, node } = fact;
      const reason = recorded.get(node);
      if (reason !== undefined) throw new Violation(`${lease} is granted, but ${node} said: ${reason}`);
      for (; read < bus.reports.length; read++) hear(bus.reports[read] as StoredReport);
      const { sinceMs, stored } = lastReports.get(node) ?? {};
      if (stored !== undefined && sinceMs !== undefined && beforeMs > sinceMs + READ_MS)
        throw new Violation(
          `${lease} is granted ${Math.round((nowMs - sinceMs) / 1_000)} s after ${node} said: ${stored.report.unavailable}`,
        );
    },
  };
}
