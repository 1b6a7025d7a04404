import { byAge, changeSequence, fragmentId, type FactOf } from '#libs/contracts';
import { folding, viewKey, type FactTable } from '#libs/engine';
import { sameLabels } from '#libs/manifests';
import { selectedBy } from './selection.js';
import { newChange, touchedIds, withoutContent, withoutTarget, type Change, type State } from './state.js';

/** How many ended changes are kept, to answer requests about them. */
const KEPT_ENDED = 200;

/** How each fact changes the fold of the merger. */
const FACTS: FactTable<State> = {
  'config.accepted': accept,
  'config.waiting': (state, { change, waitsFor }) => patch(state, change, { phase: 'waiting', waitsFor }),
  'config.rendered': (state, { change, attempt, nodes, unchanged, pools, replaces, warnings }, { targets = {} }) => {
    state.targets.set(change, targets);
    const counts = { attempt, nodes, unchanged, pools, replaces, warnings };
    patch(state, change, { ...counts, phase: 'rendered', waitsFor: [], outdated: false });
  },
  'config.validated': (state, fact) => {
    const warnings = [...(state.changes.get(fact.change)?.warnings ?? []), ...fact.warnings];
    patch(state, fact.change, { phase: 'validated', warnings });
  },
  'config.rejected': reject,
  'config.committed': commit,
  'config.ended': (state, { change, outcome, reason, at: endedAt }) =>
    close(state, change, { phase: 'ended', outcome, reason, endedAt }),
  'config.judged': (state, { knownBad, hash, recipe }) => {
    if (knownBad) for (const key of [hash, recipe]) if (key !== '') state.knownBad.set(key, true);
  },
  'config.cleared': (state, { hash, recipe }) => {
    for (const key of [hash, recipe]) state.knownBad.delete(key);
  },
  'node.joined': present,
  'node.changed': present,
  'node.left': (state, { node }) => {
    for (const table of [state.nodes, state.desired, state.toRender, state.deferred]) table.delete(node);
    alterNodes(state);
    outdate(state, node);
    for (const change of [...state.targets.keys()]) leaveTargets(state, change, node);
  },
  'node.rendered': (state, { node, hash, recipe, outdatedIn }) => {
    state.toRender.delete(node);
    alterQueue(state);
    state.desired.set(node, { hash, recipe });
    for (const change of outdatedIn) leaveTargets(state, change, node);
  },
  'node.deferred': (state, { node }) => state.deferred.set(node, true),
  'node.lease.settled': (state, { node, because }) => {
    if (because === 'applied') state.deferred.delete(node);
  },
  'rollout.started': (state, { change }) => patch(state, change, { phase: 'rolling', rollout: 'rolling' }),
  'rollout.complete': (state, { change }) => patch(state, change, { phase: 'rolling', rollout: 'complete' }),
  'rollout.aborted': (state, { change, reason }) => patch(state, change, { aborted: true, reason }),
  'rollout.reverting': (state, { change, reason }) =>
    patch(state, change, { phase: 'rolling', rollout: 'reverting', reason }),
  'rollout.reverted': (state, { change, reason }) =>
    patch(state, change, { phase: 'rolling', rollout: 'reverted', reason }),
  'rollout.superseded': (state, { change, reason }) =>
    patch(state, change, { phase: 'rolling', rollout: 'superseded', reason }),
};

export const { reads, evolve } = folding(FACTS);

function accept(state: State, fact: FactOf<'config.accepted'>): void {
  const { change, strategy = {}, at: acceptedAt } = fact;
  state.changes.set(change, { ...newChange({ ...fact, strategy }), change, source: fact.source, acceptedAt });
  state.openChanges.add(change);
  alterQueue(state);
  state.cursor.set(Math.max(state.cursor.get(), changeSequence(change)));
  state.touched.add(viewKey('changes', change));
}

