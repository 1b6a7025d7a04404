import { dumpTables, loadTables } from '#libs/engine';
import { countTarget, noteSelecting, putNode, readPools } from './indexes.js';
import { retryMs } from './retries.js';
import { isOpen, termsOf, type Lease } from './lease.js';
import { parseTargetKey, State, unknownNode, type NodeState, type Retry } from './state.js';

/** The tables that make up the fold, by name. Everything else is derived from them. */
const TABLES = ['nodes', 'changes', 'rollouts', 'targets', 'policies', 'invalids', 'knownBad', 'unjudged'] as const;

/** The whole fold as JSON. */
export function dump(state: State): unknown {
  const since = [...state.places.entries()].map(([node, place]) => [node, place.since]);
  return {
    ...dumpTables(state, TABLES),
    since,
    openChanges: [...state.openChanges],
    knownPools: [...state.knownPools],
    cursor: state.cursor.get(),
    policyVersion: state.policyVersion.get(),
  };
}

/** A fold from its JSON. Deadlines and waits start over at `readMs`, because monotonic clocks differ between copies. */
export function load(dumped: unknown, readMs: number): State {
  const source = dumped as {
    nodes: readonly (readonly [string, NodeState])[];
    since: [string, number][];
    openChanges: string[];
    knownPools: string[];
    cursor: number;
    policyVersion: number;
  };
  const state = new State();
  // Nodes come last: putting one updates the indexes, which need the other tables.
  loadTables(state, TABLES.slice(1), dumped);
  for (const change of source.openChanges) state.openChanges.add(change);
  for (const pool of source.knownPools) state.knownPools.add(pool);
  state.cursor.set(source.cursor);
  state.policyVersion.set(source.policyVersion);
  readPools(state);
  const since = new Map(source.since);
  for (const [, node] of source.nodes) {
    noteSelecting(state, node);
    putNode(state, restarted(node, readMs), since.get(node.node) ?? 0);
  }
  for (const { change, frozen } of state.rollouts.values())
    for (const name of Object.keys(frozen?.deferred ?? {}))
      state.deferredBy.set(name, [...(state.deferredBy.get(name) ?? []), change]);
  for (const key of state.targets.keys()) countTarget(state, parseTargetKey(key).change, parseTargetKey(key).node);
  state.touched.clear();
  return state;
}

type Row = Readonly<Record<string, unknown>>;
const isRow = (value: unknown): value is Row => typeof value === 'object' && value !== null;

/** Migrates each row of a table. */
const eachOf = (table: string, migrate: (row: Row) => Row) => (dumped: unknown) => {
  const all = dumped as Readonly<Record<string, readonly (readonly [string, Row])[]>>;
  return { ...all, [table]: all[table]?.map(([name, row]) => [name, migrate(row)]) };
};

