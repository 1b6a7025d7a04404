import { byAge, changeSequence, fragmentId, type FactOf, type FragmentRef } from '#libs/contracts';
import { folding, viewKey, type FactTable } from '#libs/engine';
import { boundValuesId, sameLabels, selectorOf } from '#libs/manifests';
import { kindIn } from '#libs/rules';
import { nodeJoined, nodeLeft, nodeRendered, nodesCommitted, nodeSilent, NODE_FACTS } from './node-progress.js';
import { bindingsKey, forgetValues, noteCommitted, noteValues, showBindings, valueUsersOf } from './bindings.js';
import { forgetNames, notePublished, usersOf } from './names.js';
import { configsOutdated, nextSelectors, noteTried } from './possible-configs.js';
import { selectedBy } from './selection.js';
import {
  dayOf,
  MOST_SOURCES,
  newChange,
  quotaOf,
  touchedIds,
  useKey,
  useOn,
  withoutContent,
  withoutTarget,
  type Basis,
  type Change,
  type NodeState,
  type State,
} from './state.js';

/**
 * How many ended changes are kept and shown, besides those that can be rolled back. Those that were rolled out count
 * apart, so that no flood of rejected changes hides them. Of the others, more are kept than one decision can end, so
 * that each of them is shown.
 */
const KEPT_ROLLED_OUT = 200;
const KEPT_OTHERS = 600;
/** For how long the first use of an id is remembered, and the most of them. */
export const REMEMBERED_MS = 24 * 3_600_000;
const MOST_REMEMBERED = 10_000;

const NO_NEEDS = { needs: [], needsUntilMs: 0 };

/** How each fact changes the fold of the merger. */
const FACTS: FactTable<State> = {
  'config.accepted': accept,
  'config.deduplicated': deduplicate,
  'config.waiting': (state, { change, waitsFor }) => patch(state, change, { ...NO_NEEDS, phase: 'waiting', waitsFor }),
  'config.blocked': (state, { change, needs, untilMs: needsUntilMs }) =>
    patch(state, change, { phase: 'waiting', waitsFor: [], needs, needsUntilMs }),
  'config.rendered': (state, { change, attempt, nodes, unchanged, pools, replaces, warnings }, { targets = {} }) => {
    state.targets.set(change, targets);
    const counts = { attempt, nodes, unchanged, pools, replaces, warnings };
    patch(state, change, { ...counts, ...NO_NEEDS, phase: 'rendered', waitsFor: [], outdated: false });
  },
  'config.validated': (state, fact) => {
    const warnings = [...(state.changes.get(fact.change)?.warnings ?? []), ...fact.warnings];
    patch(state, fact.change, { phase: 'validated', warnings, incompatible: fact.incompatible });
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
    nodeLeft(state, node);
    for (const table of [state.nodes, state.desired, state.toRender, state.failing]) table.delete(node);
    state.touched.add(bindingsKey(node));
    outdateNeeding(state, node);
    alterNodes(state);
    outdate(state, node);
    for (const change of [...state.targets.keys()]) leaveTargets(state, change, node);
  },
  'node.rendered': (state, fact) => {
    const { node, hash, recipe, outdatedIn } = fact;
    state.toRender.delete(node);
    alterQueue(state);
    state.desired.set(node, { hash, recipe });
    for (const change of outdatedIn) leaveTargets(state, change, node);
    nodeRendered(state, fact);
  },
  ...NODE_FACTS,
  'node.silent': (state, { node }) => {
    nodeSilent(state, node);
    // A change does not wait for the values of a node that will not report them.
    outdateNeeding(state, node);
  },
  'rollout.started': (state, { change }) => patch(state, change, { phase: 'rolling', rollout: 'rolling' }),
  'rollout.complete': (state, { change }) => patch(state, change, { phase: 'rolling', rollout: 'complete' }),
  'rollout.paused': (state, { change, by, reason }) =>
    patch(state, change, { paused: `by ${by}${reason === '' ? '' : `: ${reason}`}` }),
  'rollout.resumed': (state, { change }) => patch(state, change, { paused: '' }),
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
  const { change, source, strategy = {}, messageId, storedMs = 0, bytes, at: acceptedAt } = fact;
  state.changes.set(change, { ...newChange({ ...fact, strategy }, source), change, acceptedAt });
  state.openChanges.add(change);
  alterQueue(state);
  state.cursor.set(Math.max(state.cursor.get(), changeSequence(change)));
  state.touched.add(viewKey('changes', change));
  if (bytes !== undefined) countUse(state, source, storedMs, { bytes });
  notePublished(state, fact);
  noteValues(state, fact);
  showBindings(state, fact);
  if (messageId === undefined) return;
  const { id, digest } = messageId;
  state.firstUses.set(useKey(source, id), { change, digest, storedMs });
  forgetUses(state, storedMs);
}

