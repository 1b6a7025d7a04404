import { type Fragment, type Reason } from '#libs/contracts';
import {
  effectivePolicy,
  planActions,
  labelsIn,
  renderNode,
  type FragmentIndex,
  besides,
  boundReasons,
  mergeReasons,
  newReasons,
  reviewActions,
  reviewConfig,
  reviewWarnings,
} from '#libs/rules';
import { isPolicyKind, selectorOf, type NodeSelector } from '#libs/manifests';
import { NO_DIGEST } from './known-bad.js';
import type { ObservedNode } from './node-table.js';
import type { DesiredState } from './desired-state.js';

/**
 * So many unlike groups of nodes are looked at, the largest first: each is a review of its own, and somebody waits for
 * the answer.
 */
const MOST_GROUPS = 24;

/**
 * What a review would say of a fragment besides all else that is wanted now. Nodes that are alike are looked at once;
 * what rests on a value that each node has of its own, as on a name in a path, is seen by the review proper alone.
 */
export function previewReview(id: string, now: Fragment | undefined, wanted: DesiredState): readonly Reason[] {
  const before = wanted.get(id);
  const states = [before, now].filter(
    (fragment) => fragment !== undefined && !isPolicyKind(fragment.kind),
  ) as readonly Fragment[];
  if (states.length === 0) return [];
  const after = wanted.with(id, now);
  const groups = wanted.nodes.alike(selectorsOf(states), labelsAsked(id, after));
  const policies = [...wanted.ofKind('DisruptionPolicy')];
  const largest = [...groups].sort((a, b) => b.length - a.length).slice(0, MOST_GROUPS);
  return boundReasons(mergeReasons(largest.flatMap((nodes) => ofGroup(nodes, id, after, wanted, policies))));
}

/** Most edits leave the selector as it is. */
const selectorsOf = (states: readonly Fragment[]): readonly NodeSelector[] => [
  ...new Map(states.map(selectorOf).map((selector) => [JSON.stringify(selector), selector])).values(),
];

/** Those of its own templates first: what others ask for decides only whether a node can be rendered at all. */
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
  const old = renderNode(before.forNode(labels), node, NO_DIGEST);
  // An index of this one question: what is digested in it stays in it.
  const now = renderNode(after.forNode(labels), node, knownBad.digestBy(digest));
  const reviewed = { name, capabilities };
  const problems = newReasons(now.reasons, old.reasons);
  // A node that cannot be rendered for other reasons keeps what it has, and is no target.
  if (now.reasons.length > 0 && problems.length === 0) return [];
  const { actions } = planActions(old.config, now.config, effectivePolicy(policies, labels));
  const found = [
    ...problems,
    ...[
      ...newReasons(reviewConfig(now.config, reviewed), reviewConfig(old.config, reviewed)),
      ...reviewActions(actions, capabilities),
    ].filter(besides(problems)),
    ...(now.reasons.length > 0 || now.text === old.text ? [] : knownBad.reasons(id, now)),
    ...newReasons(reviewWarnings(now.config, reviewed), reviewWarnings(old.config, reviewed)),
  ];
  const names = nodes.map((one) => one.name);
  return found.map((reason) => ({ ...reason, nodes: names }));
}
