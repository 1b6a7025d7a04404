import type { Action, Because, DrainOutcome, LeaseKind } from '#libs/contracts';

/** What a lease was granted for. */
interface LeaseTerms {
  readonly id: string;
  readonly pool: string;
  /** Empty for leases outside a rollout. */
  readonly change: string;
  readonly kind: LeaseKind;
  readonly hash: string;
  readonly from: string;
  readonly recipe: string;
  readonly actions: readonly Action[];
  readonly applyMs: number;
  readonly drainMs: number;
  /** Takes no unit of the pool. */
  readonly free: boolean;
  readonly grantedAt: string;
}

/** Its node is drained first. */
export interface DrainingLease extends LeaseTerms {
  readonly phase: 'draining';
  /** When this copy read that the phase began, monotonic. */
  readonly sinceMs: number;
  /** How it is to be drained, as one text to compare; empty where that is not known. */
  readonly drainTerms: string;
  /** Its pool says to go on without a node that cannot be drained in time. */
  readonly defers: boolean;
  /** What the drain service reported; with an outcome it gave the drain up, and that is how it counts. */
  readonly drain: 'under-way' | 'done' | { readonly outcome: DrainOutcome; readonly reason: string };
}

/** Its applier may change the node. */
export interface ApplyingLease extends LeaseTerms {
  readonly phase: 'applying';
  /** When this copy read that the phase began, monotonic. */
  readonly sinceMs: number;
}

/** It has an outcome, and is held until its node is uncordoned, or has answered. */
export interface EndedLease extends LeaseTerms {
  readonly phase: 'settled' | 'uncordoning' | 'uncordoned';
  readonly because: Because;
  readonly reason: string;
  readonly settledAt: string;
  /** A report named it after it had ended. */
  readonly answered: boolean;
}

/** The right of one node to change now, until it is released. */
export type Lease = DrainingLease | ApplyingLease | EndedLease;

/** What holds of a lease in every phase; its phase's own fields are left out. */
export function termsOf(lease: LeaseTerms): LeaseTerms {
  const { id, pool, change, kind, hash, from, recipe, actions, applyMs, drainMs, free, grantedAt } = lease;
  return { id, pool, change, kind, hash, from, recipe, actions, applyMs, drainMs, free, grantedAt };
}

export const isOpen = (lease: Lease): lease is DrainingLease | ApplyingLease =>
  lease.phase === 'draining' || lease.phase === 'applying';

/** How a lease ended; undefined while it is open, and without one. */
export const outcomeOf = (lease: Lease | undefined): Because | undefined =>
  lease === undefined || isOpen(lease) ? undefined : lease.because;

/** Its deadline has passed and its node has not answered since: what the node has is not known. */
export const isUnanswered = (lease: Lease | undefined): boolean =>
  lease !== undefined && !isOpen(lease) && lease.because === 'unknown' && !lease.answered;
