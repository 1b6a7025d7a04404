import { fragmentId, takenReport, type Fact, type FactOf } from '#libs/contracts';
import type { FactTable } from '#libs/engine';
import { selectorOf, selects } from '#libs/manifests';
import { UNKNOWN, type Behind, type Change, type NodeState, type NotReady, type State, type Work } from './state.js';

/** How the leases and reports of nodes change what is known about their configs. */
export const NODE_FACTS: FactTable<State> = {
  'node.lease.granted': (state, { node, change }) => {
    const last = state.generation.get();
    const { first = last, leases = 0 } = state.unanswered.get(node) ?? {};
    state.unanswered.set(node, { first, last, leases: leases + 1 });
    setWork(state, node, { change, state: 'applying' });
  },
  'node.lease.settled': settled,
  'node.reported': (state, fact) => {
    // While a lease is running, a report may be about the time before it.
    if (state.work.get(fact.node)?.state !== 'applying') answered(state, fact.node);
    noteReport(state, fact);
  },
  'node.deferred': (state, { node, change }) => setWork(state, node, { change, state: 'deferred' }),
  'node.skipped': (state, { node, change }) => setWork(state, node, { change, state: 'deferred' }),
  'node.reviewed': (state, { node, compatible }) => {
    if (!compatible) setWork(state, node, { change: '', state: 'deferred' });
  },
  'node.heard': (state, { node }) => setReady(state, node, 'silent', true),
  'node.unavailable': (state, { node }) => setReady(state, node, 'unavailable', false),
  'node.available': (state, { node }) => setReady(state, node, 'unavailable', true),
  'node.taken': (state, { node }) => setReady(state, node, 'taken', false),
  'node.returned': (state, { node }) => setReady(state, node, 'taken', true),
  'node.unhealthy': (state, { node, failingProbes }) => {
    state.failing.set(node, failingProbes);
    countAgain(state);
  },
  'node.healthy': (state, { node }) => {
    state.failing.delete(node);
    countAgain(state);
  },
};

/** The counts of some fragments may have changed. */
export function countAgain({ progress: { countsVersion } }: State): void {
  countsVersion.set(countsVersion.get() + 1);
}

export const nodeSilent = (state: State, node: string): void => setReady(state, node, 'silent', false);

/** A node that has joined counts as one that has nothing, and may still have what it had before, until it reports. */
export function nodeJoined(state: State, node: string): void {
  setBehind(state, node, { generation: UNKNOWN, change: '' });
}

/** So many earlier sets of labels are remembered. The first of them say most about what the node has. */
const MOST_FORMER = 8;

/** Until it gets its config again, the node has what its labels selected before. */
export function nodeRelabelled(state: State, { node, labels }: Pick<NodeState, 'node' | 'labels'>): void {
  const former = state.former.get(node) ?? [];
  const generation = state.behind.get(node)?.generation ?? state.generation.get();
  if (former.length < MOST_FORMER) state.former.set(node, [...former, { labels, generation }]);
}

export function nodeLeft(state: State, node: string): void {
  for (const table of [state.behind, state.work, state.former, state.unanswered]) table.delete(node);
  // What it reported stays true if it joins again.
  for (const why of ['silent', 'unavailable', 'taken'] as const) setReady(state, node, why, true);
  countAgain(state);
}

/** The config of the node from the committed state was rendered outside a rollout. */
export function nodeRendered(state: State, { node, hash, cause, generation, at }: FactOf<'node.rendered'>): void {
  if (state.inForce.get(node) === hash) return upToDate(state, node, at);
  if (cause === 'commit' && state.behind.has(node)) return;
  forgetWork(state, node);
  if (cause === 'commit') setBehind(state, node, { generation: generation - 1, change: '' });
  // Which fragments are the same for the new labels is not known here.
  else setBehind(state, node, { generation: UNKNOWN, change: '' });
}

/** Call this after the tables say what was committed. */
export function nodesCommitted(state: State, targets: Iterable<string>, fact: FactOf<'config.committed'>): void {
  const { change, generation, at } = fact;
  for (const node of targets) {
    if (!state.nodes.has(node)) continue;
    const behind = state.behind.get(node);
    if (state.inForce.get(node) === state.desired.get(node)?.hash && !state.toRender.has(node)) {
      // The usual case, for thousands of nodes: only the fragments of this change are new there.
      if (behind?.change === change && behind.generation === generation - 1)
        for (const table of [state.behind, state.former]) table.delete(node);
      else upToDate(state, node, at);
    } else if (behind === undefined) setBehind(state, node, { generation: generation - 1, change: '' });
  }
  countAgain(state);
}

