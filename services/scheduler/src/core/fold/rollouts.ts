import { viewKey, type Entry } from '#libs/kernel';
import type { FactOf } from '#libs/contracts';
import { putNode } from '../indexes.js';
import { nodeOf, targetKey, type Rollout, type State } from '../state.js';
import { patchChange, patchRollout, drop, leftRollout, touchBudgets } from './patches.js';

/** Folds what is said of rollouts. */
export function evolveRollout(state: State, { sequence, fact }: Entry): void {
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
    change: fact.change,
    phase: 'rolling',
    paused: change.paused,
    aborted: false,
    maxFailures: fact.maxFailures,
    failed: 0,
    unknown: 0,
    reason: '',
    nodes: Object.keys(change.targets).sort(),
    stalledBy: '',
    startedAt: fact.at,
    endedAt: '',
    supersededBy: '',
    frozen: undefined,
  };
  state.rollouts.set(fact.change, rollout);
  patchChange(state, fact.change, { started: true });
  for (const [name, { from, to, recipe }] of Object.entries(change.targets)) {
    state.targets.set(targetKey(fact.change, name), {
      from,
      to,
      recipe,
      left: false,
      owed: '',
      verdict: '',
      reason: '',
      at: '',
    });
    putNode(state, { ...nodeOf(state, name), change: fact.change }, sequence);
  }
  state.touched.add(viewKey('rollouts', fact.change));
  touchBudgets(state, fact.change);
}

function supersede(state: State, fact: FactOf<'rollout.superseded'>, sequence: number): void {
  touchBudgets(state, fact.change);
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
