import { EMPTY_CONFIG, type Config, type Fragment, type Reason, type Targets } from '#libs/contracts';
import type { Steps } from '#libs/kernel';
import { effectivePolicy, planActions, type ActionPlan } from '#libs/actions';
import { mergeReasons, newReasons, reviewActions, reviewConfig, reviewWarnings } from '#libs/review';
import type { Reviewed } from './inputs.js';

/** What a review of a change looks at, gathered beforehand. */
export interface Material {
  /** Undefined where there is none: a blob that is missing. */
  config(node: string, hash: string): Config | undefined;
  capabilities(node: string): readonly string[];
  labels(node: string): Readonly<Record<string, string>>;
  /** The `DisruptionPolicy` fragments that would hold for the leases of this change. */
  readonly policies: readonly Fragment[];
}

/** Reviews every target of a change; a node whose present config has the same faults is unfit, and no reason. A node is a step. */
export function* reviewTargets(
  targets: Targets,
  material: Material,
): Steps<Reviewed & { readonly did: 'review-change' }> {
  const reasons: Reason[] = [];
  const warnings: Reason[] = [];
  const unfit: string[] = [];
  for (const [node, target] of Object.entries(targets)) {
    yield;
    const config = material.config(node, target.to);
    if (config === undefined) {
      reasons.push({
        fragment: '',
        field: '',
        code: 'config-missing',
        message: `the config ${target.to.slice(0, 12)} is not in the bucket configs`,
        nodes: [node],
      });
      continue;
    }
    const reviewed = { name: node, capabilities: material.capabilities(node) };
    const from = target.from === '' ? undefined : material.config(node, target.from);
    const found = reviewConfig(config, reviewed);
    const fresh = newReasons(found, from === undefined ? [] : reviewConfig(from, reviewed));
    const { actions, because } = planActions(
      from ?? EMPTY_CONFIG,
      config,
      effectivePolicy(material.policies, material.labels(node)),
    );
    reasons.push(...fresh, ...actionReasons(because, reviewActions(actions, reviewed.capabilities), node));
    warnings.push(
      ...newReasons(reviewWarnings(config, reviewed), from === undefined ? [] : reviewWarnings(from, reviewed)),
    );
    if (fresh.length === 0 && found.length > 0) unfit.push(node);
  }
  return { did: 'review-change', reasons, warnings: mergeReasons(warnings), unfit };
}

/** An action that a node cannot take: the rule that asks for it, and what it is about. */
function actionReasons(because: ActionPlan['because'], reasons: readonly Reason[], node: string): readonly Reason[] {
  return reasons.flatMap((reason) => {
    const asking = because.filter(({ actions }) => actions.some(({ kind }) => reason.message.includes(` ${kind},`)));
    const found = asking.length === 0 ? [{ rule: '', what: '' }] : asking;
    return found.map(({ rule, what }) => ({ ...reason, fragment: rule, field: what, nodes: [node] }));
  });
}

/** Reviews configs of nodes outside rollouts. */
export function reviewNodes(
  nodes: readonly { readonly node: string; readonly hash: string }[],
  material: Material,
): Reviewed & { readonly did: 'review-nodes' } {
  return {
    did: 'review-nodes',
    reasons: new Map(
      nodes.map(({ node, hash }) => {
        const config = material.config(node, hash);
        const missing = {
          fragment: '',
          field: '',
          code: 'config-missing',
          message: `the config ${hash.slice(0, 12)} is not in the bucket configs`,
          nodes: [node],
        };
        return [
          node,
          config === undefined
            ? [missing]
            : reviewConfig(config, { name: node, capabilities: material.capabilities(node) }),
        ];
      }),
    ),
  };
}
