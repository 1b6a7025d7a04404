import { EMPTY_CONFIG, reasonFor, type Config, type Fragment, type Reason, type Targets } from '#libs/contracts';
import { PAUSE, type Steps } from '#libs/engine';
import {
  effectivePolicy,
  planActions,
  leftOut,
  mergeReasons,
  newReasons,
  reviewActions,
  reviewConfig,
  reviewWarnings,
  type ReviewedNode,
} from '#libs/rules';
import type { ReviewResult } from './inputs.js';

/** The inputs of a review, gathered beforehand. */
export interface Material {
  /** Undefined if the blob is missing. */
  config(hash: string): Config | undefined;
  capabilities(node: string): readonly string[];
  labels(node: string): Readonly<Record<string, string>>;
  /** Objects that a config refers to and that are not in the object store, by sha256. */
  readonly missingObjects: ReadonlySet<string>;
  /** The `DisruptionPolicy` fragments that would apply to the leases of this change. */
  readonly policies: readonly Fragment[];
}

/**
 * Reviews every target of a change. A node whose current config has the same faults is incompatible, which is a warning
 * and no reason to reject the change. Pauses after each node.
 */
export function* reviewTargets(
  targets: Targets,
  material: Material,
): Steps<ReviewResult & { readonly did: 'review-change' }> {
  const reasons: Reason[] = [];
  const warnings: Reason[] = [];
  const incompatible: string[] = [];
  for (const [node, target] of Object.entries(targets)) {
    yield PAUSE;
    const config = material.config(target.to);
    if (config === undefined) {
      reasons.push(missing(node, target.to));
      continue;
    }
    const reviewed = reviewedNode(node, material);
    const from = target.from === '' ? undefined : material.config(target.from);
    const found = reviewConfig(config, reviewed);
    const fresh = newReasons(found, from === undefined ? [] : reviewConfig(from, reviewed));
    const plan = planActions(from ?? EMPTY_CONFIG, config, effectivePolicy(material.policies, material.labels(node)));
    const actionReasons = reviewActions(plan, reviewed.capabilities).map((reason) => ({ ...reason, nodes: [node] }));
    reasons.push(...fresh, ...actionReasons);
    warnings.push(
      ...newReasons(reviewWarnings(config, reviewed), from === undefined ? [] : reviewWarnings(from, reviewed)),
    );
    if (fresh.length > 0 || found.length === 0) continue;
    incompatible.push(node);
    warnings.push(...leftOut(found, node));
  }
  return { did: 'review-change', reasons, warnings: mergeReasons(warnings), incompatible };
}

/** Reviews configs of nodes outside rollouts. Pauses per node. */
export function* reviewNodes(
  nodes: readonly { readonly node: string; readonly hash: string }[],
  material: Material,
): Steps<ReviewResult & { readonly did: 'review-nodes' }> {
  const reasons = new Map<string, readonly Reason[]>();
  for (const { node, hash } of nodes) {
    yield PAUSE;
    const config = material.config(hash);
    const reviewed = reviewedNode(node, material);
    reasons.set(node, config === undefined ? [missing(node, hash)] : reviewConfig(config, reviewed));
  }
  return { did: 'review-nodes', reasons };
}

const reviewedNode = (name: string, { capabilities, missingObjects }: Material): ReviewedNode => ({
  name,
  capabilities: capabilities(name),
  missingObjects,
});

const missing = (node: string, hash: string): Reason =>
  reasonFor({ nodes: [node] }, 'config-missing', `the config ${hash.slice(0, 12)} is not in the bucket configs`);
