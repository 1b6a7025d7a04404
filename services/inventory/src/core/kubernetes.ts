import { cordonAnnotationOf, isLaterReport, type NodeReport } from '#libs/contracts';
import { sameLabels } from '#libs/manifests';
import { refusedAnnouncement } from './incarnations.js';
import type { InventoryDraft } from './inputs.js';
import { labelFields, labelSources, relabel, type LabelSources } from './labels.js';
import type { KubernetesNode, Labels, State } from './state.js';

/** The parts of a Node object that the inventory needs. */
export function kubernetesNode(node: {
  readonly uid: string;
  readonly labels: Labels;
  readonly ready: boolean;
  readonly unschedulable: boolean;
  readonly annotations: Labels;
  readonly bootId: string | undefined;
}): KubernetesNode {
  const { uid, labels, ready, unschedulable, bootId } = node;
  const mark = cordonAnnotationOf(node.annotations);
  // A cordon of Sluice does not count here: the lease already counts against the budget.
  const cordoned = unschedulable && (mark === undefined || mark.alreadyCordoned);
  const reasons = [...(ready ? [] : ['NotReady']), ...(cordoned ? ['cordoned'] : [])];
  return { uid, labels, unavailable: reasons.length === 0 ? undefined : reasons.join(', '), bootId };
}

/** If this many known Nodes are all missing, it is the wrong cluster. */
const MANY = 3;

/**
 * Whether this is the API server of another cluster: none of the known Nodes is listed, neither with its uid nor on the
 * machine of its applier. Then no node has left. Recreated Node objects have other uids, and even the names may be the
 * same in another cluster. But if a kubelet and an applier report the same boot id, they run on the same machine.
 */
function isAnotherCluster(state: State, nodes: ReadonlyMap<string, KubernetesNode>): boolean {
  const knownNodes = [...state.nodes.values()].filter(({ uid }) => uid !== undefined);
  const isListed = ({ node, uid }: (typeof knownNodes)[number]): boolean => {
    const object = nodes.get(node);
    const bootId = state.announcements.get(node)?.bootId;
    return object !== undefined && (object.uid === uid || (object.bootId !== undefined && object.bootId === bootId));
  };
  return knownNodes.length >= MANY && !knownNodes.some(isListed);
}

/**
 * Records the list of Node objects from the API server. Known ones that are not in it are gone. Returns false if they
 * are ignored, because they seem to be of another cluster.
 */
export function noteListed(state: State, nodes: ReadonlyMap<string, KubernetesNode>): boolean {
  state.kubernetes.ignored = new Map(nodes);
  return admitIgnored(state);
}

/**
 * Ignored Node objects count as soon as one of them is recognized, for example because its applier has announced
 * itself.
 */
function admitIgnored(state: State): boolean {
  const { ignored } = state.kubernetes;
  if (ignored === undefined || isAnotherCluster(state, ignored)) return false;
  state.kubernetes.nodes = ignored;
  state.kubernetes.ignored = undefined;
  for (const name of [...state.nodes.keys(), ...state.announcements.keys()]) state.memo.toCompare.set(name, true);
  return true;
}

/**
 * Records one Node object, or that it is gone. Returns false if nothing relevant changed: every kubelet writes its Node
 * every few minutes.
 */
export function noteNode(state: State, name: string, node: KubernetesNode | undefined): boolean {
  const { nodes, ignored } = state.kubernetes;
  if (ignored !== undefined) {
    put(ignored, name, node);
    return admitIgnored(state);
  }
  if (nodes === undefined) return false;
  const before = nodes.get(name);
  if (
    before?.uid === node?.uid &&
    before?.unavailable === node?.unavailable &&
    sameLabels(before?.labels ?? {}, node?.labels ?? {})
  )
    return false;
  put(nodes, name, node);
  state.memo.toCompare.set(name, true);
  return true;
}

function put(nodes: Map<string, KubernetesNode>, name: string, node: KubernetesNode | undefined): void {
  if (node === undefined) nodes.delete(name);
  else nodes.set(name, node);
}

/** Forgets the Node objects when this copy no longer reads from the API server. */
export function forgetNodes(state: State): false {
  state.kubernetes.nodes = undefined;
  state.kubernetes.ignored = undefined;
  return false;
}

/**
 * Records the last announcement of a node. Without Kubernetes, nothing is kept. Returns true if Node objects that were
 * ignored count now.
 */
