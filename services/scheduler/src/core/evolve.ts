import { assertNever, viewKey, type Entry } from '#libs/kernel';
import { parseRolloutPolicy, selects } from '#libs/manifests';
import { carriedPolicies, policiesOf } from '#libs/policy';
import { fragmentId, nodeToken, type Fact, type FactOf, type FactType } from '#libs/contracts';
import { assignPool, countTarget, dropTargets, nodeOf, putNode, reassignAll, reassignShared, recountRollout } from './indexes.js';
import { targetKey, type Change, type Lease, type NodeState, type Retry, type Rollout, type State } from './state.js';
import { circumstancesOf } from './want.js';
import { freeze } from './frozen-rollout.js';

/** The facts that the scheduler's fold uses. */
export const READS: readonly FactType[] = [
  'config.accepted', 'config.waiting', 'config.rendered', 'config.validated', 'config.rejected', 'config.committed', 'config.ended', 'config.judged', 'config.forgiven',
  'node.joined', 'node.left', 'node.changed', 'node.silent', 'node.heard', 'node.rendered', 'node.reviewed', 'node.reported', 'node.owed', 'node.skipped',
  'node.drained', 'node.uncordoned',
  'node.lease.granted', 'node.lease.ready', 'node.lease.settled', 'node.lease.uncordoning', 'node.lease.released',
  'rollout.started', 'rollout.paused', 'rollout.resumed', 'rollout.aborted', 'rollout.failed', 'rollout.reverting', 'rollout.reverted', 'rollout.complete',
  'rollout.succeeded', 'rollout.superseded', 'rollout.stalled',
];

/** Ended changes and rollouts that are kept for questions about them. */
const KEPT_ENDED = 200;

/** Folds one fact of the ledger. */
export function evolve(state: State, entry: Entry): void {
  const { fact } = entry;
  if (fact.type.startsWith('config.')) evolveConfig(state, entry);
  else if (fact.type.startsWith('node.lease.')) evolveLease(state, entry, fact as LeaseFact);
  else if (fact.type.startsWith('node.')) evolveNode(state, entry);
  else if (fact.type.startsWith('rollout.')) evolveRollout(state, entry);
}

function evolveConfig(state: State, { sequence, fact, targets }: Entry): void {
  switch (fact.type) {
    case 'config.accepted':
      state.changes.set(fact.change, newChange(fact));
      state.openChanges.add(fact.change);
      return;
    case 'config.rendered':
      return patchChange(state, fact.change, { attempt: fact.attempt, targets: targets ?? {}, replaces: fact.replaces, validated: undefined });
    case 'config.waiting':
      // It was rendered, and something came before it after all: that attempt counts no more.
      return patchChange(state, fact.change, { validated: undefined });
    case 'config.validated':
      return patchChange(state, fact.change, { validated: { attempt: fact.attempt, sequence, unfit: fact.unfit } });
    case 'config.rejected':
      return endChange(state, fact.change);
    case 'config.ended':
      return endChange(state, fact.change);
    case 'config.committed':
      return commit(state, fact, sequence);
    case 'config.judged':
      state.unjudged.delete(fact.lease);
      if (fact.condemned) {
        state.condemned.set(fact.hash, true);
        if (fact.recipe !== '') state.condemned.set(fact.recipe, true);
      }
      return recountRolling(state, sequence);
    case 'config.forgiven':
      state.condemned.delete(fact.hash);
      state.condemned.delete(fact.recipe);
      return recountRolling(state, sequence);
    default:
      return;
  }
}

/** What is known to be bad decides who can go on. */
function recountRolling(state: State, sequence: number): void {
  for (const { change, phase } of [...state.rollouts.values()]) if (phase === 'rolling') recountRollout(state, change, sequence);
}

function newChange(fact: FactOf<'config.accepted'>): Change {
  const carried = carriedPolicies(fact);
  return {
    change: fact.change,
    open: true,
    started: false,
    aborted: false,
    paused: false,
    policies: carried.apply,
    policyDeletes: carried.delete,
    maxFailures: fact.strategy?.maxFailures,
    attempt: 0,
    targets: {},
    replaces: [],
    validated: undefined,
  };
}

