import { byAge, changeSequence, fragmentId, type FactOf, type FactType } from '#libs/contracts';
import { viewKey, type Entry } from '#libs/kernel';
import { isPolicyKind } from '#libs/manifests';
import { selectedBy } from './selection.js';
import { touchedIds, withoutTarget, type Change, type RolloutPhase, type State } from './state.js';

/** The facts that the merger's fold uses. */
export const READS: readonly FactType[] = [
  'config.accepted',
  'config.waiting',
  'config.rendered',
  'config.validated',
  'config.rejected',
  'config.committed',
  'config.ended',
  'config.judged',
  'config.forgiven',
  'node.joined',
  'node.left',
  'node.changed',
  'node.rendered',
  'node.owed',
  'node.lease.settled',
  'rollout.started',
  'rollout.aborted',
  'rollout.reverting',
  'rollout.reverted',
  'rollout.complete',
  'rollout.superseded',
];

/** Ended changes that are kept for questions about them. */
const KEPT_ENDED = 200;

/** Folds one fact of the ledger. */
export function evolve(state: State, entry: Entry): void {
  const { fact } = entry;
  if (fact.type.startsWith('config.')) evolveConfig(state, entry);
  else if (fact.type.startsWith('node.')) evolveNode(state, entry);
  else if (fact.type.startsWith('rollout.')) evolveRollout(state, entry);
}

function evolveConfig(state: State, { fact, targets }: Entry): void {
  switch (fact.type) {
    case 'config.accepted':
      return accept(state, fact);
    case 'config.waiting':
      return patch(state, fact.change, { phase: 'waiting', behind: fact.behind });
    case 'config.rendered': {
      const { attempt, nodes, unchanged, pools, replaces, warnings } = fact;
      state.targets.set(fact.change, targets ?? {});
      return patch(state, fact.change, {
        phase: 'rendered',
        behind: [],
        attempt,
        outdated: false,
        nodes,
        unchanged,
        pools,
        replaces,
        warnings,
      });
    }
    case 'config.validated': {
      const warnings = [...(state.changes.get(fact.change)?.warnings ?? []), ...fact.warnings];
      return patch(state, fact.change, { phase: 'validated', warnings });
    }
    case 'config.rejected':
      return reject(state, fact);
    case 'config.committed':
      return commit(state, fact);
    case 'config.ended':
      return close(state, fact.change, {
        phase: 'ended',
        outcome: fact.outcome,
        reason: fact.reason,
        endedAt: fact.at,
      });
    case 'config.judged':
      if (fact.condemned) for (const key of [fact.hash, fact.recipe]) if (key !== '') state.condemned.set(key, true);
      return;
    case 'config.forgiven':
      for (const key of [fact.hash, fact.recipe]) state.condemned.delete(key);
      return;
    default:
      return;
  }
}

function accept(state: State, fact: FactOf<'config.accepted'>): void {
  const { change, source, apply, message, author, retryOf } = fact;
  const unknown = {
    phase: 'accepted',
    open: true,
    rollout: 'none',
    aborted: false,
    behind: [],
    attempt: 0,
    outdated: true,
    replaces: [],
  } as const;
  const empty = {
    nodes: 0,
    unchanged: 0,
    pools: {},
    reasons: [],
    warnings: [],
    outcome: '',
    reason: '',
    generation: 0,
    acceptedAt: fact.at,
    endedAt: '',
  };
  state.changes.set(change, {
    change,
    source,
    apply,
    delete: fact.delete,
    message,
    author,
    strategy: fact.strategy ?? {},
    retryOf,
    ...unknown,
    ...empty,
  });
  state.openChanges.add(change);
  state.cursor.set(Math.max(state.cursor.get(), changeSequence(change)));
  state.touched.add(viewKey('changes', change));
}

function reject(state: State, fact: FactOf<'config.rejected'>): void {
  if (fact.stage === 'form') {
    state.cursor.set(Math.max(state.cursor.get(), changeSequence(fact.change)));
    accept(state, {
      ...fact,
      type: 'config.accepted',
      source: '',
      apply: [],
      delete: [],
      message: '',
      author: '',
      retryOf: '',
    });
  }
  close(state, fact.change, { phase: 'rejected', reasons: fact.reasons, outcome: 'rejected', endedAt: fact.at });
}

function patch(state: State, name: string, change: Partial<Change>): void {
  const before = state.changes.get(name);
  if (before === undefined) return;
  state.changes.set(name, { ...before, ...change });
  state.touched.add(viewKey('changes', name));
}

