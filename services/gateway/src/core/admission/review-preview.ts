import { READS_OBJECTS, type Fragment, type Reason } from '#libs/contracts';
import {
  effectivePolicy,
  planActions,
  labelsIn,
  renderNode,
  type BoundNode,
  type FragmentIndex,
  besides,
  boundReasons,
  mergeReasons,
  newReasons,
  outcomeOfReview,
  reviewActions,
  reviewConfig,
  reviewWarnings,
} from '#libs/rules';
import { isNodeKind, selectorOf, type NodeSelector } from '#libs/manifests';
import { NO_DIGEST } from './known-bad.js';
import type { ObservedNode } from './node-table.js';
import type { DesiredState } from './desired-state.js';

/**
 * How many groups of different nodes are checked, the largest first. Each needs a review of its own, and somebody is
 * waiting for the answer.
 */
const MOST_GROUPS = 24;

/**
 * What a review would say about a fragment, given the rest of the desired state. Equal nodes are checked once. Errors
 * that depend on a value that differs between nodes, such as a name in a path, are found only by the real review.
 */
export function previewReview(id: string, now: Fragment | undefined, desired: DesiredState): readonly Reason[] {
  const before = desired.get(id);
  const states = [before, now].filter(
    (fragment) => fragment !== undefined && isNodeKind(fragment.kind),
  ) as readonly Fragment[];
  if (states.length === 0) return [];
  const after = desired.with(id, now);
  const groups = desired.nodes.alike(selectorsOf(states), labelsAsked(id, after));
  const policies = [...desired.ofKind('DisruptionPolicy')];
  const largest = [...groups].sort((a, b) => b.length - a.length).slice(0, MOST_GROUPS);
  const found = mergeReasons(largest.flatMap((nodes) => ofGroup(nodes, id, after, desired, policies)));
  const touched = now === undefined ? { applied: [], deleted: [id] } : { applied: [id], deleted: [] };
  return boundReasons(outcomeOfReview(found, touched, false).reasons);
}

/** Most edits do not change the selector. */
const selectorsOf = (states: readonly Fragment[]): readonly NodeSelector[] => [
  ...new Map(states.map(selectorOf).map((selector) => [JSON.stringify(selector), selector])).values(),
];

/**
 * The labels that its own templates need first. Those of other fragments only decide whether a node can be rendered at
 * all.
 */
const labelsAsked = (id: string, { all }: FragmentIndex): readonly string[] => [
  ...new Set([...all.filter((one) => one.id === id), ...all].flatMap(({ template }) => labelsIn(template))),
];

function ofGroup(
  nodes: readonly ObservedNode[],
  id: string,
  after: FragmentIndex,
  { all: before, knownBad, digest }: DesiredState,
  policies: readonly Fragment[],
): readonly Reason[] {
  const [node] = nodes as readonly [ObservedNode];
  const { name, labels, capabilities } = node;
  const readsObjects = capabilities.includes(READS_OBJECTS);
  const nodeIn = (index: FragmentIndex): BoundNode => ({ name, labels, values: index.valuesOf(name), readsObjects });
  const old = renderNode(before.forNode(labels), nodeIn(before), NO_DIGEST);
  // An index for this request only: it keeps every digest that is computed.
  const now = renderNode(after.forNode(labels), nodeIn(after), knownBad.digestBy(digest));
  const reviewed = { name, capabilities };
  const problems = newReasons(now.reasons, old.reasons);
  // A node that cannot be rendered for other reasons keeps its config, and is not a target.
  if (now.reasons.length > 0 && problems.length === 0) return [];
  const plan = planActions(old.config, now.config, effectivePolicy(policies, labels));
  const found = [
    ...problems,
    ...[
      ...newReasons(reviewConfig(now.config, reviewed), reviewConfig(old.config, reviewed)),
      ...reviewActions(plan, capabilities),
    ].filter(besides(problems)),
    ...(now.reasons.length > 0 || now.text === old.text ? [] : knownBad.reasons(id, now)),
    ...newReasons(reviewWarnings(now.config, reviewed), reviewWarnings(old.config, reviewed)),
  ];
  const names = nodes.map((one) => one.name);
  return found.map((reason) => ({ ...reason, nodes: names }));
}
