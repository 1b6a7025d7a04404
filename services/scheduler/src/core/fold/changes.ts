import { viewKey, type Entry, type FactTable } from '#libs/engine';
import { carriedPolicies } from '#libs/rules';
import { byAge, fragmentId, type FactOf } from '#libs/contracts';
import { putNode, reassignAll, recountRollout } from '../indexes.js';
import { targetKey, type Change, type NodeState, type State, type TargetState } from '../state.js';
import { patchChange, drop, leftRollout, repool } from './patches.js';

/**
 * How many ended changes are kept, to answer requests about them. Those that were rolled out count apart, so that no
 * flood of other changes hides them.
 */
const KEPT_ROLLED_OUT = 200;
const KEPT_OTHERS = 200;

/** How facts about changes and configs change the fold. */
export const CHANGE_FACTS: FactTable<State> = {
  'config.accepted': (state, fact) => {
    state.changes.set(fact.change, newChange(fact));
    state.openChanges.add(fact.change);
  },
  'config.rendered': (state, { change, attempt, replaces }, { targets = {} }) =>
    patchChange(state, change, { attempt, targets, replaces, validated: undefined }),
  // It was already rendered, but now has to wait: that attempt is outdated, although its review may still arrive.
  'config.waiting': (state, { change }) => patchChange(state, change, { attempt: 0 }),
  'config.validated': (state, { change, attempt, incompatible }, { sequence }) =>
    patchChange(state, change, { validated: { attempt, sequence, incompatible } }),
  'config.rejected': endChange,
  'config.ended': endChange,
  'config.committed': commit,
  'config.judged': (state, { lease, knownBad, hash, recipe }, { sequence }) => {
    state.unjudged.delete(lease);
    if (knownBad) for (const key of [hash, recipe]) if (key !== '') state.knownBad.set(key, true);
    recountRolling(state, sequence);
  },
  'config.cleared': (state, { hash, recipe }, { sequence }) => {
    for (const key of [hash, recipe]) state.knownBad.delete(key);
    recountRolling(state, sequence);
  },
};

/** A change in the known-bad configs can block or unblock targets. */
function recountRolling(state: State, sequence: number): void {
  for (const { change, phase } of [...state.rollouts.values()])
    if (phase === 'rolling') recountRollout(state, change, sequence);
}

function newChange(fact: FactOf<'config.accepted'>): Change {
  const carried = carriedPolicies(fact);
  return {
    change: fact.change,
    open: true,
    started: false,
    aborted: false,
    paused: false,
    pausedBecause: undefined,
    policies: carried.apply,
    policyDeletes: carried.delete,
    maxFailures: fact.strategy?.maxFailures,
    maxUnavailable: fact.strategy?.maxUnavailable,
    attempt: 0,
    targets: {},
    replaces: [],
    validated: undefined,
  };
}

function endChange(state: State, { change: name }: { readonly change: string }, { sequence }: Entry): void {
  const started = state.changes.get(name)?.started === true;
  patchChange(state, name, { open: false, targets: {} });
  state.openChanges.delete(name);
  if (started) repool(state, name, sequence);
  const rollout = state.rollouts.get(name);
  if (rollout !== undefined && rollout.phase !== 'complete') drop(state, name);
  forgetOldest(state);
}

function forgetOldest(state: State): void {
  if (state.changes.size - state.openChanges.size <= (KEPT_ROLLED_OUT + KEPT_OTHERS) * 2) return;
  // Sort by age: undoing a decision can change the order of the table.
  const ended = [...state.changes.values()].filter(({ open }) => !open).sort((a, b) => byAge(b.change, a.change));
  const [rolledOut, others] = [ended.filter(({ started }) => started), ended.filter(({ started }) => !started)];
  for (const { change } of [...rolledOut.slice(KEPT_ROLLED_OUT), ...others.slice(KEPT_OTHERS)]) {
    state.changes.delete(change);
    state.rollouts.delete(change);
    state.touched.add(viewKey('rollouts', change));
  }
}

function commit(state: State, fact: FactOf<'config.committed'>, { sequence }: Entry): void {
  const change = state.changes.get(fact.change);
  const rollout = state.rollouts.get(fact.change);
  if (change === undefined || rollout === undefined) return;
  const incompatible = new Set(change.validated?.incompatible);
  for (const name of rollout.nodes) {
    const target = state.targets.get(targetKey(fact.change, name));
    const node = state.nodes.get(name);
    if (target === undefined || node === undefined) continue;
    if (node.change !== fact.change) {
      keepsCommitted(state, node, target, sequence);
      continue;
    }
    const keeps = !node.joined || incompatible.has(name);
    const desired = keeps ? node.desired : { hash: target.to, recipe: target.recipe, joining: false };
    const deferred = target.deferred ?? node.deferred;
    const left = leftRollout({
      ...node,
      desired,
      deferred,
      ...(keeps ? {} : { rendered: undefined, incompatible: [] }),
    });
    // One that keeps its config lacks the committed one, also before that is reviewed for it.
    putNode(state, incompatible.has(name) ? { ...left, deferred } : left, sequence);
  }
  drop(state, fact.change);
  patchChange(state, fact.change, { open: false, targets: {} });
  state.openChanges.delete(fact.change);
  if (change.policies.length > 0 || change.policyDeletes.length > 0) commitPolicies(state, change, sequence);
  forgetOldest(state);
}

/**
 * A node can leave the rollout after it got the config, for example because it got other labels. It still has what was
 * committed, not what a failed change left behind.
 */
function keepsCommitted(state: State, node: NodeState, { to }: TargetState, sequence: number): void {
  if (node.report?.hash === to) putNode(state, { ...node, lastDesired: to }, sequence);
}

function commitPolicies(state: State, change: Change, sequence: number): void {
  for (const ref of change.policyDeletes) state.policies.delete(fragmentId(ref));
  for (const fragment of change.policies) state.policies.set(fragmentId(fragment), fragment);
  state.policyVersion.set(sequence);
  reassignAll(state, sequence);
}