function countUse(state: State, source: string, storedMs: number, more: { bytes?: number; refusals?: number }): void {
  const { usage } = state;
  const day = dayOf(storedMs);
  if (!usage.has(source) && usage.size >= MOST_SOURCES)
    for (const [name, use] of [...usage.entries()]) if (use.day < day) usage.delete(name);
  const { bytes, refusals } = useOn(state, source, storedMs);
  const { bytes: moreBytes = 0, refusals: moreRefusals = 0 } = more;
  usage.set(quotaOf(state, source), { day, bytes: bytes + moreBytes, refusals: refusals + moreRefusals });
}

/** Forgets ids that may be used again, or else the oldest half of the source that uses the most. */
function forgetUses({ firstUses }: State, nowMs: number): void {
  if (firstUses.size <= MOST_REMEMBERED) return;
  for (const [key, { storedMs }] of [...firstUses.entries()])
    if (nowMs - storedMs > REMEMBERED_MS) firstUses.delete(key);
  if (firstUses.size <= MOST_REMEMBERED) return;
  const bySource = Map.groupBy(firstUses.entries(), ([key]) => key.split('/', 1)[0] as string);
  const [most = []] = [...bySource.values()].sort((a, b) => b.length - a.length);
  // Forgetting a few at a time would sort them all for each message.
  const uses = most.length > MOST_REMEMBERED / 10 ? most : [...firstUses.entries()];
  uses.sort(([, a], [, b]) => a.storedMs - b.storedMs || byAge(a.change, b.change));
  for (const [key] of uses.slice(0, uses.length / 2)) firstUses.delete(key);
}

const NOTHING = { apply: [], delete: [], message: '', author: '', retryOf: '' };

function deduplicate(state: State, fact: FactOf<'config.deduplicated'>): void {
  const { change, source, duplicateOf, at: endedAt } = fact;
  accept(state, { ...fact, ...NOTHING, type: 'config.accepted' });
  const reason = `${source} published it before, as ${duplicateOf}`;
  close(state, change, { phase: 'ended', outcome: 'duplicate', duplicateOf, reason, endedAt });
}

function reject(state: State, fact: FactOf<'config.rejected'>): void {
  if (fact.stage === 'schema') {
    const { source = '', message = '', author = '', storedMs = 0, bytes } = fact;
    accept(state, { ...fact, ...NOTHING, source, message, author, type: 'config.accepted' });
    // Only what exceeds the quota does not count for it.
    if (bytes === undefined) countUse(state, source, storedMs, { refusals: 1 });
  }
  close(state, fact.change, { phase: 'rejected', reasons: fact.reasons, outcome: 'rejected', endedAt: fact.at });
}

function patch(state: State, name: string, change: Partial<Change>): void {
  const before = state.changes.get(name);
  if (before === undefined) return;
  state.changes.set(name, { ...before, ...change });
  alterQueue(state);
  if (change.rollout !== undefined || change.open === false) state.countAgain();
  state.touched.add(viewKey('changes', name));
}

function close(state: State, name: string, change: Partial<Change>): void {
  const before = state.changes.get(name);
  if (before !== undefined) showBindings(state, before);
  if (before !== undefined && before.rollout !== 'none') noteTried(state, before);
  if (before !== undefined)
    patch(state, name, {
      ...withoutContent({ ...before, ...change }),
      open: false,
      waitsFor: [],
      paused: '',
      ...NO_NEEDS,
    });
  state.openChanges.delete(name);
  state.targets.delete(name);
  if (state.changes.size - state.openChanges.size > (KEPT_ROLLED_OUT + KEPT_OTHERS) * 2 + state.lastOf.size)
    forgetOldest(state);
}

