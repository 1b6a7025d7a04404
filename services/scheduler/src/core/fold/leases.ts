import { assertNever, viewKey, type Entry } from '#libs/kernel';
import { nodeToken, takenReport, type Fact, type FactOf } from '#libs/contracts';
import { putNode } from '../indexes.js';
import { nodeOf, targetKey, type Lease, type NodeState, type Retry, type State } from '../state.js';
import { drainTerms } from '../drain-terms.js';
import { circumstancesOf } from '../want.js';
import { reported } from './nodes.js';
import { patchLease, laterThan } from './patches.js';

export type LeaseFact = Extract<Fact, { type: `node.lease.${string}` }>;

/** Folds what is said of leases. */
export function evolveLease(state: State, entry: Entry, fact: LeaseFact): void {
  const { sequence, readMs } = entry;
  state.touched.add(viewKey('leases', nodeToken(fact.node)));
  switch (fact.type) {
    case 'node.lease.granted': {
      const node = nodeOf(state, fact.node);
      const rollout = state.rollouts.get(fact.change);
      if (rollout !== undefined && rollout.stalledBy !== '')
        state.rollouts.set(fact.change, { ...rollout, stalledBy: '' });
      return putNode(state, { ...node, lease: newLease(fact, readMs), leases: node.leases + 1 }, sequence);
    }
    case 'node.lease.amended':
      if (state.nodes.get(fact.node)?.lease?.phase !== 'draining') return;
      // The time for the drain begins anew.
      return patchLease(state, fact.node, fact.lease, sequence, {
        drainMs: fact.drainMs,
        ...drainOf(fact),
        sinceMs: readMs,
      });
    case 'node.lease.ready':
      return patchLease(state, fact.node, fact.lease, sequence, { phase: 'ready', sinceMs: readMs });
    case 'node.lease.settled':
      return settle(state, fact, entry);
    case 'node.lease.uncordoning':
      return patchLease(state, fact.node, fact.lease, sequence, { phase: 'uncordoning' });
    case 'node.lease.released': {
      const node = nodeOf(state, fact.node);
      if (node.lease?.id === fact.lease) putNode(state, { ...node, ...released(state, node, node.lease) }, sequence);
      return;
    }
    default:
      return assertNever(fact);
  }
}

function newLease(fact: FactOf<'node.lease.granted'>, readMs: number): Lease {
  const { lease: id, pool, change, kind, hash, from, recipe, actions, applyMs, drainMs, free, at: grantedAt } = fact;
  const phase = fact.phase === 'draining' ? 'draining' : 'ready';
  const open = {
    because: '',
    reason: '',
    drained: false,
    uncordoned: false,
    stopped: '',
    stoppedBecause: '',
    answered: false,
    settledAt: '',
  } as const;
  return {
    id,
    pool,
    change,
    kind,
    phase,
    hash,
    from,
    recipe,
    actions,
    applyMs,
    drainMs,
    free,
    ...(phase === 'draining' ? drainOf(fact) : { drainTerms: '', defers: false }),
    sinceMs: readMs,
    grantedAt,
    ...open,
  };
}

const drainOf = ({
  drainMs,
  drain,
}: Pick<FactOf<'node.lease.granted'>, 'drainMs' | 'drain'>): Pick<Lease, 'drainTerms' | 'defers'> => ({
  drainTerms: drainTerms({ drainMs, drain: drain ?? {} }),
  defers: drain?.['onTimeout'] === 'defer',
});

function settle(state: State, fact: FactOf<'node.lease.settled'>, { sequence, readMs }: Entry): void {
  const report = takenReport(fact);
  const node = report === undefined ? state.nodes.get(fact.node) : reported(state, report);
  if (node === undefined) return;
  if (node.lease?.id !== fact.lease) return putNode(state, node, sequence);
  const lease: Lease = {
    ...node.lease,
    phase: 'settled',
    because: fact.because,
    reason: fact.reason,
    sinceMs: readMs,
    settledAt: fact.at,
  };
  if (fact.kind === 'forward') countVerdict(state, fact, sequence);
  const key = targetKey(fact.change, fact.node);
  const target = state.targets.get(key);
  if (target !== undefined)
    state.targets.set(key, { ...target, verdict: fact.because, reason: fact.reason, at: fact.at });
  const held = fact.released ? released(state, node, lease) : { lease };
  putNode(
    state,
    { ...node, ...held, escalated: fact.because === 'escalated' ? fact.hash : '', ...afterLease(node, fact, readMs) },
    sequence,
  );
}

/** What a node is without its lease. */
function released(state: State, node: NodeState, lease: Lease): Pick<NodeState, 'lease' | 'lastLease' | 'skippedBy'> {
  state.shownMs.delete(lease.id);
  return { lease: undefined, lastLease: lease, skippedBy: node.change === '' && !node.silent ? '' : node.skippedBy };
}

/** What a lease's end means for the next try of a node outside a rollout. */
function afterLease(node: NodeState, fact: FactOf<'node.lease.settled'>, readMs: number): Partial<NodeState> {
  switch (fact.because) {
    case 'applied':
      return {
        retry: undefined,
        owed: node.change === '' ? '' : node.owed,
        drifted: [],
        desired: node.desired && { ...node.desired, joining: false },
      };
    case 'invalid':
      // What it refused is what the lease led to: by now it may be meant to have something else.
      return fact.kind === 'forward'
        ? {}
        : { retry: { kind: 'when-changed', circumstances: circumstancesOf(node, fact.hash), reason: fact.reason } };
    case 'failed':
    case 'unknown':
      return fact.kind === 'forward' ? {} : { retry: nextTry(node, fact, readMs) };
    case 'escalated':
    case 'left':
    case 'skipped':
    case 'stale':
    case 'cancelled':
      return {};
  }
}

/** So many tries may restart the machine in vain; then it is left alone, so that nothing restarts it again and again. */
const RESTARTS_IN_VAIN = 3;

function nextTry(node: NodeState, fact: FactOf<'node.lease.settled'>, readMs: number): Retry {
  // What settles a lease names the boot where it is another than before.
  const isRestarted =
    fact.report !== undefined &&
    fact.report.bootId !== '' &&
    node.lease?.actions.some(({ kind }) => kind === 'reboot') === true;
  const restarts = (node.retry?.restarts ?? 0) + (isRestarted ? 1 : 0);
  if (!isRestarted || restarts < RESTARTS_IN_VAIN) return laterThan(node, readMs, restarts);
  const reason = `the machine was restarted in vain in ${restarts} tries, in the last of them: ${fact.reason}`;
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
  // Its targets may be gone by now, and with them what else would bring the view up to date.
  state.touched.add(viewKey('rollouts', fact.change));
}