function patchChange(state: State, name: string, patch: Partial<Change>): void {
  const change = state.changes.get(name);
  if (change !== undefined) state.changes.set(name, { ...change, ...patch });
}

function endChange(state: State, name: string): void {
  patchChange(state, name, { open: false, targets: {} });
  state.openChanges.delete(name);
  const rollout = state.rollouts.get(name);
  if (rollout !== undefined && rollout.phase !== 'complete') drop(state, name);
  forgetOldest(state);
}

/** Its nodes go their own ways from here: what it came to is kept, its targets are not. */
function drop(state: State, name: string): void {
  freeze(state, name);
  dropTargets(state, name);
}

function forgetOldest(state: State): void {
  if (state.changes.size <= KEPT_ENDED * 2) return;
  const ended = [...state.changes.values()].filter((change) => !change.open).map((change) => change.change);
  for (const name of ended.slice(0, ended.length - KEPT_ENDED)) {
    state.changes.delete(name);
    state.rollouts.delete(name);
  }
}

function commit(state: State, fact: FactOf<'config.committed'>, sequence: number): void {
  const change = state.changes.get(fact.change);
  const rollout = state.rollouts.get(fact.change);
  if (change === undefined || rollout === undefined) return;
  const unfit = new Set(change.validated?.unfit);
  for (const name of rollout.nodes) {
    const target = state.targets.get(targetKey(fact.change, name));
    const node = state.nodes.get(name);
    if (target === undefined || node === undefined || node.change !== fact.change) continue;
    const keeps = target.left || !node.joined || unfit.has(name);
    const desired = keeps ? node.desired : { hash: target.to, recipe: target.recipe, joining: false };
    putNode(state, leftRollout({ ...node, desired, owed: target.owed || node.owed, ...(keeps ? {} : { rendered: undefined, unfit: [] }) }), sequence);
  }
  drop(state, fact.change);
  patchChange(state, fact.change, { open: false, targets: {} });
  state.openChanges.delete(fact.change);
  if (change.policies.length > 0 || change.policyDeletes.length > 0) commitPolicies(state, change, sequence);
  forgetOldest(state);
}

function commitPolicies(state: State, change: Change, sequence: number): void {
  for (const ref of change.policyDeletes) state.policies.delete(fragmentId(ref));
  for (const fragment of change.policies) state.policies.set(fragmentId(fragment), fragment);
  state.policyVersion.set(sequence);
  reassignAll(state, sequence);
}

/** A live node that was skipped is only skipped until the rollout ends. */
const leftRollout = (node: NodeState): NodeState => ({
  ...node,
  change: '',
  skippedBy: node.silent ? node.skippedBy : '',
  owed: hasDesired(node) ? '' : node.owed,
});

const hasDesired = (node: NodeState): boolean => node.desired !== undefined && node.report?.hash === node.desired.hash;

function evolveNode(state: State, { sequence, readMs, fact }: Entry): void {
  switch (fact.type) {
    case 'node.joined':
    case 'node.changed':
      return present(state, fact, sequence);
    case 'node.left': {
      outdate(state, fact.node);
      // Should it come back, it is a node that joins: what this rollout wanted of it is over.
      const { change } = nodeOf(state, fact.node);
      if (change !== '') patchTarget(state, change, fact.node, { left: true });
      const gone = { joined: false, silent: false, owed: '', change: '', desired: undefined, rendered: undefined, retry: undefined } as const;
      putNode(state, assignPool(state, { ...nodeOf(state, fact.node), ...gone }), sequence);
      return reassignShared(state, sequence);
    }
    case 'node.silent':
      return patchNode(state, fact.node, sequence, { silent: true });
    case 'node.heard':
      return patchNode(state, fact.node, sequence, { silent: false, skippedBy: '' });
    case 'node.rendered':
      return rendered(state, fact, sequence);
    case 'node.reviewed':
      return reviewed(state, fact, sequence);
    case 'node.reported':
      state.cursor.set(Math.max(state.cursor.get(), fact.reportSequence));
      return reported(state, fact, sequence);
    case 'node.owed': {
      if (fact.change !== '') patchTarget(state, fact.change, fact.node, { owed: fact.reason });
      const node = nodeOf(state, fact.node);
      const retry = fact.change === '' && node.lease === undefined ? laterThan(node, readMs) : node.retry;
      return patchNode(state, fact.node, sequence, { owed: fact.reason, retry });
    }
    case 'node.skipped':
      return patchNode(state, fact.node, sequence, { skippedBy: fact.by });
    case 'node.drained':
      return patchLease(state, fact.node, fact.lease, sequence, { drained: true });
    case 'node.uncordoned':
      return patchLease(state, fact.node, fact.lease, sequence, { uncordoned: true });
    default:
      return;
  }
}