function forgetOldest(state: State): void {
  // Sort by age: undoing a decision can change the order of the table.
  const ended = [...state.changes.values()].filter(({ open }) => !open).sort((a, b) => byAge(b.change, a.change));
  const others = ended.filter(({ rollout }) => rollout === 'none');
  for (const { change } of [...others.slice(KEPT_OTHERS), ...replaced(state, ended).slice(KEPT_ROLLED_OUT)]) {
    state.changes.delete(change);
    state.touched.add(viewKey('changes', change));
  }
}

/**
 * The changes that were rolled out, newest first, without those that say what became of a fragment last: those can be
 * rolled back, or failed, and the gateway must not publish the same again.
 */
function replaced(state: State, newestFirst: readonly Change[]): readonly Change[] {
  const later = new Set<string>();
  return newestFirst.filter((change) => {
    if (change.rollout === 'none') return false;
    const ids = touchedIds(change);
    const isReplaced = !state.lastOf.has(change.change) && ids.every((id) => later.has(id));
    for (const id of ids) later.add(id);
    return isReplaced;
  });
}

function commit(state: State, fact: FactOf<'config.committed'>): void {
  const change = state.changes.get(fact.change);
  if (change === undefined) return;
  showBindings(state, change);
  const targets = state.targets.get(fact.change) ?? {};
  const { generation } = fact;
  for (const [node, { to: hash, recipe }] of Object.entries(targets)) {
    const from = state.desired.get(node)?.renderedFrom;
    state.desired.set(node, { hash, recipe, ...(from && { renderedFrom: { ...from, generation } }) });
  }
  // Check the old and the new version: a node that only the old one selected also gets a new config.
  for (const node of state.nodes.values())
    if (!Object.hasOwn(targets, node.node) && selectedBy(state, change, node)) renderAfterCommit(state, node);
  // Render them again: the review then says that they are incompatible, and why.
  for (const name of change.incompatible) {
    const node = state.nodes.get(name);
    if (node !== undefined && Object.hasOwn(targets, name)) renderAfterCommit(state, node, { generation });
  }
  for (const user of [...usersOf(state, change), ...valueUsersOf(state, change)]) reach(state, fragmentId(user), fact);
  for (const ref of change.delete) remove(state, fragmentId(ref), fact);
  forgetNames(state, change);
  forgetValues(state, change.delete);
  for (const fragment of change.apply) {
    const id = fragmentId(fragment);
    const before = state.fragments.get(id);
    state.lastTouched(id, fact.change);
    // A rollback gives a fragment back to the source that had it.
    const former = change.rollbackOf === undefined ? undefined : (before?.replaced ?? state.goneFragments.get(id));
    const replaced = before && { fragment: before.fragment, source: before.source };
    const source = former?.source ?? change.source;
    const next = { since: generation, selector: selectorOf(fragment) };
    const selectors = nextSelectors(before ?? state.goneFragments.get(id), next);
    const row = { fragment, change: fact.change, source, generation, selectors, appliedAt: fact.at };
    state.fragments.set(id, { ...row, ...(replaced && { replaced }) });
    state.fragmentIds.add(id);
    noteCommitted(state, id, fragment);
    state.goneFragments.delete(id);
  }
  for (const id of touchedIds(change)) state.touched.add(viewKey('fragments', id.replace('/', '.')));
  outdateWaiting(state, change);
  passWaiting(state, change);
  state.generation.set(generation);
  nodesCommitted(state, new Set([...Object.keys(targets), ...state.toRender.keys()]), fact);
  close(state, fact.change, { phase: 'committed', outcome: 'committed', generation, endedAt: fact.at });
}

/** If its labels have changed too, that says more: its new labels may select what it has never had. */
function renderAfterCommit(state: State, node: NodeState, desiredFrom?: Basis): void {
  if (state.toRender.has(node.node)) return;
  configsOutdated(state, node, false, desiredFrom);
  state.toRender.set(node.node, 'commit');
}

