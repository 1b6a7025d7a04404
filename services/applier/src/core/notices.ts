import type { LeaseView } from '#libs/contracts';
import { driftChecked } from './drift.js';
import { finished } from './health.js';
import type { Notice } from './ports.js';
import { boundedUnavailable } from './reports.js';
import { newer, noteStatus, remember, VIEW_LAG_MS, type Memory, type State } from './state.js';

/** Handles a notice, which only changes what is read next, or what is known of the node's health. */
export function hear(state: State, notice: Notice, nowMs: number): State {
  const { memory } = state;
  switch (notice.kind) {
    case 'lease':
      if (notice.lease.phase !== 'applying') return ended(state, notice.lease);
      return remember(state, { leaseDueMs: nowMs, leasePushed: Math.max(memory.leasePushed, notice.lease.ledger) });
    case 'status':
      return noteStatus(
        remember(state, { status: newer(memory.status, notice.status), ...laterView(memory, nowMs + VIEW_LAG_MS) }),
        nowMs,
      );
    case 'connected':
      return remember(state, {
        // Another ledger may have replaced the previous one.
        status: undefined,
        leasePushed: 0,
        ...(notice.mayLag ? { isCurrent: false, announce: true } : {}),
        leaseDueMs: nowMs,
        statusDueMs: nowMs,
        bus: { failures: 0, retryAtMs: nowMs },
        reportRetry: { count: memory.reportRetry.count, dueMs: nowMs },
      });
    case 'probed': {
      const isLate = notice.round !== memory.health.round;
      return isLate ? state : remember(state, { health: finished(memory.health, notice.results, nowMs) });
    }
    case 'compared': {
      const isLate = notice.round !== memory.drift.round || !memory.drift.isRunning;
      if (isLate) return state;
      const { left = memory.drift.left } = notice;
      return driftChecked(remember(state, { drift: { ...memory.drift, left } }), notice.differences, nowMs);
    }
    case 'answers':
      return remember(state, {
        unavailable: undefined,
        repair: { count: 0, dueMs: nowMs },
        drift: { ...memory.drift, dueMs: nowMs },
        leaseDueMs: nowMs,
      });
    case 'unavailable':
      return remember(state, { unavailable: boundedUnavailable(notice.reason) });
    case 'changed':
      return remember(state, { drift: { ...memory.drift, dueMs: nowMs } });
    case 'self':
      return {
        ...state,
        self: { ...state.self, labels: notice.labels, capabilities: notice.capabilities },
        memory: { ...memory, announce: true },
      };
  }
}

/** A pushed lease that is not in the phase `applying` starts nothing, so it may be used without reading it. */
const ended = (state: State, lease: LeaseView): State =>
  lease.ledger > (state.memory.lease?.ledger ?? 0) ? remember(state, { lease, viewRetry: undefined }) : state;

/** The status has changed, so the view of the lease may follow in a moment. */
const laterView = ({ viewRetry, leaseDueMs }: Memory, dueMs: number): Partial<Memory> =>
  viewRetry === undefined || viewRetry.dueMs >= dueMs
    ? {}
    : { viewRetry: { ...viewRetry, dueMs }, leaseDueMs: Math.min(leaseDueMs, dueMs) };
