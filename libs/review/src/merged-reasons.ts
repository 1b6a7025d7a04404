import type { Reason } from '#libs/contracts';

/** So many nodes are named; the message says how many there are. */
export const NAMED_NODES = 5;

/** Whether a review's reason says something besides the problems of rendering: a field that could not be rendered holds what nobody wrote. */
export function besides(problems: readonly Reason[]): (reason: Reason) => boolean {
  const places = new Set(problems.map(({ fragment, field }) => `${fragment} ${field}`));
  return ({ fragment, field }) => !places.has(`${fragment} ${field}`);
}

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
