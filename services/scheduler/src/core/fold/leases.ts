import { viewKey, type Entry, type FactTable } from '#libs/engine';
import { canonicalJson, type PoolPolicy } from '#libs/rules';
import { nodeToken, takenReport, type FactOf } from '#libs/contracts';
import { putNode } from '../indexes.js';
import { isOpen, termsOf, type DrainingLease, type EndedLease, type Lease } from '../lease.js';
import { isUntouchedBy, nodeOf, targetKey, type NodeState, type Retry, type State } from '../state.js';
import { circumstancesOf } from '../want.js';
import { reported } from './nodes.js';
import { changeLease, laterThan } from './patches.js';

/** The drain settings of a pool as one canonical text, to compare. */
export const drainTerms = ({ drainMs, drain }: Pick<PoolPolicy, 'drainMs' | 'drain'>): string =>
  canonicalJson({ drainMs, drain });

/** How facts about leases change the fold. */
export const LEASE_FACTS: FactTable<State> = {
  'node.lease.granted': (state, fact, { sequence, readMs }) => {
    note(state, fact, sequence);
    const node = nodeOf(state, fact.node);
    const rollout = state.rollouts.get(fact.change);
    if (rollout !== undefined && rollout.stalledBy.length > 0)
      state.rollouts.set(fact.change, { ...rollout, stalledBy: [] });
    putNode(
      state,
      { ...node, lease: newLease(fact, readMs), leases: node.leases + 1, leaseLedger: sequence },
      sequence,
    );
  },
  // The time for the drain starts over.
  'node.lease.amended': (state, fact, { sequence, readMs: sinceMs }) => {
    note(state, fact, sequence);
    const { drainMs } = fact;
    changeLease(state, fact, sequence, (lease) =>
      lease.phase === 'draining' ? { ...lease, drainMs, ...drainOf(fact), sinceMs } : undefined,
    );
  },
  'node.lease.applying': (state, fact, { sequence, readMs: sinceMs }) => {
    note(state, fact, sequence);
    changeLease(state, fact, sequence, (lease) =>
      lease.phase === 'draining' ? { ...termsOf(lease), phase: 'applying', sinceMs, drift: lease.drift } : undefined,
    );
  },
  'node.lease.settled': (state, fact, entry) => {
    note(state, fact, entry.sequence);
    settle(state, fact, entry);
  },
  'node.lease.uncordoning': (state, fact, { sequence }) => {
    note(state, fact, sequence);
    changeLease(state, fact, sequence, (lease) => (isOpen(lease) ? undefined : { ...lease, phase: 'uncordoning' }));
  },
  'node.lease.released': (state, fact, { sequence }) => {
    note(state, fact, sequence);
    const node = nodeOf(state, fact.node);
    const { lease } = node;
    if (lease?.id === fact.lease && !isOpen(lease))
      putNode(state, { ...node, ...released(state, node, lease) }, sequence);
  },
};

/** Each fact about the newest lease of a node changes the view of that lease, and the status says since when. */
function note(
  state: State,
  { node: name, lease }: { readonly node: string; readonly lease: string },
  leaseLedger: number,
): void {
  const node = state.nodes.get(name);
  if (node?.lease?.id === lease) state.nodes.set(name, { ...node, leaseLedger });
  state.touched.add(viewKey('leases', nodeToken(name)));
  state.touched.add(viewKey('status', nodeToken(name)));
}

function newLease(fact: FactOf<'node.lease.granted'>, sinceMs: number): Lease {
  const terms = termsOf({ ...fact, id: fact.lease, grantedAt: fact.at });
  const drift = fact.drift ?? NO_DRIFT;
  return fact.phase === 'draining'
    ? { ...terms, phase: 'draining', sinceMs, drift, ...drainOf(fact), drain: 'under-way' }
    : { ...terms, phase: 'applying', sinceMs, drift };
}

const NO_DRIFT = { differences: [], overwrite: false };

const drainOf = ({
  drainMs,
  drain,
}: Pick<FactOf<'node.lease.granted'>, 'drainMs' | 'drain'>): Pick<DrainingLease, 'drainTerms' | 'defers'> => ({
  drainTerms: drainTerms({ drainMs, drain: drain ?? {} }),
  defers: drain?.['onTimeout'] === 'defer',
});

