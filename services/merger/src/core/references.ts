import { configKey, type LeaseView, type StatusView } from '#libs/contracts';
import { objectRefOf } from '#libs/manifests';
import { committedFragments } from './committed.js';
import type { State } from './state.js';

/** The configs that nodes have or are about to get, from the views of the scheduler. */
export interface NodeViews {
  readonly statuses: Iterable<Pick<StatusView, 'node' | 'hash' | 'desired'>>;
  readonly leases: Iterable<Pick<LeaseView, 'node' | 'hash' | 'from'>>;
}

/**
 * The keys of all configs that may still be needed: the config of each node from the committed state, `from` and `to`
 * of every target of an open change, active and desired configs, and both configs of every lease. Nodes that have left
 * do not count: they are rendered again if they come back.
 */
export function referencedConfigs(state: State, { statuses, leases }: NodeViews): ReadonlySet<string> {
  const referenced = new Set<string>();
  const refer = (node: string, ...hashes: readonly string[]): void => {
    if (state.nodes.has(node)) for (const hash of hashes) if (hash !== '') referenced.add(configKey(node, hash));
  };
  for (const [node, { hash }] of state.desired.entries()) refer(node, hash);
  for (const targets of state.targets.values())
    for (const [node, { from, to }] of Object.entries(targets)) refer(node, from, to);
  for (const { node, hash, desired } of statuses) refer(node, hash, desired);
  for (const { node, hash, from } of leases) refer(node, hash, from);
  return referenced;
}

/**
 * Whether a blob of targets may still be needed: a fact in the ledger names it, which a copy may fold again, or its
 * change is open.
 */
export const areTargetsReferenced = (open: ReadonlySet<string>, inFacts: ReadonlySet<string>, key: string): boolean =>
  inFacts.has(key) || open.has(key.slice(0, key.indexOf('.')));

/**
 * The objects that may still be needed, by sha256: those of the committed state, and those of open changes. A node that
 * rolls back needs none, because it keeps what it replaces.
 */
export function referencedObjects(state: State): ReadonlySet<string> {
  const open = [...state.openChanges].flatMap((change) => state.changes.get(change)?.apply ?? []);
  return new Set([...committedFragments(state), ...open].flatMap((fragment) => objectRefOf(fragment)?.sha256 ?? []));
}