function patchNode(state: State, name: string, sequence: number, patch: Partial<NodeState>): void {
  putNode(state, { ...nodeOf(state, name), ...patch }, sequence);
}

function patchTarget(state: State, change: string, node: string, patch: { readonly owed?: string; readonly left?: boolean }): void {
  const key = targetKey(change, node);
  const target = state.targets.get(key);
  if (target === undefined) return;
  state.targets.set(key, { ...target, ...patch });
  countTarget(state, change, node);
}

function present(state: State, fact: FactOf<'node.joined' | 'node.changed'>, sequence: number): void {
  const node = nodeOf(state, fact.node);
  if (node.joined && !sameLabels(node.labels, fact.labels)) outdate(state, fact.node);
  const rejoined = fact.type === 'node.joined' && !node.joined;
  const base = rejoined ? { ...node, joined: true, silent: false, skippedBy: '' } : node;
  putNode(state, assignPool(state, { ...base, labels: fact.labels, capabilities: fact.capabilities }), sequence);
  reassignShared(state, sequence);
}

type Labels = Readonly<Record<string, string>>;
const sameLabels = (a: Labels, b: Labels): boolean => JSON.stringify(Object.entries(a).sort()) === JSON.stringify(Object.entries(b).sort());

/** A rendering that was not started yet does not survive a relabel or a leave of a node that it touches; the merger makes another. */
function outdate(state: State, node: string): void {
  for (const name of [...state.openChanges]) {
    const change = state.changes.get(name);
    if (change !== undefined && !change.started && change.targets[node] !== undefined) patchChange(state, name, { validated: undefined });
  }
}

function rendered(state: State, fact: FactOf<'node.rendered'>, sequence: number): void {
  for (const change of fact.leaves) patchTarget(state, change, fact.node, { left: true });
  const node = nodeOf(state, fact.node);
  const left = fact.leaves.includes(node.change) ? leftRollout(node) : node;
  putNode(state, { ...left, rendered: { hash: fact.hash, recipe: fact.recipe } }, sequence);
}

function reviewed(state: State, fact: FactOf<'node.reviewed'>, sequence: number): void {
  const node = nodeOf(state, fact.node);
  if (node.rendered?.hash !== fact.hash) return;
  const desired = fact.fit ? { ...node.rendered, joining: node.report?.hash !== fact.hash } : undefined;
  putNode(state, { ...node, rendered: undefined, desired, unfit: fact.reasons, owed: fact.fit ? node.owed : '' }, sequence);
}

function reported(state: State, fact: FactOf<'node.reported'>, sequence: number): void {
  const node = nodeOf(state, fact.node);
  const named = node.lease !== undefined && node.lease.id === fact.lease && (node.lease.phase === 'settled' || node.lease.phase === 'uncordoning');
  const { incarnation, birth, seq, hash, lease, verdict, reason, restored, bootId, fresh } = fact;
  const report = { incarnation, birth, seq, hash, lease, verdict, reason, restored, bootId, fresh };
  const drifted = fact.report === 'drifted' ? fact.what : fact.report === 'applied' ? [] : node.drifted;
  const owed = node.change === '' && node.desired?.hash === hash ? '' : node.owed;
  const desired = node.desired?.hash === hash ? { ...node.desired, joining: false } : node.desired;
  const now = { ...node, report, drifted, owed, desired, ...(named && node.lease !== undefined ? { lease: { ...node.lease, answered: true } } : {}) };
  putNode(state, now, sequence);
}

type LeaseFact = Extract<Fact, { type: `node.lease.${string}` }>;

