import { poolPolicies } from '#libs/budget';
import { countTarget, noteSelecting, putNode } from './indexes.js';
import { retryMs } from './retry-distance.js';
import { State, parseTargetKey, type NodeState, type Retry } from './state.js';

/** The tables that are the fold itself, by name; all else is derived from them. */
const TABLES = ['nodes', 'changes', 'rollouts', 'targets', 'policies', 'invalids', 'condemned', 'unjudged'] as const;

/** The whole fold as JSON. */
export function dump(state: State): unknown {
  const tables = Object.fromEntries(TABLES.map((name) => [name, [...state[name].entries()]]));
  const since = [...state.places.entries()].map(([node, place]) => [node, place.since]);
  return {
    ...tables,
    since,
    openChanges: [...state.openChanges],
    cursor: state.cursor.get(),
    policyVersion: state.policyVersion.get(),
  };
}

/** A fold from its JSON. Deadlines and distances begin anew at `readMs`: another copy's clock says nothing here. */
export function load(dumped: unknown, readMs: number): State {
  const source = dumped as Record<(typeof TABLES)[number], [string, never][]> & {
    since: [string, number][];
    openChanges: string[];
    cursor: number;
    policyVersion: number;
  };
  const state = new State();
  for (const name of TABLES)
    for (const [key, value] of source[name])
      (state[name] as { set(key: string, value: unknown): void }).set(key, value);
  for (const change of source.openChanges) state.openChanges.add(change);
  state.cursor.set(source.cursor);
  state.policyVersion.set(source.policyVersion);
  for (const [name, policy] of poolPolicies(state.policies.values())) state.pools.set(name, policy);
  const since = new Map(source.since);
  for (const node of [...state.nodes.values()]) {
    noteSelecting(state, node);
    putNode(state, restarted(node, readMs), since.get(node.node) ?? 0);
  }
  for (const { change, frozen } of state.rollouts.values())
    for (const name of Object.keys(frozen?.owed ?? {}))
      state.owedBy.set(name, [...(state.owedBy.get(name) ?? []), change]);
  for (const key of state.targets.keys()) countTarget(state, parseTargetKey(key).change, parseTargetKey(key).node);
  state.touched.clear();
  return state;
}

/** Version 6 knew nothing of how a lease is to be drained: what is under way then goes on as it was granted. */
export function fromVersion6(dumped: unknown): unknown {
  const { nodes, ...rest } = dumped as {
    readonly nodes: readonly (readonly [string, Omit<NodeState, 'lease'> & { readonly lease?: object }])[];
  };
  return {
    ...rest,
    nodes: nodes.map(([name, node]) => [
      name,
      node.lease === undefined ? node : { ...node, lease: { ...node.lease, drainTerms: '' } },
    ]),
  };
}

/** Version 7 knew of no end of what another tool has. */
export function fromVersion7(dumped: unknown): unknown {
  const { nodes, ...rest } = dumped as {
    readonly nodes: readonly (readonly [string, Omit<NodeState, 'taken'> & { readonly taken?: object }])[];
  };
  return {
    ...rest,
    nodes: nodes.map(([name, node]) => [
      name,
      node.taken === undefined ? node : { ...node, taken: { ...node.taken, at: '', sinceMs: 0, forMs: 0 } },
    ]),
  };
}

/** Version 8 knew of no actions in whose place a machine is restarted. */
export function fromVersion8(dumped: unknown): unknown {
  const { nodes, ...rest } = dumped as { readonly nodes: readonly (readonly [string, Omit<NodeState, 'escalated'>])[] };
  return { ...rest, nodes: nodes.map(([name, node]) => [name, { ...node, escalated: '' }]) };
}

function restarted(node: NodeState, readMs: number): NodeState {
  const retry: Retry | undefined =
    node.retry?.kind === 'later' ? { ...node.retry, atMs: readMs + retryMs(node.node, node.retry.tries) } : node.retry;
  return {
    ...node,
    retry,
    ...(node.taken === undefined ? {} : { taken: { ...node.taken, sinceMs: readMs } }),
    ...(node.lease === undefined ? {} : { lease: { ...node.lease, sinceMs: readMs } }),
  };
}