export function noteAnnounced(state: State, reports: readonly NodeReport[]): boolean {
  for (const report of state.keepsAnnouncements ? reports : []) {
    if (refusedAnnouncement(state, report) !== undefined) continue;
    const before = state.announcements.get(report.node);
    if (before === undefined || isLaterReport(report, before)) state.announcements.set(report.node, report);
  }
  return admitIgnored(state);
}

/** The node left because its Node object was deleted, and there is no new one. */
export function isOrphan(state: State, name: string): boolean {
  const node = state.nodes.get(name);
  return node?.state === 'gone' && node.because === 'deleted' && state.kubernetes.nodes?.has(name) !== true;
}

/**
 * Whether the node must wait until Kubernetes has answered. Otherwise it would get a config for its own labels, and
 * another one right after.
 */
export const isPremature = (state: State, name: string): boolean =>
  state.keepsAnnouncements && state.kubernetes.nodes === undefined && !state.nodes.has(name);

/** The labels of a node that announced itself, by their source. */
function sourcesOf(state: State, report: NodeReport): LabelSources {
  const { nodes } = state.kubernetes;
  const node = state.nodes.get(report.node);
  return {
    own: report.labels,
    kubernetes: (nodes === undefined ? node?.kubernetesLabels : nodes.get(report.node)?.labels) ?? {},
    // Removing a node also removes the labels that a person set.
    set: node === undefined || node.state === 'gone' ? {} : node.setLabels,
  };
}

/** Emits facts for nodes that differ from their Node objects. Returns the names of those that do not differ. */
export function compareNodes(draft: InventoryDraft, join: JoinHandler): readonly string[] {
  const { nodes } = draft.state.kubernetes;
  const same: string[] = [];
  if (nodes === undefined) return same;
  for (const name of [...draft.state.memo.toCompare.keys()].sort()) {
    if (draft.full) return same;
    const facts = draft.facts.length;
    compare(draft, name, nodes.get(name), join);
    if (draft.facts.length === facts) same.push(name);
  }
  return same;
}

type JoinHandler = (draft: InventoryDraft, report: NodeReport) => void;

function compare(draft: InventoryDraft, name: string, object: KubernetesNode | undefined, join: JoinHandler): void {
  const { state } = draft;
  const report = state.announcements.get(name);
  // It announced itself before Kubernetes had answered.
  if (report !== undefined && !state.nodes.has(name)) join(draft, report);
  const joinedNode = state.nodes.get(name);
  if (joinedNode === undefined) return;
  const had = joinedNode.state !== 'gone' && joinedNode.uid !== undefined;
  if (had && joinedNode.uid !== object?.uid) {
    const reason = object === undefined ? 'its Node object was deleted' : 'its Node object was deleted and recreated';
    draft.emit({ type: 'node.left', node: name, because: 'deleted', by: 'kubernetes', reason });
  }
  if (object === undefined) return;
  const now = state.nodes.get(name);
  // Without an announcement, wait: an applier that starts on a new machine announces itself.
  if (report !== undefined && now?.state === 'gone' && now.because === 'deleted') emitJoined(draft, report);
  compareLabels(draft, name, object);
  const node = state.nodes.get(name);
  if (
    node === undefined ||
    node.state === 'gone' ||
    (node.uid === object.uid && node.unavailable === object.unavailable)
  )
    return;
  if (object.unavailable === undefined) draft.emit({ type: 'node.available', node: name, uid: object.uid });
  else draft.emit({ type: 'node.unavailable', node: name, because: object.unavailable, uid: object.uid });
}

/** The labels of its Node object have changed. */
function compareLabels(draft: InventoryDraft, name: string, object: KubernetesNode): void {
  const node = draft.state.nodes.get(name);
  if (node === undefined || node.state === 'gone' || sameLabels(node.kubernetesLabels, object.labels)) return;
  const sources = labelSources(node);
  const own = draft.state.announcements.get(name)?.labels ?? sources.own;
  relabel(draft, node, { ...sources, own, kubernetes: object.labels });
}

/** A node joins, without labels that a person set. */
export function emitJoined(draft: InventoryDraft, report: NodeReport): void {
  const { setLabels: _, hiddenLabels: __, ...body } = bodyOf(draft.state, report);
  draft.emit({ type: 'node.joined', ...body, fresh: report.fresh });
}

/** The content of `node.changed` for a node that announced itself. */
export function bodyOf(state: State, report: NodeReport) {
  const { node, capabilities, version, incarnation, nonce, seq } = report;
  return { node, ...labelFields(sourcesOf(state, report)), capabilities, version, incarnation, nonce, seq };
}
