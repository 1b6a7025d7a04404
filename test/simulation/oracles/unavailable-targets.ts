import { FACTS, isLaterReport, takenReport } from '#libs/contracts';
import type { StoredReport } from '../world/bus.js';
import { Violation, type Oracle } from '../world/world.js';

/** The last report of a node by its own count, and the sequence of the first since which they say that. */
interface LastReport {
  readonly stored: StoredReport;
  readonly since: number | undefined;
}

/**
 * No lease is granted to a target that has said that it cannot be used, and has not taken that back: not once the
 * scheduler has recorded that, nor once it has read it and appended something since. What it had decided before may
 * reach the ledger much later, if the server is away.
 */
export function unavailableTargets(): Oracle {
  const recorded = new Map<string, string | undefined>();
  const lastReports = new Map<string, LastReport>();
  let read = 0;
  /** When the scheduler appended its last batch, and the one before. */
  let decidedMs = 0;
  let beforeMs = 0;
  const hear = (stored: StoredReport): void => {
    const { report, sequence } = stored;
    const before = lastReports.get(report.node);
    if (before !== undefined && !isLaterReport(report, before.stored.report)) return;
    const since = report.unavailable === undefined ? undefined : (before?.since ?? sequence);
    lastReports.set(report.node, { stored, since });
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
      const { since, stored } = lastReports.get(node) ?? {};
      const readMs = since === undefined ? undefined : bus.readMs[since - 1];
      if (stored !== undefined && readMs !== undefined && beforeMs > readMs)
        throw new Violation(
          `${lease} is granted ${nowMs - readMs} ms after the scheduler read that ${node} says: ${stored.report.unavailable}`,
        );
    },
  };
}
