import { fragmentId, takenReport, type Fact, type FactOf } from '#libs/contracts';
import type { FactTable } from '#libs/engine';
import { selectorOf, selects } from '#libs/manifests';
import {
  configReported,
  configsCommitted,
  configsJoined,
  configsLeft,
  leaseApplying,
  leaseOver,
  rollingTo,
} from './possible-configs.js';
import { UNKNOWN, type Behind, type NotReady, type State, type Work } from './state.js';

/** How the leases and reports of nodes change what is known about their configs. */
export const NODE_FACTS: FactTable<State> = {
  'node.lease.granted': (state, fact) => {
    if (fact.phase === 'applying') leaseApplying(state, fact);
    setWork(state, fact.node, { change: fact.change, state: 'applying' });
  },
  // Its node is drained.
  'node.lease.applying': leaseApplying,
  'node.lease.settled': settled,
  'node.lease.released': (state, { node }) => leaseOver(state, node),
  'node.reported': noteReport,
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
    state.countAgain();
  },
  'node.healthy': (state, { node }) => {
    state.failing.delete(node);
    state.countAgain();
  },
};

export const nodeSilent = (state: State, node: string): void => setReady(state, node, 'silent', false);

/** A node that has joined counts as one that has nothing, and may still have what it had before, until it reports. */
export function nodeJoined(state: State, node: string): void {
  setBehind(state, node, { generation: UNKNOWN, change: '' });
  configsJoined(state, node);
}

/** Call this before the tables say so. */
export function nodeLeft(state: State, node: string): void {
  configsLeft(state, node);
  for (const table of [state.behind, state.work]) table.delete(node);
  // What it reported stays true if it joins again.
  for (const why of ['silent', 'unavailable', 'taken'] as const) setReady(state, node, why, true);
  state.countAgain();
}

/** The config of the node from the committed state was rendered outside a rollout. */
export function nodeRendered(state: State, { node, hash, cause, generation, at }: FactOf<'node.rendered'>): void {
  configsCommitted(state, node, { generation: UNKNOWN });
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
    configsCommitted(state, node, { generation: generation - 1 });
    const behind = state.behind.get(node);
    if (state.inForce.get(node) === state.desired.get(node)?.hash && !state.toRender.has(node)) {
      // The usual case, for thousands of nodes: only the fragments of this change are new there.
      if (behind?.change === change && behind.generation === generation - 1) state.behind.delete(node);
      else upToDate(state, node, at);
    } else if (behind === undefined) setBehind(state, node, { generation: generation - 1, change: '' });
  }
  state.countAgain();
}

function settled(state: State, fact: FactOf<'node.lease.settled'>): void {
  const { node, change, because } = fact;
  noteReport(state, fact);
  if (fact.released) leaseOver(state, node);
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
      return state.countAgain();
  }
}

function noteReport(state: State, fact: Fact): void {
  const report = takenReport(fact);
  if (report === undefined) return;
  const { node, hash } = report;
  configReported(state, report);
  setReady(state, node, 'degraded', report.restored);
  setTexts(state, state.leftovers, node, report.leftovers);
  if (report.report === 'drifted') setTexts(state, state.drift, node, report.differences);
  else if (report.report === 'applied' || hash !== state.inForce.get(node)) setTexts(state, state.drift, node, []);
  if (state.inForce.get(node) === hash) return;
  state.inForce.set(node, hash);
  // Its first report may be read before it has joined.
  if (!state.nodes.has(node)) return;
  if (state.desired.get(node)?.hash === hash) return upToDate(state, node, fact.at);
  const change = rollingTo(state, node, hash);
  const generation = change === undefined ? UNKNOWN : state.generation.get();
  if (change === undefined) forgetWork(state, node);
  setBehind(state, node, { generation, change: change?.change ?? '' });
}

/** The node has the config of the committed state. What it did not have before has reached it now. */
function upToDate(state: State, node: string, at: string): void {
  const behind = state.behind.get(node);
  state.behind.delete(node);
  state.countAgain();
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
  state.countAgain();
}

function setWork(state: State, node: string, work: Work): void {
  if (!state.nodes.has(node)) return;
  state.work.set(node, work);
  state.countAgain();
}

function setTexts(state: State, table: State['drift'], node: string, texts: readonly string[]): void {
  if (texts.length === 0 && !table.has(node)) return;
  if (texts.length > 0) table.set(node, texts);
  else table.delete(node);
  state.countAgain();
}

function setReady(state: State, node: string, why: NotReady, isReady: boolean): void {
  const before = state.notReady.get(node) ?? [];
  if (before.includes(why) === !isReady) return;
  const after = isReady ? before.filter((one) => one !== why) : [...before, why];
  if (after.length > 0) state.notReady.set(node, after);
  else state.notReady.delete(node);
  state.countAgain();
}
