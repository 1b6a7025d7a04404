import { DNS_LABEL } from '#libs/contracts';
import { About, Fields } from '../shape/description.js';
import { AtLeastOne, Nested, NestedList, Optional } from '../shape/checked.js';
import { Duration, patternForm, TextList, Whole, Word } from '../shape/forms.js';
import { NodeSelector } from '../selector.js';

export const DRAIN_WORDS = {
  /** What to do with a pod that no controller would recreate, or that would lose its data. */
  careful: ['block', 'evict'],
  /** What to do with the pods that a rule matches. */
  rule: ['drain', 'skip', 'wait'],
  onTimeout: ['fail', 'defer', 'force'],
  onUncordon: ['restore', 'give-up'],
} as const;

const NAMESPACE = patternForm('bad-namespace', DNS_LABEL, 'must be the name of a namespace');
const RESOURCE = patternForm(
  'bad-resource',
  /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?\/[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/,
  'must be the name of an extended resource, such as "example.com/nic"',
);
/** Large enough that there is always a number between two others. */
const MAX_ORDER = 1_000_000;
/** More than people write by hand. */
const MAX_RULES = 1_000;

/**
 * What to do with some of the pods, and when: pods with a lower order must be gone before pods with a higher order are
 * evicted.
 */
@Fields({
  podSelector: 'Pods that the rule applies to, by their labels. `{}` selects all.',
  namespaces: 'Namespaces that the rule applies to. Default: all.',
  action: '`drain` evicts the pods, `skip` leaves them, `wait` waits until they end on their own. Default: `drain`.',
  order:
    'Pods with a higher order are evicted once all pods with a lower order are gone. Default: 0; system pods come last.',
})
export class DrainRule {
  @Nested(() => NodeSelector) readonly podSelector!: NodeSelector;
  @Optional() @TextList(NAMESPACE, 1) readonly namespaces?: readonly string[];
  @Optional() @Word(DRAIN_WORDS.rule) readonly action?: (typeof DRAIN_WORDS.rule)[number];
  @Optional() @Whole(-MAX_ORDER, MAX_ORDER) readonly order?: number;
}

/** The pods to evict in a partial drain: those that match the selector, and those that request one of the resources. */
@AtLeastOne(
  ['podSelector', 'resources'],
  'needs podSelector, resources, or both: without them nothing would be drained',
)
@Fields({
  podSelector: 'Drain pods with these labels.',
  resources: 'Drain pods that request one of these extended resources, such as `example.com/nic`.',
})
export class DrainOnly {
  @Optional() @Nested(() => NodeSelector) readonly podSelector?: NodeSelector;
  @Optional() @TextList(RESOURCE, 1) readonly resources?: readonly string[];
}

/** How the nodes of a pool are drained with Kubernetes. */
@About('How the nodes of a pool are drained with Kubernetes.')
@Fields({
  gracePeriod: "How long a pod may take to stop, such as `30s`. Default: each pod's own grace period.",
  unmanaged:
    'What to do with pods that no controller would recreate: `evict` them, or `block` the drain. Default: `block`.',
  emptyDir:
    'What to do with pods that would lose the data of an emptyDir volume: `evict` them, or `block` the drain. Default: `block`.',
  rules: 'Exceptions for some pods. The first rule that matches a pod decides.',
  only: 'Drain only these pods. Default: all. A change that restarts the node always drains all.',
  onTimeout:
    'After `drainTimeout`: `fail` the node, `defer` it and continue the rollout, or `force`: delete the remaining pods, and fail the node if they are still there after another `drainTimeout`. Default: `fail`.',
  onUncordon:
    'If somebody uncordons the node during the drain: `restore` the cordon, or `give-up` and defer the node. Default: `restore`.',
})
export class DrainSpec {
  @Optional() @Duration() readonly gracePeriod?: string;
  @Optional() @Word(DRAIN_WORDS.careful) readonly unmanaged?: (typeof DRAIN_WORDS.careful)[number];
  @Optional() @Word(DRAIN_WORDS.careful) readonly emptyDir?: (typeof DRAIN_WORDS.careful)[number];
  @Optional() @NestedList(() => DrainRule, MAX_RULES) readonly rules?: readonly DrainRule[];
  @Optional() @Nested(() => DrainOnly) readonly only?: DrainOnly;
  @Optional() @Word(DRAIN_WORDS.onTimeout) readonly onTimeout?: (typeof DRAIN_WORDS.onTimeout)[number];
  @Optional() @Word(DRAIN_WORDS.onUncordon) readonly onUncordon?: (typeof DRAIN_WORDS.onUncordon)[number];
}
