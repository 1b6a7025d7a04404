import { driftOutlook } from '#libs/contracts';
import { firstToTry, firstTryText } from './first-try.js';
import { MISSING_VALUE } from '#libs/rules';
import { changingIn, isUnavailable, leasedBy, mayRollBackBeyond, poolBudget, roomIn } from './indexes.js';
import type { Lease } from './lease.js';
import { isKnownToHave, poolPolicy, rolloutOf, targetOf, type NodeState, type State } from './state.js';
import { holdersText } from './views.js';
import {
  blockedBecause,
  driftInTheWay,
  failingText,
  isSkippedByPerson,
  takenText,
  unavailableText,
  unhealthyBecause,
  wantOf,
} from './want.js';

/** The one answer to "why is this node waiting?": a stable code, a sentence, and the nodes that hold it up. */
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

/** The first reason that applies is the answer. */
export function why(state: State, node: NodeState, nowMs: number): Why {
  const { pool, change, lease, skippedBy, taken } = node;
  const base = { node: node.node, pool, holders: [], ...(change === undefined ? {} : { change }) };
  if (!node.joined) return { ...base, because: 'left', text: 'it has left the fleet' };
  if (lease !== undefined) return whyLeased(base, node, lease);
  const unavailable = isSkippedByPerson(node) ? undefined : unavailableText(node);
  if (unavailable !== undefined)
    return { ...base, because: 'unavailable', text: `${unavailable}; it gets no lease until its applier can use it` };
  if (skippedBy !== undefined) {
    const silent = node.silent ? 'it is silent, and ' : '';
    const because = node.skippedBecause === '' ? '' : ` (${node.skippedBecause})`;
    const text = `${silent}skipped by ${skippedBy}${because} until it reports again or its rollout ends`;
    return { ...base, because: 'skipped', text };
  }
  if (node.silent) return { ...base, because: 'silent', text: 'it is silent: it gets no lease until it reports again' };
  if (taken !== undefined) {
    const until = `${taken.owner} gives it back${taken.forMs === 0 ? '' : ' or the time is over'}`;
    const how = `sluice give ${node.node} --owner ${taken.owner}`;
    return { ...base, because: 'taken', text: `it is ${takenText(taken)}; it gets no lease until ${until} (${how})` };
  }
  if (node.report === undefined)
    return { ...base, because: 'no-report', text: 'it has joined, but has not reported its config yet' };
  return withHealth(node, whyFree(state, node, base, nowMs));
}

/** A degraded or unhealthy node says so, no matter what it waits for. */
function withHealth({ report, failingProbes }: NodeState, answer: Why): Why {
  const degraded = report?.restored === false ? `; degraded: rollback failed: ${report.reason}` : '';
  const isSaid = answer.because === 'unhealthy' || failingProbes.length === 0;
  return { ...answer, text: `${answer.text}${degraded}${isSaid ? '' : `; unhealthy: ${failingText(failingProbes)}`}` };
}

type Base = Pick<Why, 'node' | 'pool' | 'change' | 'holders'>;

function whyLeased(base: Base, node: NodeState, lease: Lease): Why {
  const leased = { ...base, lease: lease.id };
  if (lease.phase === 'draining') {
    const text =
      'it is being drained: it waits for the drain service, or for an external drainer to send ops.node.drained';
    return { ...leased, because: 'draining', text };
  }
  if (lease.phase === 'applying') {
    const text = `it has a ${lease.kind} lease and is applying ${lease.hash.slice(0, 12)}`;
    return { ...leased, because: 'applying', text };
  }
  if (lease.because === 'unknown') {
    const text = `it did not report by the deadline of its lease (${lease.id}); it keeps the lease until it reports, or is skipped or removed`;
    return { ...leased, because: 'unknown', text, holders: [node.node] };
  }
  const because = lease.phase === 'settled' ? 'lease-settled' : 'lease-uncordoning';
  return { ...leased, because, text: `its lease ended as ${lease.because} and is not released yet` };
}

function whyFree(state: State, node: NodeState, base: Base, nowMs: number): Why {
  const target = targetOf(state, node);
  const rollout = rolloutOf(state, node);
  if (node.incompatible.length > 0 && target === undefined) {
    const reasons = node.incompatible.map((reason) => reason.message).join('; ');
    const words = node.incompatible.every(({ code }) => code === MISSING_VALUE)
      ? 'its config cannot be rendered, so it keeps what it has'
      : 'the committed config is incompatible with it';
    return { ...base, because: 'incompatible', text: `${words}: ${reasons}` };
  }
  if (target !== undefined && rollout !== undefined && !target.left) {
    if (target.deferred !== undefined) {
      const ends = 'it gets the committed config once the rollout has ended';
      const reason = unhealthyBecause(state, node, rollout.change);
      return reason === undefined
        ? { ...base, because: 'deferred', text: `${node.change} deferred it (${target.deferred}); ${ends}` }
        : { ...base, because: 'unhealthy', text: `${node.change} deferred it: ${reason}; then ${ends}` };
    }
    const blocked = blockedBecause(state, rollout, target, node);
    if (blocked !== undefined) return { ...base, because: 'blocked', text: blocked };
    if (rollout.paused && rollout.phase === 'rolling' && node.report?.hash !== target.to)
      return { ...base, because: 'paused', text: `${node.change} is paused ${rollout.pausedBecause ?? ''}`.trimEnd() };
  }
  const want = wantOf(state, node);
  if (want === undefined) return whyIdle(state, node, base);
  if (node.retry?.kind === 'later' && want.change === '') {
    const retryInMs = Math.round(node.retry.atMs - nowMs);
    // The wait is over: from here on it waits for the same things as every other node.
    if (retryInMs <= 0) return whyWaiting(state, node, base);
    const reason = node.deferred === undefined ? 'its last lease failed' : `deferred (${node.deferred})`;
    return {
      ...base,
      because: 'backing-off',
      text: `${reason}; next try in ${Math.ceil(retryInMs / 1000)} s`,
      retryInMs,
    };
  }
  if (state.places.has(node.node)) return whyWaiting(state, node, base);
  if (node.retry?.kind === 'when-changed' && node.retry.restarts !== undefined) {
    const text = `${node.retry.reason}; it is tried again when its config or labels change, or when the machine is rebooted`;
    return { ...base, because: 'given-up', text };
  }
  const reason = node.retry?.kind === 'when-changed' ? node.retry.reason : (node.deferred ?? '');
  const text = `it reported this config as invalid (${reason}); it is tried again when its config or labels change, or when the machine is rebooted`;
  return { ...base, because: 'refused', text };
}