function evolveLease(state: State, entry: Entry, fact: LeaseFact): void {
  const { sequence, readMs } = entry;
  state.touched.add(viewKey('leases', nodeToken(fact.node)));
  switch (fact.type) {
    case 'node.lease.granted': {
      const node = nodeOf(state, fact.node);
      const rollout = state.rollouts.get(fact.change);
      if (rollout !== undefined && rollout.stalledBy !== '') state.rollouts.set(fact.change, { ...rollout, stalledBy: '' });
      return putNode(state, { ...node, lease: newLease(fact, readMs), leases: node.leases + 1 }, sequence);
    }
    case 'node.lease.ready':
      return patchLease(state, fact.node, fact.lease, sequence, { phase: 'ready', sinceMs: readMs });
    case 'node.lease.settled':
      return settle(state, fact, entry);
    case 'node.lease.uncordoning':
      return patchLease(state, fact.node, fact.lease, sequence, { phase: 'uncordoning' });
    case 'node.lease.released': {
      const node = nodeOf(state, fact.node);
      if (node.lease?.id !== fact.lease) return;
      const skippedBy = node.change === '' && !node.silent ? '' : node.skippedBy;
      state.shownMs.delete(fact.lease);
      return putNode(state, { ...node, lease: undefined, lastLease: node.lease, skippedBy }, sequence);
    }
    default:
      return assertNever(fact);
  }
}

function newLease(fact: FactOf<'node.lease.granted'>, readMs: number): Lease {
  const { lease: id, pool, change, kind, hash, from, recipe, actions, applyMs, drainMs, free, at: grantedAt } = fact;
  const phase = fact.phase === 'draining' ? 'draining' : 'ready';
  const open = { because: '', reason: '', drained: false, uncordoned: false, answered: false, settledAt: '' } as const;
  return { id, pool, change, kind, phase, hash, from, recipe, actions, applyMs, drainMs, free, sinceMs: readMs, grantedAt, ...open };
}

function patchLease(state: State, name: string, lease: string, sequence: number, patch: Partial<Lease>): void {
  const node = state.nodes.get(name);
  if (node?.lease?.id !== lease) return;
  putNode(state, { ...node, lease: { ...node.lease, ...patch } }, sequence);
}

/** The first failure waits a minute, each further one twice as long, up to an hour. */
const retryMs = (tries: number): number => Math.min(60_000 * 2 ** (tries - 1), 3_600_000);

function laterThan(node: NodeState, readMs: number): Retry {
  const tries = (node.retry?.kind === 'later' ? node.retry.tries : 0) + 1;
  return { kind: 'later', tries, atMs: readMs + retryMs(tries) };
}

function settle(state: State, fact: FactOf<'node.lease.settled'>, { sequence, readMs }: Entry): void {
  const node = state.nodes.get(fact.node);
  if (node?.lease?.id !== fact.lease) return;
  const lease: Lease = { ...node.lease, phase: 'settled', because: fact.because, reason: fact.reason, sinceMs: readMs, settledAt: fact.at };
  if (fact.kind === 'forward') countVerdict(state, fact, sequence);
  const key = targetKey(fact.change, fact.node);
  const target = state.targets.get(key);
  if (target !== undefined) state.targets.set(key, { ...target, verdict: fact.because, reason: fact.reason, at: fact.at });
  putNode(state, { ...node, lease, ...afterLease(node, fact, readMs) }, sequence);
}

/** What a lease's end means for the next try of a node outside a rollout. */
function afterLease(node: NodeState, fact: FactOf<'node.lease.settled'>, readMs: number): Partial<NodeState> {
  switch (fact.because) {
    case 'applied':
      return { retry: undefined, owed: node.change === '' ? '' : node.owed, drifted: [], desired: node.desired && { ...node.desired, joining: false } };
    case 'invalid':
      return fact.kind === 'forward' ? {} : { retry: { kind: 'when-changed', circumstances: circumstancesOf(node) } };
    case 'failed':
    case 'unknown':
      return fact.kind === 'forward' ? {} : { retry: laterThan(node, readMs) };
    case 'left':
    case 'skipped':
    case 'stale':
    case 'cancelled':
      return {};
  }
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
}