/** Changes that wait for a fragment of a kind that this change applies are rendered and reviewed again. */
function outdateWaiting(state: State, { apply }: Change): void {
  const kinds = new Set(apply.map(({ kind }) => kind));
  for (const name of state.openChanges) {
    const { needs = [] } = state.changes.get(name) ?? {};
    if (needs.some((need) => kinds.has(kindIn(need)))) patch(state, name, { outdated: true });
  }
}

/** A fragment that looks up a name of the change has changed too, although nobody has published it. */
function reach(state: State, id: string, { generation, at }: FactOf<'config.committed'>): void {
  const row = state.fragments.get(id);
  if (row === undefined) return;
  state.fragments.set(id, { ...row, generation, appliedAt: at });
  state.touched.add(viewKey('fragments', id.replace('/', '.')));
}

/**
 * An older change that still waits leaves what this newer one has touched as it is. It is rendered again: perhaps it
 * needs nothing any more.
 */
function passWaiting(state: State, newer: Change): void {
  const ids = new Set(touchedIds(newer));
  for (const name of [...state.openChanges]) {
    const older = state.changes.get(name);
    if (older?.rollout !== 'none' || byAge(name, newer.change) >= 0) continue;
    const left = touchedIds(older).filter((id) => ids.has(id));
    if (left.length === 0) continue;
    const isKept = (ref: FragmentRef): boolean => !ids.has(fragmentId(ref));
    patch(state, name, {
      apply: older.apply.filter(isKept),
      delete: older.delete.filter(isKept),
      leftTo: { ...older.leftTo, ...Object.fromEntries(left.map((id) => [id, newer.change])) },
      outdated: true,
    });
  }
}

function remove(state: State, id: string, { change, generation, at }: FactOf<'config.committed'>): void {
  const committed = state.fragments.get(id);
  if (committed === undefined) return;
  state.lastTouched(id, change);
  state.fragments.delete(id);
  state.fragmentIds.delete(id);
  noteCommitted(state, id, undefined);
  const { fragment, source } = committed;
  const selectors = nextSelectors(committed, { since: generation });
  state.goneFragments.set(id, { fragment, source, change, generation, selectors, appliedAt: at });
}

function present(state: State, { node, labels, capabilities }: FactOf<'node.joined' | 'node.changed'>): void {
  const before = state.nodes.get(node);
  const isRelabelled = before !== undefined && !sameLabels(before.labels, labels);
  if (before !== undefined) configsOutdated(state, before, isRelabelled);
  state.nodes.set(node, { node, labels, capabilities });
  state.toRender.set(node, before === undefined ? 'join' : 'relabel');
  state.touched.add(bindingsKey(node));
  if (before === undefined) nodeJoined(state, node);
  alterNodes(state);
  if (isRelabelled) outdate(state, node);
}

function alterNodes(state: State): void {
  state.nodesVersion.set(state.nodesVersion.get() + 1);
  state.countAgain();
  alterQueue(state);
}

/** The next decision must check all changes in the queue again. */
function alterQueue({ progress: { version } }: State): void {
  version.set(version.get() + 1);
}

function leaveTargets(state: State, change: string, node: string): void {
  const targets = state.targets.get(change);
  if (targets === undefined || !Object.hasOwn(targets, node)) return;
  state.targets.set(change, withoutTarget(targets, node));
  alterQueue(state);
  state.countAgain();
}

/** Changes that wait for the values of this node are rendered again. */
function outdateNeeding(state: State, node: string): void {
  const id = boundValuesId(node);
  for (const name of state.openChanges)
    if (state.changes.get(name)?.needs.includes(id) === true) patch(state, name, { outdated: true });
}

/** A rendering that has not started becomes outdated when one of its nodes is relabelled or leaves. */
function outdate(state: State, node: string): void {
  for (const [name, targets] of [...state.targets.entries()]) {
    if (state.changes.get(name)?.rollout === 'none' && Object.hasOwn(targets, node))
      patch(state, name, { outdated: true });
  }
}