function close(state: State, name: string, change: Partial<Change>): void {
  patch(state, name, { ...change, open: false, behind: [] });
  state.openChanges.delete(name);
  state.targets.delete(name);
  if (state.changes.size <= KEPT_ENDED * 2) return;
  // By age, and not as they stand in the table: what a decision tried and took back stands in another order there.
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
  // Before and after: a node that an old version selected gets something else now, too.
  for (const node of state.nodes.values())
    if (targets[node.node] === undefined && selectedBy(state, change, node)) state.toRender.set(node.node, 'commit');
  for (const ref of change.delete) remove(state, fragmentId(ref), fact.change);
  for (const fragment of change.apply) {
    state.fragments.set(fragmentId(fragment), { fragment, change: fact.change });
    state.goneFragments.delete(fragmentId(fragment));
  }
  for (const id of touchedIds(change)) state.touched.add(viewKey('fragments', id.replace('/', '.')));
  state.generation.set(fact.generation);
  close(state, fact.change, {
    phase: 'committed',
    outcome: 'committed',
    generation: fact.generation,
    endedAt: fact.at,
  });
}

function remove(state: State, id: string, change: string): void {
  const committed = state.fragments.get(id);
  if (committed === undefined) return;
  state.fragments.delete(id);
  state.goneFragments.set(id, { ...committed, change });
}

function evolveNode(state: State, { fact }: Entry): void {
  switch (fact.type) {
    case 'node.joined':
    case 'node.changed': {
      const known = state.nodes.has(fact.node);
      const relabelled =
        JSON.stringify(sorted(state.nodes.get(fact.node)?.labels)) !== JSON.stringify(sorted(fact.labels));
      state.nodes.set(fact.node, { node: fact.node, labels: fact.labels, capabilities: fact.capabilities });
      state.toRender.set(fact.node, known ? 'relabel' : 'join');
      state.nodesVersion.set(state.nodesVersion.get() + 1);
      if (known && relabelled) outdate(state, fact.node);
      return;
    }
    case 'node.left':
      state.nodes.delete(fact.node);
      state.desired.delete(fact.node);
      state.toRender.delete(fact.node);
      state.owed.delete(fact.node);
      state.nodesVersion.set(state.nodesVersion.get() + 1);
      outdate(state, fact.node);
      for (const change of [...state.targets.keys()]) leaveTargets(state, change, fact.node);
      return;
    case 'node.rendered':
      state.toRender.delete(fact.node);
      state.desired.set(fact.node, { hash: fact.hash, recipe: fact.recipe });
      for (const change of fact.leaves) leaveTargets(state, change, fact.node);
      return;
    case 'node.owed':
      return state.owed.set(fact.node, true);
    case 'node.lease.settled':
      if (fact.because === 'applied') state.owed.delete(fact.node);
      return;
    default:
      return;
  }
}

function leaveTargets(state: State, change: string, node: string): void {
  const targets = state.targets.get(change);
  if (targets?.[node] !== undefined) state.targets.set(change, withoutTarget(targets, node));
}

const sorted = (labels: Readonly<Record<string, string>> | undefined): readonly unknown[] =>
  Object.entries(labels ?? {}).sort();

/** A rendering that was not started yet does not survive a relabel or a leave of a node that it touches. */
function outdate(state: State, node: string): void {
  for (const [name, targets] of [...state.targets.entries()]) {
    if (state.changes.get(name)?.rollout === 'none' && targets[node] !== undefined)
      patch(state, name, { outdated: true });
  }
}

function evolveRollout(state: State, { fact }: Entry): void {
  const phases: Partial<Record<FactType, RolloutPhase>> = {
    'rollout.started': 'rolling',
    'rollout.complete': 'complete',
    'rollout.reverting': 'reverting',
    'rollout.reverted': 'reverted',
    'rollout.superseded': 'superseded',
  };
  if (fact.type === 'rollout.aborted') return patch(state, fact.change, { aborted: true, reason: fact.reason });
  const rollout = phases[fact.type];
  if (rollout === undefined || !('change' in fact) || !('reason' in fact)) return;
  patch(state, fact.change, {
    rollout,
    phase: 'rolling',
    ...(rollout === 'rolling' || rollout === 'complete' ? {} : { reason: fact.reason }),
  });
}

/** A change that holds nothing but policies touches no node. */
export const isPolicyOnly = (change: Pick<Change, 'apply' | 'delete'>): boolean =>
  [...change.apply, ...change.delete].every(({ kind }) => isPolicyKind(kind));
