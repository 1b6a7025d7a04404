import type { Action, Drift, LeaseEndReason, DrainOutcome, LeaseKind } from '#libs/contracts';

/** The terms that a lease was granted with. */
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
  /** Takes no unit of the budget. */
  readonly free: boolean;
  /** The node has content of a change that failed: the commands that ran for it are undone, as in a rollback. */
  readonly undo?: boolean | undefined;
  readonly grantedAt: string;
}

/** The node is being drained. */
export interface DrainingLease extends LeaseTerms {
  readonly phase: 'draining';
  /** When this copy read that the phase began, monotonic. */
  readonly sinceMs: number;
  /** The drift that its actions are planned for, too, and whether it may overwrite drift. */
  readonly drift: Drift;
  /** The drain settings as one text, to compare; undefined if unknown. */
  readonly drainTerms: string | undefined;
  /** The pool has `onTimeout: defer`: the rollout continues without a node that is not drained in time. */
  readonly defers: boolean;
  /** What the drain service reported. With an outcome, the drain was stopped and counts as that outcome. */
  readonly drain: 'under-way' | 'done' | { readonly outcome: DrainOutcome; readonly reason: string };
}

/** The applier may change the node. */
export interface ApplyingLease extends LeaseTerms {
  readonly phase: 'applying';
  /** When this copy read that the phase began, monotonic. */
  readonly sinceMs: number;
  /** The drift that its actions are planned for, too, and whether it may overwrite drift. */
  readonly drift: Drift;
}

/** The lease has an outcome. It is released when the node is uncordoned, or when it has answered. */
export interface EndedLease extends LeaseTerms {
  readonly phase: 'settled' | 'uncordoning' | 'uncordoned';
  readonly because: LeaseEndReason;
  readonly reason: string;
  readonly settledAt: string;
  /** A report named this lease after it had ended. */
  readonly answered: boolean;
}

/** The right of one node to change now, until it is released. */
export type Lease = DrainingLease | ApplyingLease | EndedLease;

/** The fields that a lease has in every phase. */
export function termsOf(lease: LeaseTerms): LeaseTerms {
  const { id, pool, change, kind, hash, from, recipe, actions, applyMs, drainMs, free, undo, grantedAt } = lease;
  const terms = { id, pool, change, kind, hash, from, recipe, actions, applyMs, drainMs, free, grantedAt };
  return undo === true ? { ...terms, undo } : terms;
}

export const isOpen = (lease: Lease): lease is DrainingLease | ApplyingLease =>
  lease.phase === 'draining' || lease.phase === 'applying';

/** How a lease ended; undefined while it is open, or if there is none. */
export const outcomeOf = (lease: Lease | undefined): LeaseEndReason | undefined =>
  lease === undefined || isOpen(lease) ? undefined : lease.because;

/** The deadline has passed and the node has not reported since: it keeps its lease until it does. */
export const isUnanswered = (lease: Lease | undefined): boolean =>
  lease !== undefined && !isOpen(lease) && lease.because === 'unknown' && !lease.answered;
