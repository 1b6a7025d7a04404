import { fragmentId, type Fragment } from '#libs/contracts';
import { isNodeKind, selectorOf, selects } from '#libs/manifests';
import { valuedNodes } from './bindings.js';
import { usersOf } from './names.js';
import type { Change, NodeState, State } from './state.js';

/** The selectors, old and new, of what a change touches on nodes, also by the names that fragments look up. */
export function selectorsOf(state: State, change: Pick<Change, 'apply' | 'delete'>): readonly Fragment[] {
  const before = [...change.apply, ...change.delete].map((ref) => state.fragments.get(fragmentId(ref))?.fragment);
  const own = [...change.apply, ...before.filter((fragment) => fragment !== undefined)];
  return [...own.filter(({ kind }) => isNodeKind(kind)), ...usersOf(state, change)];
}

/** Whether a change touches a node: one of its fragments selects it, or did when committed, or has its values. */
export const selectedBy = (state: State, change: Pick<Change, 'apply' | 'delete'>, node: NodeState): boolean =>
  selectorsOf(state, change).some((fragment) => selects(selectorOf(fragment), node.labels)) ||
  valuedNodes(state, change).some((one) => one.node === node.node);

/** Every node that a change touches, by name. */
export function touchedNodes(state: State, change: Pick<Change, 'apply' | 'delete'>): readonly NodeState[] {
  const selectors = selectorsOf(state, change).map(selectorOf);
  const valued = new Set(valuedNodes(state, change).map(({ node }) => node));
  if (selectors.length === 0 && valued.size === 0) return [];
  const touched = [...state.nodes.values()].filter(
    (node) => valued.has(node.node) || selectors.some((selector) => selects(selector, node.labels)),
  );
  return touched.sort((a, b) => (a.node < b.node ? -1 : 1));
}
