import type { NodeReport } from '#libs/contracts';
import type { InventoryDraft } from './inputs.js';
import { isLater, type KubernetesNode, type State } from './state.js';

/** Notes the Node objects that the API server lists: those that are not among them are gone. */
export function noteListed(state: State, nodes: Iterable<readonly [string, KubernetesNode]>): boolean {
  state.kubernetes.nodes = new Map(nodes);
  for (const name of state.nodes.keys()) state.memo.toCompare.add(name);
  return true;
}

/** Notes one Node object, or that it is gone. False when that is no news: a kubelet writes its Node every few minutes, for ten thousand nodes. */
export function noteNode(state: State, name: string, node: KubernetesNode | undefined): boolean {
  const { nodes } = state.kubernetes;
  if (nodes === undefined) return false;
  const before = nodes.get(name);
  if (before?.uid === node?.uid && before?.unavailable === node?.unavailable) return false;
  if (node === undefined) nodes.delete(name);
  else nodes.set(name, node);
  state.memo.toCompare.add(name);
  return true;
}

/** The API server is asked no more: nothing is known of it. */
export function forgetNodes(state: State): false {
  state.kubernetes.nodes = undefined;
  return false;
}

/** Notes what nodes announced last; where Kubernetes is not asked, nothing is kept. */
export function noteAnnounced(state: State, reports: readonly NodeReport[]): false {
  for (const report of state.keepsAnnouncements ? reports : []) {
    const before = state.announcements.get(report.node);
    if (before === undefined || isLater(report, before)) state.announcements.set(report.node, report);
  }
  return false;
}

/** It left because its Node object was deleted, and none has come since. */
export function isOrphan(state: State, name: string): boolean {
  const node = state.nodes.get(name);
  return node?.state === 'gone' && node.because === 'deleted' && state.kubernetes.nodes?.has(name) !== true;
}

/** Says of every node that may differ from its Node object how it does. */
export function compareNodes(draft: InventoryDraft): void {
  const { nodes } = draft.state.kubernetes;
  if (nodes === undefined) return;
  for (const name of [...draft.state.memo.toCompare].sort()) {
    if (draft.full) return;
    const said = draft.facts.length;
    compare(draft, name, nodes.get(name));
    if (draft.facts.length === said) draft.state.memo.toCompare.delete(name);
  }
}

function compare(draft: InventoryDraft, name: string, seen: KubernetesNode | undefined): void {
  const { state } = draft;
  const known = state.nodes.get(name);
  if (known === undefined) return;
  const had = known.state !== 'gone' && known.uid !== '';
  if (had && known.uid !== seen?.uid) {
    const reason = seen === undefined ? 'its Node object was deleted' : 'its Node object was deleted and made again';
    draft.emit({ type: 'node.left', node: name, because: 'deleted', by: 'kubernetes', reason });
  }
  if (seen === undefined) return;
  const now = state.nodes.get(name);
  if (now?.state === 'gone' && now.because === 'deleted') rejoin(draft, state.announcements.get(name));
  const node = state.nodes.get(name);
  if (node === undefined || node.state === 'gone' || (node.uid === seen.uid && node.unavailable === seen.unavailable)) return;
  if (seen.unavailable === '') draft.emit({ type: 'node.available', node: name, uid: seen.uid });
  else draft.emit({ type: 'node.unavailable', node: name, because: seen.unavailable, uid: seen.uid });
}

/** Without its word it is waited for: whoever starts on a new machine announces itself. */
function rejoin(draft: InventoryDraft, report: NodeReport | undefined): void {
  if (report === undefined) return;
  const { node, labels, capabilities, version, incarnation, birth, seq, fresh } = report;
  draft.emit({ type: 'node.joined', node, labels, capabilities, version, incarnation, birth, seq, fresh });
}