function settled(state: State, fact: FactOf<'node.lease.settled'>): void {
  const { node, change, because } = fact;
  noteAnswer(state, fact);
  noteReport(state, fact);
  switch (because) {
    case 'invalid':
    case 'failed':
    case 'escalated':
    case 'unknown':
      return setWork(state, node, { change, state: 'failed' });
    case 'unreachable':
    case 'skipped':
      return setWork(state, node, { change, state: 'deferred' });
    case 'applied':
    case 'left':
    case 'stale':
    case 'cancelled':
      state.work.delete(node);
      return countAgain(state);
  }
}

/** A lease that is cancelled was still waiting for its drain: the node never got its config. */
function noteAnswer(state: State, fact: FactOf<'node.lease.settled'>): void {
  const isUntouched = fact.because === 'cancelled' && state.unanswered.get(fact.node)?.leases === 1;
  if (isUntouched || takenReport(fact) !== undefined) answered(state, fact.node);
}

/** The node may have had a deleted fragment until now. */
function answered(state: State, node: string): void {
  if (!state.unanswered.has(node)) return;
  state.unanswered.delete(node);
  countAgain(state);
}

function noteReport(state: State, fact: Fact): void {
  const report = takenReport(fact);
  if (report === undefined) return;
  const { node, hash } = report;
  setReady(state, node, 'degraded', report.restored);
  if (report.report === 'drifted') setDrift(state, node, report.differences);
  else if (report.report === 'applied' || hash !== state.inForce.get(node)) setDrift(state, node, []);
  if (state.inForce.get(node) === hash) return;
  state.inForce.set(node, hash);
  // Its first report may be read before it has joined.
  if (!state.nodes.has(node)) return;
  if (state.desired.get(node)?.hash === hash) return upToDate(state, node, fact.at);
  const change = rollingTo(state, node, hash);
  const generation = change === undefined ? UNKNOWN : state.generation.get();
  // A rollout gives it what its labels select now.
  if (change === undefined) forgetWork(state, node);
  else state.former.delete(node);
  setBehind(state, node, { generation, change: change?.change ?? '' });
}

/** The change whose rollout gives the node this config. */
function rollingTo(state: State, node: string, hash: string): Change | undefined {
  for (const [name, targets] of state.targets.entries()) {
    const change = state.changes.get(name);
    if (change?.rollout !== 'none' && Object.hasOwn(targets, node) && targets[node]?.to === hash) return change;
  }
  return undefined;
}

/** The node has the config of the committed state. What it did not have before has reached it now. */
function upToDate(state: State, node: string, at: string): void {
  const behind = state.behind.get(node);
  for (const table of [state.behind, state.former]) table.delete(node);
  countAgain(state);
  const labels = state.nodes.get(node)?.labels;
  if (behind === undefined || labels === undefined || behind.generation === state.generation.get()) return;
  for (const row of [...state.fragments.values()])
    if (row.generation > behind.generation && selects(selectorOf(row.fragment), labels))
      state.fragments.set(fragmentId(row.fragment), { ...row, appliedAt: at });
}

/** A node that was up to date is so no longer. How a lease of a change that was rolled back ended does not matter. */
function forgetWork(state: State, node: string): void {
  const work = state.work.get(node);
  if (work === undefined || work.state === 'applying' || state.behind.has(node)) return;
  const change = state.changes.get(work.change);
  if (change?.open !== true && change?.phase !== 'committed') state.work.delete(node);
}

function setBehind(state: State, node: string, behind: Behind): void {
  state.behind.set(node, behind);
  countAgain(state);
}

function setWork(state: State, node: string, work: Work): void {
  if (!state.nodes.has(node)) return;
  state.work.set(node, work);
  countAgain(state);
}

function setDrift(state: State, node: string, differences: readonly string[]): void {
  if (differences.length === 0 && !state.drift.has(node)) return;
  if (differences.length > 0) state.drift.set(node, differences);
  else state.drift.delete(node);
  countAgain(state);
}

function setReady(state: State, node: string, why: NotReady, isReady: boolean): void {
  const before = state.notReady.get(node) ?? [];
  if (before.includes(why) === !isReady) return;
  const after = isReady ? before.filter((one) => one !== why) : [...before, why];
  if (after.length > 0) state.notReady.set(node, after);
  else state.notReady.delete(node);
  countAgain(state);
}
