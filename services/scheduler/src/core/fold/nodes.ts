import type { Entry, FactTable } from '#libs/engine';
import { MOST_INCARNATION_JUMP, type FactOf, type takenReport } from '#libs/contracts';
import { sameLabels } from '#libs/manifests';
import { assignPool, putNode, reassignShared } from '../indexes.js';
import { isOpen, type Lease } from '../lease.js';
import { isTarget, nodeOf, targetKey, type NodeState, type State } from '../state.js';
import { skippedText, takenText } from '../want.js';
import { changeLease, patchChange, patchTarget, leftRollout, laterThan } from './patches.js';

/** The fields that are reset when a node leaves. */
const LEFT = {
  joined: false,
  silent: false,
  outOfService: undefined,
  taken: undefined,
  failingProbes: [],
  notUndone: [],
  deferred: undefined,
  change: undefined,
  desired: undefined,
  rendered: undefined,
  retry: undefined,
  escalated: undefined,
} as const;

/** How facts about nodes change the fold. */
export const NODE_FACTS: FactTable<State> = {
  'node.joined': present,
  'node.changed': present,
  'node.left': (state, { node: name, because }, { sequence }) => {
    outdate(state, name);
    // If it comes back, it joins as a new node and is no longer a target of this rollout.
    const { change } = nodeOf(state, name);
    if (change !== undefined) patchTarget(state, change, name, { left: true });
    const left = { ...nodeOf(state, name), ...LEFT };
    putNode(state, assignPool(state, because === 'removed' ? withoutIncarnation(left) : left), sequence);
    reassignShared(state, sequence);
    stopStalling(state, name);
  },
  'node.silent': (state, { node }, entry) =>
    patchNode(state, node, entry, { silent: true, silentSinceMs: entry.readMs }),
  'node.heard': (state, { node: name }, entry) => {
    const node = nodeOf(state, name);
    patchNode(state, name, entry, { silent: false, skippedBy: undefined, retry: dueNow(node) });
  },
  'node.unavailable': (state, { node, because }, entry) => patchNode(state, node, entry, { outOfService: because }),
  'node.available': (state, { node }, entry) => patchNode(state, node, entry, { outOfService: undefined }),
  'node.unhealthy': (state, { node, failingProbes }, entry) => patchNode(state, node, entry, { failingProbes }),
  'node.healthy': (state, { node }, entry) => patchNode(state, node, entry, { failingProbes: [] }),
  'node.taken': (state, { node, owner, reason, at, forMs }, entry) =>
    patchNode(state, node, entry, { taken: { owner, reason, at, sinceMs: entry.readMs, forMs } }),
  'node.returned': (state, { node: name }, entry) => {
    const { taken, deferred } = nodeOf(state, name);
    patchNode(state, name, entry, { taken: undefined });
    const was = taken === undefined ? undefined : takenText(taken);
    if (deferred !== undefined && deferred === was) deferAgain(state, name, entry, `was ${was}`);
  },
  'node.rendered': rendered,
  'node.reviewed': reviewed,
  'node.reported': (state, fact, { sequence }) => putNode(state, reported(state, fact, fact.at), sequence),
  'node.deferred': (state, { node: name, change, reason }, entry) => {
    patchTarget(state, change, name, { deferred: reason });
    const node = nodeOf(state, name);
    const retry = change === '' && node.lease === undefined ? laterThan(node, entry.readMs) : node.retry;
    patchNode(state, name, entry, { deferred: reason, retry });
  },
  'node.skipped': (state, { node, by, reason }, entry) => {
    patchNode(state, node, entry, { skippedBy: by, skippedBecause: reason });
    // What the scheduler skips was deferred for a reason that says more.
    if (by !== 'scheduler') deferAgain(state, node, entry, skippedText(by));
    stopStalling(state, node);
  },
  // A stopped drain never becomes a finished one.
  'node.drained': (state, fact, { sequence }) =>
    changeLease(state, fact, sequence, (lease) =>
      lease.phase === 'draining' && lease.drain === 'under-way' ? { ...lease, drain: 'done' } : undefined,
    ),
  'node.drain.stopped': (state, fact, { sequence }) => {
    const { outcome, reason } = fact;
    changeLease(state, fact, sequence, (lease) =>
      lease.phase === 'draining' ? { ...lease, drain: { outcome, reason } } : undefined,
    );
  },
  'node.uncordoned': (state, fact, { sequence }) =>
    changeLease(state, fact, sequence, (lease) =>
      lease.phase === 'uncordoning' ? { ...lease, phase: 'uncordoned' } : undefined,
    ),
};

/**
 * A removed node counts its incarnations from 0 again. Low ones stay, because they leave room enough, and then no late
 * report of before counts as new.
 */
const withoutIncarnation = (node: NodeState): NodeState =>
  node.report === undefined || node.report.incarnation <= MOST_INCARNATION_JUMP
    ? node
    : { ...node, report: { ...node.report, incarnation: 0, nonce: 0, seq: 0 } };

/** A node that is deferred already is so for another reason now. */
function deferAgain(state: State, name: string, entry: Entry, reason: string): void {
  const { change, deferred } = nodeOf(state, name);
  if (deferred === undefined) return;
  const target = change === undefined ? undefined : state.targets.get(targetKey(change, name));
  if (change !== undefined && target?.deferred !== undefined) patchTarget(state, change, name, { deferred: reason });
  patchNode(state, name, entry, { deferred: reason });
}