function evolveRollout(state: State, { sequence, fact }: Entry): void {
  switch (fact.type) {
    case 'rollout.started':
      return start(state, fact, sequence);
    case 'rollout.superseded':
      return supersede(state, fact, sequence);
    case 'rollout.paused':
    case 'rollout.resumed': {
      const paused = fact.type === 'rollout.paused';
      patchChange(state, fact.change, { paused });
      return patchRollout(state, fact.change, sequence, { paused });
    }
    case 'rollout.aborted':
      patchChange(state, fact.change, { aborted: true });
      return patchRollout(state, fact.change, sequence, { aborted: true, reason: fact.reason });
    case 'rollout.failed':
      return patchRollout(state, fact.change, sequence, { reason: fact.reason });
    case 'rollout.reverting':
      forgetOwed(state, fact.change);
      return patchRollout(state, fact.change, sequence, { phase: 'reverting', stalledBy: '' });
    case 'rollout.complete':
      return patchRollout(state, fact.change, sequence, { phase: 'complete', stalledBy: '' });
    case 'rollout.reverted':
      patchRollout(state, fact.change, sequence, { phase: 'reverted', stalledBy: '', endedAt: fact.at });
      leave(state, fact.change, sequence);
      return drop(state, fact.change);
    case 'rollout.succeeded':
      return patchRollout(state, fact.change, sequence, { phase: 'succeeded', endedAt: fact.at });
    case 'rollout.stalled':
      return patchRollout(state, fact.change, sequence, { stalledBy: fact.nodes.join(' ') });
    default:
      return;
  }
}

function start(state: State, fact: FactOf<'rollout.started'>, sequence: number): void {
  const change = state.changes.get(fact.change);
  if (change === undefined) return;
  const rollout: Rollout = {
    change: fact.change, phase: 'rolling', paused: change.paused, aborted: false, maxFailures: fact.maxFailures, failed: 0, unknown: 0, reason: '',
    nodes: Object.keys(change.targets).sort(), stalledBy: '', startedAt: fact.at, endedAt: '', supersededBy: '', frozen: undefined,
  };
  state.rollouts.set(fact.change, rollout);
  patchChange(state, fact.change, { started: true });
  for (const name of rollout.nodes) {
    const { from, to, recipe } = change.targets[name] ?? { from: '', to: '', recipe: '' };
    state.targets.set(targetKey(fact.change, name), { from, to, recipe, left: false, owed: '', verdict: '', reason: '', at: '' });
    putNode(state, { ...nodeOf(state, name), change: fact.change }, sequence);
  }
  state.touched.add(viewKey('rollouts', fact.change));
}

function supersede(state: State, fact: FactOf<'rollout.superseded'>, sequence: number): void {
  patchRollout(state, fact.change, sequence, { phase: 'superseded', supersededBy: fact.by, endedAt: fact.at });
  patchChange(state, fact.change, { open: false, targets: {} });
  state.openChanges.delete(fact.change);
  leave(state, fact.change, sequence);
  drop(state, fact.change);
}

function leave(state: State, change: string, sequence: number): void {
  for (const name of state.rollouts.get(change)?.nodes ?? []) {
    const node = state.nodes.get(name);
    if (node?.change === change) putNode(state, leftRollout(node), sequence);
  }
}

function forgetOwed(state: State, change: string): void {
  for (const name of state.rollouts.get(change)?.nodes ?? []) {
    const key = targetKey(change, name);
    const target = state.targets.get(key);
    if (target !== undefined && target.owed !== '') state.targets.set(key, { ...target, owed: '' });
  }
}

function patchRollout(state: State, name: string, sequence: number, patch: Partial<Rollout>): void {
  const rollout = state.rollouts.get(name);
  if (rollout === undefined) return;
  state.rollouts.set(name, { ...rollout, ...patch });
  recountRollout(state, name, sequence);
}

/** The failures that a rollout tolerates: what the change says, else the strictest policy that selects a target, else none. */
export function maxFailuresOf(state: State, change: Change): number {
  if (change.maxFailures !== undefined) return change.maxFailures;
  const carried = { apply: change.policies, delete: change.policyDeletes };
  const policies = policiesOf('RolloutPolicy', state.policies.values(), carried).map(parseRolloutPolicy);
  const labels = Object.keys(change.targets).map((name) => nodeOf(state, name).labels);
  const selecting = policies.filter((policy) => labels.some((one) => selects(policy.selector, one)));
  return selecting.length === 0 ? 0 : Math.min(...selecting.map((policy) => policy.maxFailures));
}
