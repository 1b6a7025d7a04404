import type { FailingProbe, Fragment, Reason } from '#libs/contracts';
import { selectorOf, selects } from '#libs/manifests';

interface ProbedNode {
  readonly node: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Of the node's config in force. */
  readonly failingProbes: readonly FailingProbe[];
}

/** How many nodes a warning names. */
const NAMED = 5;

/**
 * A warning about a probe that fails on every node that has it; undefined if it passes somewhere, or no node has it.
 */
export function failingEverywhere(probe: Fragment, nodes: Iterable<ProbedNode>): Reason | undefined {
  const selector = selectorOf(probe);
  const failing: string[] = [];
  let reason: string | undefined;
  for (const { node, labels, failingProbes } of nodes) {
    if (!selects(selector, labels)) continue;
    const failure = failingProbes.find((one) => one.probe === probe.name);
    if (failure === undefined) return undefined;
    reason ??= failure.reason;
    failing.push(node);
  }
  if (failing.length === 0) return undefined;
  const where = failing.length === 1 ? `on the one node that has it` : `on all ${failing.length} nodes that have it`;
  return {
    fragment: `Probe/${probe.name}`,
    field: '',
    code: 'fails-everywhere',
    message: `it fails ${where}, so changes are confirmed without it: fix what it checks, or the probe (${reason ?? ''})`,
    nodes: failing.slice(0, NAMED),
  };
}