function settle(state: State, fact: FactOf<'node.lease.settled'>, { sequence, readMs }: Entry): void {
  const report = takenReport(fact);
  const node = report === undefined ? state.nodes.get(fact.node) : reported(state, report, fact.at);
  if (node === undefined) return;
  if (node.lease?.id !== fact.lease) return putNode(state, node, sequence);
  const { because, reason, at } = fact;
  const answered = !isOpen(node.lease) && node.lease.answered;
  const lease: EndedLease = { ...termsOf(node.lease), phase: 'settled', because, reason, settledAt: at, answered };
  if (fact.kind === 'forward') countVerdict(state, fact, sequence);
  const key = targetKey(fact.change, fact.node);
  const target = state.targets.get(key);
  if (target !== undefined) {
    const startedBy = target.startedBy ?? (mayHaveChanged(node, node.lease) ? node.lease.id : undefined);
    state.targets.set(key, { ...target, outcome: { because, reason, at }, startedBy });
  }
  const next = fact.released ? released(state, node, lease) : { lease };
  // A node that is being drained does not work on its lease yet.
  const unsure = node.report?.lease !== fact.lease && (node.unsure || node.lease.phase === 'applying');
  const escalated = because === 'escalated' ? fact.hash : undefined;
  putNode(state, { ...node, ...next, unsure, escalated, ...afterLease(node, fact, readMs) }, sequence);
}

/** Whether a lease that ends may have changed the node: not while it was still being drained. */
const mayHaveChanged = (node: NodeState, { phase, id }: Lease): boolean =>
  phase !== 'draining' && !isUntouchedBy(node, id);

/** A node after its lease is released. */
function released(
  state: State,
  { change, silent, skippedBy }: NodeState,
  lease: EndedLease,
): Pick<NodeState, 'lease' | 'lastLease' | 'skippedBy'> {
  state.shownMs.delete(lease.id);
  return { lease: undefined, lastLease: lease, skippedBy: change === undefined && !silent ? undefined : skippedBy };
}

/** When a node is tried again outside a rollout, after a lease has ended. */
function afterLease(node: NodeState, fact: FactOf<'node.lease.settled'>, readMs: number): Partial<NodeState> {
  switch (fact.because) {
    case 'applied':
      return {
        retry: undefined,
        deferred: node.change === undefined ? undefined : node.deferred,
        drift: undefined,
        desired: node.desired && { ...node.desired, joining: false },
        // It was the desired config when the lease was granted.
        lastDesired: fact.change === '' ? fact.hash : node.lastDesired,
      };
    case 'invalid':
      // The node rejected the config of this lease. Its desired config may have changed since.
      return fact.kind === 'forward'
        ? {}
        : { retry: { kind: 'when-changed', circumstances: circumstancesOf(node, fact.hash), reason: fact.reason } };
    case 'failed':
    case 'unknown':
    case 'unreachable':
      return fact.kind === 'forward' ? {} : { retry: nextTry(node, fact, readMs) };
    case 'escalated':
    case 'left':
    case 'skipped':
    case 'stale':
    case 'cancelled':
      return {};
  }
}

/**
 * After this many reboots without success, the node is left alone, so that it does not reboot forever.
 */
const RESTARTS_IN_VAIN = 3;

function nextTry(node: NodeState, fact: FactOf<'node.lease.settled'>, readMs: number): Retry {
  // The report in `node.lease.settled` has a boot id only if it differs from the previous one.
  const isRestarted =
    fact.report !== undefined &&
    fact.report.bootId !== '' &&
    node.lease?.actions.some(({ kind }) => kind === 'reboot') === true;
  const restarts = (node.retry?.restarts ?? 0) + (isRestarted ? 1 : 0);
  if (!isRestarted || restarts < RESTARTS_IN_VAIN) return laterThan(node, readMs, restarts);
  const reason = `the machine was restarted ${restarts} times without success; the last time: ${fact.reason}`;
  return { kind: 'when-changed', circumstances: circumstancesOf(node, fact.hash), reason, restarts };
}

function countVerdict(state: State, fact: FactOf<'node.lease.settled'>, sequence: number): void {
  if (fact.because === 'invalid') {
    state.invalids.set(fact.hash, sequence);
    if (fact.recipe !== '') state.invalids.set(fact.recipe, sequence);
    state.unjudged.set(fact.lease, fact.change);
  }
  const rollout = state.rollouts.get(fact.change);
  if (rollout === undefined) return;
  const failed = rollout.failed + (fact.because === 'invalid' || fact.because === 'failed' ? 1 : 0);
  const unknown = rollout.unknown + (fact.because === 'unknown' ? 1 : 0);
  state.rollouts.set(fact.change, { ...rollout, failed, unknown });
  // The targets may already be deleted, so update the view of the rollout here.
  state.touched.add(viewKey('rollouts', fact.change));
}