/** Why the node does not get the committed config that it lacks; undefined if nothing keeps it. */
function whyWithheld(state: State, node: NodeState, base: Base): Why | undefined {
  const { change, rendered, desired } = node;
  if (change !== undefined || rendered !== undefined || desired === undefined || isKnownToHave(node, desired.hash))
    return undefined;
  const unhealthy = unhealthyBecause(state, node, '');
  const reason = unhealthy ?? driftInTheWay(state, node);
  const because = unhealthy === undefined ? 'blocked' : 'unhealthy';
  return reason === undefined ? undefined : { ...base, because, text: `the committed config waits: ${reason}` };
}

function whyIdle(state: State, node: NodeState, base: Base): Why {
  const withheld = whyWithheld(state, node, base);
  if (withheld !== undefined) return withheld;
  const waiting = [...state.openChanges].filter((name) => {
    const change = state.changes.get(name);
    return change?.started === false && Object.hasOwn(change.targets, node.node);
  });
  if (waiting[0] !== undefined) {
    const texts = waiting.map((name) =>
      state.changes.get(name)?.paused === true ? `${name} (which is paused)` : name,
    );
    const text = `it waits for ${texts.join(', ')} to start`;
    return { ...base, change: waiting[0], because: 'not-started', text };
  }
  if (node.rendered !== undefined) return { ...base, because: 'in-review', text: 'its config is being reviewed' };
  if (node.change !== undefined && node.notUndone.length === 0)
    return { ...base, because: 'settled', text: `it is done with ${node.change}` };
  if (node.desired === undefined) {
    const text = 'its desired config is not known yet: it is about to be rendered';
    return { ...base, because: 'not-rendered', text };
  }
  if (node.notUndone.length > 0) {
    const drift = node.drift === undefined ? '' : `; it also has drift: ${node.drift.differences.join('; ')}`;
    const text = `it was rolled back, except ${node.notUndone.join(', ')}: undo on the node what these commands did, or apply a change that does${drift}`;
    return { ...base, because: 'not-undone', text };
  }
  if (node.drift !== undefined) {
    const { differences } = node.drift;
    // Any lease may repair a degraded node.
    const setting = node.report?.restored === false ? 'overwrite' : poolPolicy(state, node.pool).drift;
    const text = `it is up to date, except for drift (${differences.join('; ')}): ${driftOutlook(setting, differences)}`;
    return { ...base, because: 'drifted', text };
  }
  if (node.failingProbes.length > 0) {
    const text = `it has its config, but is unhealthy: ${failingText(node.failingProbes)}`;
    return { ...base, because: 'unhealthy', text };
  }
  const { leftovers = [] } = node.report ?? {};
  if (leftovers.length > 0) {
    const text = `it has its config, but what was deleted is still there: ${leftovers.join('; ')}`;
    return { ...base, because: 'leftovers', text };
  }
  return { ...base, because: 'up-to-date', text: 'it is up to date' };
}

function whyWaiting(state: State, node: NodeState, base: Base): Why {
  const first = wantOf(state, node)?.kind === 'corrective' ? firstToTry(state, node) : undefined;
  if (first !== undefined) return { ...base, because: 'first-try', text: firstTryText(state, first), holders: [first] };
  const { unavailable } = state.poolSet(node.pool);
  const budget = poolBudget(state, node.pool);
  // A node that is already unavailable needs no further unit.
  const goesBeyond = state.places.get(node.node)?.want.kind === 'rollback' && mayRollBackBeyond(state, node.pool);
  if (!isUnavailable(node) && unavailable.size >= budget && !goesBeyond) {
    const holders = [...unavailable];
    const text = `the budget of pool ${node.pool} is used up: ${unavailable.size} unavailable, ${budget} allowed: ${holdersText(state, holders)}`;
    return { ...base, because: 'budget', text, holders: holders.slice(0, 100) };
  }
  const rollout = rolloutOf(state, node);
  if (rollout?.phase === 'rolling' && roomIn(state, rollout) <= 0) {
    const changing = leasedBy(state, rollout.change);
    const text = `${rollout.change} changes at most ${rollout.maxUnavailable} ${rollout.maxUnavailable === 1 ? 'node' : 'nodes'} at once (its maxUnavailable): ${changing.slice(0, 5).join(', ')}`;
    return { ...base, because: 'budget', text, holders: changing.slice(0, 100) };
  }
  const changing = isUnavailable(node) ? changingIn(state, node.pool) : [];
  if (changing.length >= budget) {
    const text = `as many nodes of pool ${node.pool} are changing as its budget allows: ${changing.slice(0, 5).join(', ')}`;
    return { ...base, because: 'budget', text, holders: changing.slice(0, 100) };
  }
  return { ...base, because: 'next', text: 'its lease is about to be granted' };
}