/** From each version to the next. */
export const MIGRATIONS: Readonly<Record<number, (dumped: unknown) => unknown>> = {
  // Version 6 had no drain settings in leases: drains in progress continue as they were granted.
  6: (dumped) => dumped,
  // Version 7 had no time limit for taken nodes.
  7: eachOf('nodes', (node) =>
    isRow(node['taken']) ? { ...node, taken: { ...node['taken'], at: '', sinceMs: 0, forMs: 0 } } : node,
  ),
  // Version 8 had no escalation.
  8: eachOf('nodes', (node) => ({ ...node, escalated: '' })),
  // Version 9 used empty strings for missing values, and the same fields in all phases of a lease.
  9: (dumped) => {
    const nodes = eachOf('nodes', (node) => ({
      ...withoutEmpty(node, ['outOfService', 'deferred', 'skippedBy', 'escalated']),
      lease: leaseOf9(node['lease']),
      lastLease: leaseOf9(node['lastLease']),
    }));
    const targets = eachOf('targets', ({ verdict: because, reason, at, ...target }) => ({
      ...withoutEmpty(target, ['deferred']),
      outcome: because === '' ? undefined : { because, reason, at },
    }));
    const rollouts = eachOf('rollouts', (rollout) => ({
      ...rollout,
      stalledBy: String(rollout['stalledBy'])
        .split(' ')
        .filter((name) => name !== ''),
    }));
    return rollouts(targets(nodes(dumped)));
  },
  // Version 10 did not record who paused a rollout.
  10: (dumped) => dumped,
  // Version 11 wrote '' for some absent values.
  11: (dumped) => {
    const nodes = eachOf('nodes', (node) => ({
      ...withoutEmpty(node, ['change']),
      lease: isRow(node['lease']) ? withoutEmpty(node['lease'], ['drainTerms']) : undefined,
    }));
    const rollouts = eachOf('rollouts', (rollout) => withoutEmpty(rollout, ['endedAt', 'supersededBy']));
    return rollouts(nodes(dumped));
  },
  // Version 12 planned no actions for drift.
  12: eachOf('nodes', (node) =>
    isRow(node['lease']) && !('because' in node['lease']) ? { ...node, lease: { ...node['lease'], drift: [] } } : node,
  ),
  // Version 13 did not record since when a node differs, and every lease could overwrite drift.
  13: eachOf('nodes', ({ drifted, lease, ...node }) => ({
    ...node,
    ...(Array.isArray(drifted) && drifted.length > 0 ? { drift: { differences: drifted, since: '' } } : {}),
    lease:
      isRow(lease) && Array.isArray(lease['drift'])
        ? { ...lease, drift: { differences: lease['drift'], overwrite: true } }
        : lease,
  })),
  // Version 14 kept the incarnations of removed nodes.
  14: (dumped) => dumped,
  // Version 15 kept only the worst results of an ended rollout.
  15: eachOf('rollouts', (rollout) =>
    isRow(rollout['frozen']) ? { ...rollout, frozen: { ...rollout['frozen'], results: [] } } : rollout,
  ),
  // Version 16 moved nodes to the pools in a change only when it was committed.
  16: (dumped) => dumped,
  // Version 17 did not know which probes fail.
  17: (dumped) => dumped,
  // Version 18 did not record which desired config a node had last, nor which pools are gone.
  18: (dumped) => ({
    ...eachOf('nodes', (node) => ({
      ...node,
      lastDesired: isRow(node['report']) ? node['report']['hash'] : undefined,
    }))(dumped),
    knownPools: [],
  }),
  // Version 19 forgot ended changes that were rolled out together with the others.
  19: (dumped) => dumped,
  // Version 20 recorded with the outcome of a target whether it was never started.
  20: eachOf('targets', ({ outcome, ...target }) => {
    if (!isRow(outcome)) return target;
    const { notStarted, ...rest } = outcome;
    return { ...target, outcome: rest, startedBy: notStarted === true ? undefined : 'before' };
  }),
  // Version 21 knew no pace of a change, and not whether deferred nodes of an ended rollout may have started a lease.
  21: eachOf('rollouts', (old) => {
    const rollout = { ...old, maxUnavailable: 0 };
    const { frozen } = old;
    if (!isRow(frozen) || !isRow(frozen['deferred'])) return rollout;
    const nodes = Object.entries(frozen['deferred']).map(([name, hash]) => [name, { hash, startedBy: 'before' }]);
    return { ...rollout, frozen: { ...frozen, deferred: Object.fromEntries(nodes) as Row } };
  }),
  // Version 22 took only a lease that was given back for one that changed nothing.
  22: eachOf('nodes', ({ report, ...node }) => ({
    ...node,
    ...(isRow(report) ? { report: { ...report, untouched: report['verdict'] === 'refused' } } : {}),
  })),
  // Version 23 did not know which targets are unavailable.
  23: (dumped) => dumped,
  // Version 24 undid no commands under leases outside a rollout.
  24: (dumped) => dumped,
  // Version 25 counted nodes that were skipped while they applied a change as rolled back.
  25: (dumped) => dumped,
  // Version 26 did not know that a target whose lease ended as unreachable may have what the lease brought.
  26: eachOf('nodes', (node) => {
    const { lease } = node;
    const isEnded = isRow(lease) && ['unknown', 'skipped'].includes(String(lease['because']));
    return { ...node, unsure: isEnded && lease['answered'] !== true };
  }),
  // Version 27 did not know why a node is skipped.
  27: eachOf('nodes', (node) => ({ ...node, skippedBecause: '' })),
  // Version 28 did not know what is left of deleted fragments.
  28: eachOf('nodes', ({ report, ...node }) => ({
    ...node,
    ...(isRow(report) ? { report: { ...report, leftovers: [] } } : {}),
  })),
  // Version 29 did not say in the status which lease is the newest.
  29: (dumped) => dumped,
};

const withoutEmpty = (row: Row, fields: readonly string[]): Row =>
  Object.fromEntries(Object.entries(row).filter(([field, value]) => value !== '' || !fields.includes(field)));

function leaseOf9(lease: unknown): Lease | undefined {
  if (!isRow(lease)) return undefined;
  const terms = termsOf(lease as unknown as Lease);
  const { phase, because, reason, settledAt, answered, uncordoned, sinceMs, drainTerms, defers } = lease;
  const { drained, stopped, stoppedBecause } = lease;
  const drain = drained === true ? 'done' : stopped === '' ? 'under-way' : { outcome: stopped, reason: stoppedBecause };
  if (because !== '')
    return {
      ...terms,
      phase: uncordoned === true ? 'uncordoned' : phase,
      because,
      reason,
      settledAt,
      answered,
    } as Lease;
  return (
    phase === 'draining' ? { ...terms, phase, sinceMs, drainTerms, defers, drain } : { ...terms, phase, sinceMs }
  ) as Lease;
}

/** Restores the empty fields that a dump omits, so that all nodes have the same shape. */
function restarted(node: NodeState, readMs: number): NodeState {
  const retry: Retry | undefined =
    node.retry?.kind === 'later' ? { ...node.retry, atMs: readMs + retryMs(node.node, node.retry.tries) } : node.retry;
  const { lease, taken } = node;
  return {
    ...unknownNode(node.node),
    ...node,
    retry,
    silentSinceMs: node.silent ? readMs : 0,
    taken: taken && { ...taken, sinceMs: readMs },
    lease: lease && (isOpen(lease) ? { ...lease, sinceMs: readMs } : lease),
  };
}
