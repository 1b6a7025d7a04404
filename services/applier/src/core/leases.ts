import type { LeaseView } from '#libs/contracts';
import { leaseKnown, type State } from './state.js';

/**
 * What to do with a lease that was read from any server:
 * - `begin`: start it;
 * - `stale`: it was planned from another hash than the one in force, so nothing is done;
 * - `early`: it was granted before this boot of the machine was known, so nothing is done;
 * - `ended`: it ended before it was started, so report that and never start it;
 * - `again`: it is finished, and the scheduler does not know, so report again;
 * - otherwise nothing, and also while it may be older than the newest one.
 */
export type LeaseDemand = 'begin' | 'stale' | 'early' | 'ended' | 'again' | 'nothing';

/** How leases end that the node may not have reported. */
const ENDS_WITHOUT_REPORT: ReadonlySet<string> = new Set(['unknown', 'unreachable', 'skipped', 'left']);

export function leaseDemand(state: State, lease: LeaseView | undefined): LeaseDemand {
  const { journal, memory } = state;
  if (lease === undefined || lease.node !== journal.node || lease.lease === '') return 'nothing';
  if (lease.ledger < leaseKnown(state)) return 'nothing';
  const ready = lease.phase === 'applying';
  const ended = !ready && ENDS_WITHOUT_REPORT.has(lease.because);
  if (lease.lease === journal.lastDealt?.lease) {
    return ready || (ended && memory.status?.lease !== lease.lease) ? 'again' : 'nothing';
  }
  if (isReplayed(state, lease)) return 'nothing';
  if (ended) return 'ended';
  if (!ready || !memory.isCurrent || memory.leasesFrom === undefined) return 'nothing';
  if (lease.ledger < memory.leasesFrom) return 'early';
  return lease.from === journal.inForce ? 'begin' : 'stale';
}

/**
 * Whether the lease is older than the last one that this node finished: an old value was written again. If the ledger
 * ends before that lease, it was started over or restored, and its sequences cannot be compared.
 */
function isReplayed({ journal, memory }: State, { ledger }: LeaseView): boolean {
  const lastLedger = journal.lastDealt?.ledger ?? 0;
  return ledger <= lastLedger && (memory.status?.ledger ?? 0) >= lastLedger;
}
