import { configKey, type LeaseView, type StatusView } from '#libs/contracts';
import type { State } from './state.js';

/** What nodes have and are about to get, as the scheduler shows it. */
export interface NodeViews {
  readonly statuses: Iterable<Pick<StatusView, 'node' | 'hash' | 'desired'>>;
  readonly leases: Iterable<Pick<LeaseView, 'node' | 'hash' | 'from'>>;
}

/**
 * The keys of all configs that somebody may still ask for: what the committed state gives each node, both ends of every
 * target of an open change, what is in force or desired, and both ends of leases. Nodes that have left are not waited
 * for: who comes back is rendered again.
 */
export function namedConfigs(state: State, { statuses, leases }: NodeViews): ReadonlySet<string> {
  const named = new Set<string>();
  const name = (node: string, ...hashes: readonly string[]): void => {
    if (state.nodes.has(node)) for (const hash of hashes) if (hash !== '') named.add(configKey(node, hash));
  };
  for (const [node, { hash }] of state.desired.entries()) name(node, hash);
  for (const targets of state.targets.values())
    for (const [node, { from, to }] of Object.entries(targets)) name(node, from, to);
  for (const { node, hash, desired } of statuses) name(node, hash, desired);
  for (const { node, hash, from } of leases) name(node, hash, from);
  return named;
}

/**
 * Whether pieces of targets may still be asked for: a fact that the ledger holds names them, for who folds it again, or
 * their change is open.
 */
export const areTargetsNamed = (open: ReadonlySet<string>, inFacts: ReadonlySet<string>, key: string): boolean =>
  inFacts.has(key) || open.has(key.slice(0, key.indexOf('.')));
