import type { Reason } from '#libs/contracts';

/** The fragments that a change touches on nodes, as `Kind/name`. */
export interface Touched {
  readonly applied: readonly string[];
  readonly deleted: readonly string[];
}

/** What becomes of a change after its review: it waits for what it refers to, or is rejected if there are reasons. */
export interface Outcome {
  /** What the change waits for, as `Kind/name`; empty if it does not wait. */
  readonly needs: readonly string[];
  /** If it waits, who refers to what. Otherwise every reason to reject it. */
  readonly reasons: readonly Reason[];
}

/** A fact and a view name at most this many. */
const MOST_NEEDS = 16;

/**
 * A change waits if nothing is wrong with it but that its own fragments refer to others that do not exist yet. It does
 * not wait if it takes away what fragments refer to: nobody would bring that back.
 */
export function outcomeOfReview(reasons: readonly Reason[], touched: Touched, strict: boolean): Outcome {
  const [applied, lostKinds] = [new Set(touched.applied), new Set(touched.deleted.map(kindIn))];
  const mayWait = ({ needs, fragment }: Reason): boolean =>
    needs !== undefined && applied.has(fragment) && !lostKinds.has(kindIn(needs));
  if (reasons.length > 0 && !strict && reasons.every(mayWait)) {
    const needs = [...new Set(reasons.flatMap((reason) => reason.needs ?? []))].sort();
    return { needs: needs.slice(0, MOST_NEEDS), reasons };
  }
  return { needs: [], reasons: reasons.map((reason) => (mayWait(reason) ? reason : inUse(reason))) };
}

/** A change that waits for references. Both lists are of `Kind/name`. */
export interface WaitingChange {
  readonly change: string;
  readonly applied: readonly string[];
  readonly needs: readonly string[];
}

/**
 * Adds to missing references which other waiting change has them. If that one waits for what this change applies, no
 * time helps: neither of them can be first.
 */
export function withHolders(
  reasons: readonly Reason[],
  applied: readonly string[],
  waiting: Iterable<WaitingChange>,
): readonly Reason[] {
  const holders = new Map([...waiting].flatMap((one) => one.applied.map((id) => [id, one] as const)));
  return reasons.map((reason) => {
    const holder = holders.get(reason.needs ?? '');
    if (holder === undefined) return reason;
    const circle = circleFrom(holder, new Set(applied), holders);
    const why =
      circle === undefined
        ? `${holder.change} has it, which waits for ${holder.needs.join(', ')}`
        : `${circle.changes.join(' and ')} and this change wait for each other, because ${holder.change} has it and ${circle.last === holder ? '' : `${circle.last.change} `}needs ${circle.need} of this change: publish them as one change`;
    return { ...reason, message: `${reason.message}; ${why}` };
  });
}

interface Circle {
  readonly changes: readonly string[];
  readonly last: WaitingChange;
  readonly need: string;
}

/** The waiting changes from this one to one that needs what is applied. */
function circleFrom(
  first: WaitingChange,
  applied: ReadonlySet<string>,
  holders: ReadonlyMap<string, WaitingChange>,
): Circle | undefined {
  const ways = new Map([[first, [first.change]]]);
  for (const [last, changes] of ways) {
    const need = last.needs.find((id) => applied.has(id));
    if (need !== undefined) return { changes, last, need };
    for (const id of last.needs) {
      const next = holders.get(id);
      if (next !== undefined && !ways.has(next)) ways.set(next, [...changes, next.change]);
    }
  }
  return undefined;
}

/** The kind in `Kind/name`. */
export const kindIn = (id: string): string => id.slice(0, id.indexOf('/'));

/** The fragment refers to something that the change takes away. */
function inUse(reason: Reason): Reason {
  if (reason.needs === undefined) return reason;
  const wayOut = `${reason.fragment} refers to ${reason.needs}: change or delete ${reason.fragment} first, or in the same change`;
  // What is known of a host name is no sentence about the node.
  const lost = kindIn(reason.needs) === 'ResolvedName' ? `the node has no ${reason.needs}` : reason.message;
  return { ...reason, message: `${lost} after this change, and ${wayOut}` };
}
