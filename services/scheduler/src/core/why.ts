import { isUnavailable, poolBudget } from './indexes.js';
import { nodeOf, targetKey, type NodeState, type State } from './state.js';
import { unavailableBecause } from './views.js';
import { stuckBecause, wantOf, takenText } from './want.js';

/** The one answer to "why is this node where it is": a stable code, a sentence, and who holds it. */
export interface Why {
  readonly node: string;
  readonly because: string;
  readonly text: string;
  readonly holders: readonly string[];
  readonly change?: string;
  readonly pool?: string;
  readonly lease?: string;
  readonly retryInMs?: number;
}

/** The first of these that holds is the answer. */
export function why(state: State, node: NodeState, nowMs: number): Why {
  const base = {
    node: node.node,
    pool: node.pool,
    holders: [],
    ...(node.change === '' ? {} : { change: node.change }),
  };
  if (!node.joined) return { ...base, because: 'left', text: 'it has left the fleet' };
  if (node.lease !== undefined) return whyLeased(base, node, node.lease);
  if (node.skippedBy !== '')
    return {
      ...base,
      because: 'skipped',
      text: `skipped by ${node.skippedBy}, until it is heard of or its rollout ends`,
    };
  if (node.silent) return { ...base, because: 'silent', text: 'it is silent: it gets nothing until it is heard of' };
  if (node.taken !== undefined)
    return {
      ...base,
      because: 'taken',
      text: `it is ${takenText(node.taken)}; it gets nothing until ${node.taken.owner} gives it back${node.taken.forMs === 0 ? '' : ', or that time is over'} (sluice give ${node.node} --owner ${node.taken.owner})`,
    };
  if (node.report === undefined)
    return { ...base, because: 'no-report', text: 'it has joined, and has not reported yet what it has' };
  return whole(node, whyFree(state, node, base, nowMs));
}

/** Whatever it waits for: that it is not well has to be known. */
const whole = ({ report }: NodeState, said: Why): Why =>
  report?.restored === false
    ? { ...said, text: `${said.text}; it is not back on a good config: ${report.reason}` }
    : said;

type Base = Pick<Why, 'node' | 'pool' | 'change' | 'holders'>;

function whyLeased(base: Base, node: NodeState, lease: NonNullable<NodeState['lease']>): Why {
  const held = { ...base, lease: lease.id };
  if (lease.because === 'unknown') {
    return {
      ...held,
      because: 'unknown',
      text: `it did not answer within its lease (${lease.id}); it keeps the lease until it reports, or is skipped or removed`,
      holders: [node.node],
    };
  }
  if (lease.because !== '')
    return {
      ...held,
      because: `lease-${lease.phase}`,
      text: `its lease ended ${lease.because} and is not released yet`,
    };
  if (lease.phase === 'draining')
    return {
      ...held,
      because: 'draining',
      text: 'it is being drained: that it is done is said by the drain service, or by an external drainer with ops.node.drained',
    };
  return { ...held, because: 'applying', text: `it has a ${lease.kind} lease and applies ${lease.hash.slice(0, 12)}` };
}

function whyFree(state: State, node: NodeState, base: Base, nowMs: number): Why {
  const target = state.targets.get(targetKey(node.change, node.node));
  const rollout = state.rollouts.get(node.change);
  if (node.unfit.length > 0 && target === undefined) {
    const reasons = node.unfit.map((reason) => reason.message).join('; ');
    return { ...base, because: 'unfit', text: `the committed config does not fit it: ${reasons}` };
  }
  if (target !== undefined && rollout !== undefined && !target.left) {
    if (target.owed !== '')
      return {
        ...base,
        because: 'owed',
        text: `${node.change} leaves it behind (${target.owed}); it gets the committed config once that has ended`,
      };
    const stuck = stuckBecause(state, rollout, target, node);
    if (stuck !== '') return { ...base, because: 'stuck', text: stuck };
    if (rollout.paused && rollout.phase === 'rolling' && node.report?.hash !== target.to)
      return { ...base, because: 'paused', text: `${node.change} is paused` };
  }
  const want = wantOf(state, node);
  if (want === undefined) return whyIdle(state, node, base);
  if (node.retry?.kind === 'later' && want.change === '') {
    const retryInMs = Math.round(node.retry.atMs - nowMs);
    // Its time has come: what it waits for now is what everybody waits for.
    if (retryInMs <= 0) return whyWaiting(state, node, base);
    return {
      ...base,
      because: 'backing-off',
      text: `${node.owed === '' ? 'its last lease failed' : `owed (${node.owed})`}; tried again in ${Math.ceil(retryInMs / 1000)} s`,
      retryInMs,
    };
  }
  if (!state.places.has(node.node)) {
    if (node.retry?.kind === 'when-changed' && node.retry.restarts !== undefined)
      return {
        ...base,
        because: 'given-up',
        text: `${node.retry.reason}; it is tried again when its config, its labels or the node change`,
      };
    return {
      ...base,
      because: 'refused',
      text: `it called this config invalid (${node.retry?.kind === 'when-changed' ? node.retry.reason : node.owed}); it is asked again when the config, its labels or the node change`,
    };
  }
  return whyWaiting(state, node, base);
}

function whyIdle(state: State, node: NodeState, base: Base): Why {
  const waiting = [...state.openChanges].filter(
    (name) => state.changes.get(name)?.targets[node.node] !== undefined && state.changes.get(name)?.started === false,
  );
  if (waiting[0] !== undefined)
    return {
      ...base,
      change: waiting[0],
      because: 'not-started',
      text: `${waiting.join(', ')} will reach it once started`,
    };
  if (node.rendered !== undefined) return { ...base, because: 'in-review', text: 'its config is being reviewed' };
  if (node.change !== '' && state.rollouts.get(node.change)?.phase !== 'rolling')
    return { ...base, because: 'settled', text: `it has what ${node.change} leaves it with` };
  if (node.desired === undefined)
    return {
      ...base,
      because: 'not-rendered',
      text: 'what it shall have is not known yet: its config is about to be rendered',
    };
  if (node.drifted.length > 0)
    return {
      ...base,
      because: 'drifted',
      text: `it has what it shall have, but for drift that is only reported: ${node.drifted.join('; ')}`,
    };
  return { ...base, because: 'up-to-date', text: 'it has what it shall have' };
}

function whyWaiting(state: State, node: NodeState, base: Base): Why {
  const { unavailable } = state.poolSet(node.pool);
  const budget = poolBudget(state, node.pool);
  // One that is unavailable itself needs no unit.
  if (!isUnavailable(node) && unavailable.size >= budget) {
    const holders = [...unavailable];
    const named = holders.slice(0, 5).map((name) => `${name} (${unavailableBecause(nodeOf(state, name))})`);
    return {
      ...base,
      because: 'budget',
      text: `pool ${node.pool} lets ${budget} be unavailable at once: ${named.join(', ')}`,
      holders: holders.slice(0, 100),
    };
  }
  return { ...base, because: 'next', text: 'its lease is about to be granted' };
}
