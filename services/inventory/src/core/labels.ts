import { answered, refused, type Answer } from '#libs/engine';
import { sameLabels } from '#libs/manifests';
import type { InventoryDraft, Request } from './inputs.js';
import type { Labels, NodeState } from './state.js';

/** The labels of a node by source. A person wins over Kubernetes, and Kubernetes over the node itself. */
export interface LabelSources {
  readonly own: Labels;
  readonly kubernetes: Labels;
  readonly set: Labels;
}

type LabelFields = Pick<NodeState, 'labels' | 'kubernetesLabels' | 'setLabels' | 'hiddenLabels'>;

/** The labels in the form of facts and of the fold. */
export const labelFields = ({ own, kubernetes, set }: LabelSources): LabelFields => ({
  labels: { ...own, ...kubernetes, ...set },
  kubernetesLabels: kubernetes,
  setLabels: set,
  hiddenLabels: only(own, (key) => Object.hasOwn(set, key)),
});

/** The reverse. The node's own labels that Kubernetes overrides are not known: the node announces them again. */
export const labelSources = ({ labels, kubernetesLabels, setLabels, hiddenLabels }: LabelFields): LabelSources => ({
  own: {
    ...only(labels, (key) => !Object.hasOwn(kubernetesLabels, key) && !Object.hasOwn(setLabels, key)),
    ...hiddenLabels,
  },
  kubernetes: kubernetesLabels,
  set: setLabels,
});

const only = (labels: Labels, isWanted: (key: string) => boolean): Labels =>
  Object.fromEntries(Object.entries(labels).filter(([key]) => isWanted(key)));

/** Records that the labels of a node have changed. `by`: the person who changed them, if a person did. */
export function relabel(draft: InventoryDraft, node: NodeState, sources: LabelSources, by = ''): void {
  const { node: name, capabilities, version, stamp } = node;
  const labels = labelFields(sources);
  draft.emit({
    type: 'node.changed',
    node: name,
    labels: { ...labels.labels },
    kubernetesLabels: { ...labels.kubernetesLabels },
    setLabels: { ...labels.setLabels },
    hiddenLabels: { ...labels.hiddenLabels },
    by,
    capabilities: [...capabilities],
    version,
    ...stamp,
  });
}

/** More labels are a misuse, and every fact about the node would repeat them. */
const MOST_SET = 64;

type LabelRequest = Extract<Request, { readonly op: 'label' }>;

/** A person sets labels, or removes labels that a person set. */
export function setLabels(draft: InventoryDraft, node: NodeState, { set, remove, by }: LabelRequest): Answer {
  const sources = labelSources(node);
  const unset = remove.filter((key) => !Object.hasOwn(sources.set, key));
  if (unset.length > 0) {
    const where = unset.some((key) => Object.hasOwn(node.labels, key))
      ? 'it comes from the node itself or from Kubernetes: change it there, or override it with another value'
      : 'see its labels with sluice get nodes';
    return refused('not-found', `no label ${unset.join(', ')} was set on ${node.node}: ${where}`);
  }
  const now = { ...only(sources.set, (key) => !remove.includes(key)), ...set };
  if (Object.keys(now).length > MOST_SET)
    return refused('conflict', `more than ${MOST_SET} labels would be set on ${node.node}: remove some first`);
  if (!sameLabels(sources.set, now)) relabel(draft, node, { ...sources, set: now }, by);
  return answered({ node: node.node, labels: { ...sources.own, ...sources.kubernetes, ...now }, setLabels: now });
}
