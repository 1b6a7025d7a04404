import type { LeaseView } from '#libs/contracts';
import type { State } from './state.js';

/**
 * What a lease, as read from the leader, asks of this applier:
 * - `begin` it;
 * - `stale`: it was planned from another hash than the one in force, nothing is done;
 * - `ended` before it was begun: it is never begun, and that is said;
 * - `again`: it was dealt with, and its keeper does not know;
 * - nothing.
 */
export type LeaseDemand = 'begin' | 'stale' | 'ended' | 'again' | 'nothing';

export function leaseDemand(state: State, lease: LeaseView | undefined): LeaseDemand {
  const { journal, memory } = state;
  if (lease === undefined || lease.node !== journal.node || lease.lease === '') return 'nothing';
  const ready = lease.phase === 'applying';
  const ended = !ready && (lease.because === 'unknown' || lease.because === 'skipped' || lease.because === 'left');
  if (lease.lease === journal.lastDealt?.lease) {
    return ready || (ended && memory.status?.lease !== lease.lease) ? 'again' : 'nothing';
  }
  if (ended) return 'ended';
  if (!ready) return 'nothing';
  return lease.from === journal.inForce ? 'begin' : 'stale';
}
