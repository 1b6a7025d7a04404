import type { Reason } from '#libs/contracts';
import { MISSING_VALUE } from '../rendering/bound-texts.js';

/** How many nodes a reason names. The message has the total number. */
const NAMED_NODES = 5;

/**
 * Whether a reason of a review adds something to the problems of rendering. A field that could not be rendered has a
 * value that nobody wrote, so reasons about it do not count. A binding without a value may be used anywhere in its
 * fragment, so nothing in there counts, except what the node cannot do at all.
 */
export function besides(problems: readonly Reason[]): (reason: Reason) => boolean {
  const places = new Set(problems.map(({ fragment, field }) => `${fragment} ${field}`));
  const unfilled = new Set(problems.flatMap(({ fragment, code }) => (code === MISSING_VALUE ? [fragment] : [])));
  const isAboutNode = ({ code, field }: Reason): boolean => code === 'capability' || !field.startsWith('spec');
  return (reason) =>
    !places.has(`${reason.fragment} ${reason.field}`) && (!unfilled.has(reason.fragment) || isAboutNode(reason));
}

/**
 * The reasons that are new compared with the current config. A node that is already incompatible is no reason to reject
 * a change.
 */
export function newReasons(now: readonly Reason[], before: readonly Reason[]): readonly Reason[] {
  if (before.length === 0) return now;
  const known = new Set(before.map(placeOf));
  return now.filter((reason) => !known.has(placeOf(reason)));
}

/** A warning about nodes that a change leaves out, because their configs have these faults already. */
export const leftOut = (faults: readonly Reason[], node: string): readonly Reason[] =>
  faults.map((fault) => ({
    ...fault,
    code: 'incompatible',
    message: `${fault.message}: these nodes do not get the change until that is fixed`,
    nodes: [node],
  }));

const placeOf = ({ fragment, field, code }: Reason): string => JSON.stringify([fragment, field, code]);

/** Merges reasons that are the same for several nodes. */
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
