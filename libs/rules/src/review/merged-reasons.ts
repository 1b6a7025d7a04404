import type { Reason } from '#libs/contracts';

/** So many nodes are named; the message says how many there are. */
const NAMED_NODES = 5;

/**
 * Whether a review's reason says something besides the problems of rendering: a field that could not be rendered holds
 * what nobody wrote.
 */
export function besides(problems: readonly Reason[]): (reason: Reason) => boolean {
  const places = new Set(problems.map(({ fragment, field }) => `${fragment} ${field}`));
  return ({ fragment, field }) => !places.has(`${fragment} ${field}`);
}

/**
 * What is said now and was not said before of the same field: a node that the present does not fit either is no reason
 * to refuse a change.
 */
export function newReasons(now: readonly Reason[], before: readonly Reason[]): readonly Reason[] {
  if (before.length === 0) return now;
  const known = new Set(before.map(placeOf));
  return now.filter((reason) => !known.has(placeOf(reason)));
}

const placeOf = ({ fragment, field, code }: Reason): string => JSON.stringify([fragment, field, code]);

/** Makes one reason of those that say the same of several nodes. */
export function mergeReasons(reasons: Iterable<Reason>): readonly Reason[] {
  const groups = new Map<string, { readonly reason: Reason; readonly nodes: Set<string> }>();
  for (const reason of reasons) {
    const key = JSON.stringify([reason.fragment, reason.field, reason.code, reason.message]);
    const group = groups.get(key) ?? { reason, nodes: new Set() };
    for (const node of reason.nodes) group.nodes.add(node);
    groups.set(key, group);
  }
  return [...groups.values()].map(({ reason, nodes }) => ({
    ...reason,
    message: nodes.size > NAMED_NODES ? `${reason.message} (on ${nodes.size} nodes)` : reason.message,
    nodes: [...nodes].slice(0, NAMED_NODES),
  }));
}
