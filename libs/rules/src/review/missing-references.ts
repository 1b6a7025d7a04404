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

/** The kind in `Kind/name`. */
export const kindIn = (id: string): string => id.slice(0, id.indexOf('/'));

/** The fragment refers to something that the change takes away. */
function inUse(reason: Reason): Reason {
  if (reason.needs === undefined) return reason;
  const wayOut = `${reason.fragment} refers to ${reason.needs}: change or delete ${reason.fragment} first, or in the same change`;
  return { ...reason, message: `${reason.message} after this change, and ${wayOut}` };
}
