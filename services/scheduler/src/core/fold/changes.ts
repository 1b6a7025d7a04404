import type { Entry } from '#libs/kernel';
import { carriedPolicies } from '#libs/policy';
import { fragmentId, type FactOf } from '#libs/contracts';
import { putNode, reassignAll, recountRollout } from '../indexes.js';
import { targetKey, type Change, type State } from '../state.js';
import { patchChange, drop, leftRollout, touchBudgets } from './patches.js';

/** Ended changes and rollouts that are kept for questions about them. */
const KEPT_ENDED = 200;

/** Folds what is said of changes and configs. */
export function evolveConfig(state: State, { sequence, fact, targets }: Entry): void {
  switch (fact.type) {
    case 'config.accepted':
      state.changes.set(fact.change, newChange(fact));
      state.openChanges.add(fact.change);
      return;
    case 'config.rendered':
      return patchChange(state, fact.change, {
        attempt: fact.attempt,
        targets: targets ?? {},
        replaces: fact.replaces,
        validated: undefined,
      });
    case 'config.waiting':
      // It was rendered, and something came before it after all: that attempt counts no more, though its review may still come.
      return patchChange(state, fact.change, { attempt: 0 });
    case 'config.validated':
      return patchChange(state, fact.change, { validated: { attempt: fact.attempt, sequence, unfit: fact.unfit } });
    case 'config.rejected':
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
    policies: carried.apply,
    policyDeletes: carried.delete,
    maxFailures: fact.strategy?.maxFailures,
    attempt: 0,
    targets: {},
    replaces: [],
    validated: undefined,
  };
}

function endChange(state: State, name: string): void {
  touchBudgets(state, name);
  patchChange(state, name, { open: false, targets: {} });
  state.openChanges.delete(name);
  const rollout = state.rollouts.get(name);
  if (rollout !== undefined && rollout.phase !== 'complete') drop(state, name);
  forgetOldest(state);
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
    const keeps = !node.joined || unfit.has(name);
    const desired = keeps ? node.desired : { hash: target.to, recipe: target.recipe, joining: false };
    putNode(
      state,
      leftRollout({
        ...node,
        desired,
        owed: target.owed || node.owed,
        ...(keeps ? {} : { rendered: undefined, unfit: [] }),
      }),
      sequence,
    );
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