function reject(state: State, fact: FactOf<'config.rejected'>): void {
  if (fact.stage === 'schema') {
    state.cursor.set(Math.max(state.cursor.get(), changeSequence(fact.change)));
    const nothing = { source: '', apply: [], delete: [], message: '', author: '', retryOf: '' };
    accept(state, { ...fact, ...nothing, type: 'config.accepted' });
  }
  close(state, fact.change, { phase: 'rejected', reasons: fact.reasons, outcome: 'rejected', endedAt: fact.at });
}

function patch(state: State, name: string, change: Partial<Change>): void {
  const before = state.changes.get(name);
  if (before === undefined) return;
  state.changes.set(name, { ...before, ...change });
  alterQueue(state);
  state.touched.add(viewKey('changes', name));
}

function close(state: State, name: string, change: Partial<Change>): void {
  const before = state.changes.get(name);
  if (before !== undefined)
    patch(state, name, { ...withoutContent({ ...before, ...change }), open: false, waitsFor: [] });
  state.openChanges.delete(name);
  state.targets.delete(name);
  if (state.changes.size - state.openChanges.size <= KEPT_ENDED * 2) return;
  // Sort by age: undoing a decision can change the order of the table.
  const ended = [...state.changes.values()]
    .filter((one) => !one.open)
    .map((one) => one.change)
    .sort(byAge);
  for (const old of ended.slice(0, ended.length - KEPT_ENDED)) state.changes.delete(old);
}

function commit(state: State, fact: FactOf<'config.committed'>): void {
  const change = state.changes.get(fact.change);
  if (change === undefined) return;
  const targets = state.targets.get(fact.change) ?? {};
  for (const [node, target] of Object.entries(targets))
    state.desired.set(node, { hash: target.to, recipe: target.recipe });
  // Check the old and the new version: a node that only the old one selected also gets a new config.
  for (const node of state.nodes.values())
    if (targets[node.node] === undefined && selectedBy(state, change, node)) state.toRender.set(node.node, 'commit');
  for (const ref of change.delete) remove(state, fragmentId(ref), fact.change);
  for (const fragment of change.apply) {
    state.fragments.set(fragmentId(fragment), { fragment, change: fact.change });
    state.fragmentIds.add(fragmentId(fragment));
    state.goneFragments.delete(fragmentId(fragment));
  }
  for (const id of touchedIds(change)) state.touched.add(viewKey('fragments', id.replace('/', '.')));
  state.generation.set(fact.generation);
  const { generation, at: endedAt } = fact;
  close(state, fact.change, { phase: 'committed', outcome: 'committed', generation, endedAt });
}

function remove(state: State, id: string, change: string): void {
  const committed = state.fragments.get(id);
  if (committed === undefined) return;
  state.fragments.delete(id);
  state.fragmentIds.delete(id);
  state.goneFragments.set(id, { ...committed, change });
}

function present(state: State, { node, labels, capabilities }: FactOf<'node.joined' | 'node.changed'>): void {
  const before = state.nodes.get(node);
  state.nodes.set(node, { node, labels, capabilities });
  state.toRender.set(node, before === undefined ? 'join' : 'relabel');
  alterNodes(state);
  if (before !== undefined && !sameLabels(before.labels, labels)) outdate(state, node);
}

function alterNodes(state: State): void {
  state.nodesVersion.set(state.nodesVersion.get() + 1);
  alterQueue(state);
}

/** The next decision must check all changes in the queue again. */
function alterQueue({ progress: { version } }: State): void {
  version.set(version.get() + 1);
}

function leaveTargets(state: State, change: string, node: string): void {
  const targets = state.targets.get(change);
  if (targets?.[node] === undefined) return;
  state.targets.set(change, withoutTarget(targets, node));
  alterQueue(state);
}

/** A rendering that has not started becomes outdated when one of its nodes is relabelled or leaves. */
function outdate(state: State, node: string): void {
  for (const [name, targets] of [...state.targets.entries()]) {
    if (state.changes.get(name)?.rollout === 'none' && targets[node] !== undefined)
      patch(state, name, { outdated: true });
  }
}
