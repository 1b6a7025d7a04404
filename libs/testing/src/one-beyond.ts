import type { LeaseKind } from '#libs/contracts';

/** A node that counts against the budget of a pool, as an oracle observes it. */
export interface UnitHolder {
  readonly silent: boolean;
  /** Its lease that is not released; undefined if there is none. `unknown`: the node never reported. */
  readonly lease: { readonly kind: LeaseKind; readonly unknown: boolean } | undefined;
}

/**
 * The exception of I1, for oracles. One node more than the budget may roll back if no other node has a lease, and there
 * would be room without the silent nodes and the nodes that are unknown after a lease that is not a rollback.
 */
export function mayRollBackBeyond(kind: LeaseKind, holders: readonly UnitHolder[], budget: number): boolean {
  const others = holders.filter(({ silent, lease }) =>
    lease === undefined ? !silent : !lease.unknown || lease.kind === 'rollback',
  );
  return kind === 'rollback' && others.length < budget && others.every(({ lease }) => lease === undefined);
}