/** Nobody waits for the node's report any more. Its unit may become free later. */
function stopStalling(state: State, name: string): void {
  for (const rollout of [...state.rollouts.values()]) {
    const goesOn = rollout.phase === 'rolling' || rollout.phase === 'reverting';
    if (!goesOn || !rollout.stalledBy.includes(name)) continue;
    state.rollouts.set(rollout.change, { ...rollout, stalledBy: rollout.stalledBy.filter((node) => node !== name) });
  }
}

function patchNode(state: State, name: string, { sequence }: Entry, patch: Partial<NodeState>): void {
  putNode(state, { ...nodeOf(state, name), ...patch }, sequence);
}

function present(state: State, fact: FactOf<'node.joined' | 'node.changed'>, { sequence }: Entry): void {
  const node = nodeOf(state, fact.node);
  if (node.joined && !sameLabels(node.labels, fact.labels)) outdate(state, fact.node);
  const rejoined = fact.type === 'node.joined' && !node.joined;
  const base = rejoined
    ? { ...node, joined: true, silent: false, outOfService: undefined, taken: undefined, skippedBy: undefined }
    : node;
  putNode(state, assignPool(state, { ...base, labels: fact.labels, capabilities: fact.capabilities }), sequence);
  reassignShared(state, sequence);
}

/**
 * A rendering that has not started becomes outdated when one of its nodes is relabelled or leaves. The merger renders
 * again. A review of the old attempt may still arrive.
 */
function outdate(state: State, node: string): void {
  for (const name of [...state.openChanges]) {
    const change = state.changes.get(name);
    if (change !== undefined && !change.started && Object.hasOwn(change.targets, node))
      patchChange(state, name, { attempt: 0 });
  }
}

function rendered(state: State, fact: FactOf<'node.rendered'>, { sequence }: Entry): void {
  for (const change of fact.outdatedIn) patchTarget(state, change, fact.node, { left: true });
  const node = nodeOf(state, fact.node);
  const left = node.change !== undefined && fact.outdatedIn.includes(node.change) ? leftRollout(node) : node;
  putNode(state, { ...left, rendered: { hash: fact.hash, recipe: fact.recipe } }, sequence);
}

function reviewed(state: State, fact: FactOf<'node.reviewed'>, { sequence }: Entry): void {
  const node = nodeOf(state, fact.node);
  if (node.rendered?.hash !== fact.hash) return;
  const desired = fact.compatible ? { ...node.rendered, joining: node.report?.hash !== fact.hash } : undefined;
  // An incompatible node is shown as such.
  const deferred = fact.compatible && node.report?.hash !== fact.hash ? node.deferred : undefined;
  putNode(state, { ...node, rendered: undefined, desired, incompatible: fact.reasons, deferred }, sequence);
}

/** What a failed change leaves behind stays until another one is applied. */
function notUndoneAfter(
  { notUndone: before }: NodeState,
  { verdict, notUndone }: NonNullable<ReturnType<typeof takenReport>>,
): readonly string[] {
  if (verdict === 'applied') return notUndone;
  return verdict === 'failed' || verdict === 'invalid' ? [...new Set([...before, ...notUndone])] : before;
}

/** A node that did not answer reports that the lease changed nothing. */
function notStarted(state: State, { change, id }: Lease, node: string): void {
  const startedBy = state.targets.get(targetKey(change, node))?.startedBy;
  if (startedBy === id) patchTarget(state, change, node, { startedBy: undefined });
}

/** Updates a node from a recorded report: from `node.reported`, or from the lease that the report settled. */
export function reported(state: State, fact: RecordedReport, at: string): NodeState {
  state.cursor.set(Math.max(state.cursor.get(), fact.reportSequence));
  const node = nodeOf(state, fact.node);
  const { incarnation, nonce, seq, hash, lease: id, verdict, reason, restored, fresh, untouched = false } = fact;
  const { unavailable, leftovers } = fact;
  const bootId = fact.bootId === '' ? (node.report?.bootId ?? '') : fact.bootId;
  const report = {
    incarnation,
    nonce,
    seq,
    hash,
    lease: id,
    verdict,
    reason,
    restored,
    bootId,
    fresh,
    untouched,
    unavailable,
    leftovers,
  };
  const lease =
    node.lease?.id === id && !isOpen(node.lease) && !node.lease.answered
      ? { ...node.lease, answered: true }
      : node.lease;
  // Until a lease is over, a report that does not name it may be about the time before it.
  const unsure = node.unsure && node.lease !== undefined && node.lease.id !== id;
  if (untouched && lease?.id === id) notStarted(state, lease, fact.node);
  const deferred = node.change === undefined && node.desired?.hash === hash ? undefined : node.deferred;
  const desired = node.desired?.hash === hash ? { ...node.desired, joining: false } : node.desired;
  return {
    ...node,
    report,
    unsure,
    drift: driftAfter(node, fact, at),
    notUndone: notUndoneAfter(node, fact),
    deferred,
    desired,
    lease,
    retry: node.report?.unavailable !== undefined && unavailable === undefined ? dueNow(node) : node.retry,
  };
}

/** A target that answers again gets its config at once. */
const dueNow = (node: NodeState): NodeState['retry'] =>
  isTarget(node) && node.retry?.kind === 'later' ? undefined : node.retry;

type RecordedReport = NonNullable<ReturnType<typeof takenReport>>;

/** Drift is how a node differs from its config in force: with another config, it is not known until the next check. */
function driftAfter(node: NodeState, { report, differences, hash }: RecordedReport, at: string): NodeState['drift'] {
  if (report === 'drifted')
    return differences.length === 0 ? undefined : { differences, since: node.drift?.since ?? at };
  return report === 'applied' || hash !== node.report?.hash ? undefined : node.drift;
}
