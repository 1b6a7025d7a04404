import { viewKey, type Entry, type FactTable } from '#libs/engine';
import type { FactOf } from '#libs/contracts';
import { putNode } from '../indexes.js';
import { nodeOf, targetKey, type Change, type Rollout, type State } from '../state.js';
import { pausedText } from '../views.js';
import { patchChange, patchRollout, drop, leftRollout, repool } from './patches.js';

/** How facts about rollouts change the fold. */
export const ROLLOUT_FACTS: FactTable<State> = {
  'rollout.started': start,
  'rollout.superseded': supersede,
  'rollout.paused': (state, { change, by, reason }, entry) =>
    pause(state, change, entry, { paused: true, pausedBecause: pausedText(by, reason) }),
  'rollout.resumed': (state, { change }, entry) =>
    pause(state, change, entry, { paused: false, pausedBecause: undefined }),
  'rollout.aborted': (state, { change, reason }, { sequence }) => {
    patchChange(state, change, { aborted: true });
    patchRollout(state, change, sequence, { aborted: true, reason });
  },
  'rollout.failed': (state, { change, reason }, { sequence }) => patchRollout(state, change, sequence, { reason }),
  'rollout.reverting': (state, { change }, { sequence }) => {
    forgetDeferred(state, change);
    patchRollout(state, change, sequence, { phase: 'reverting', stalledBy: [] });
  },
  'rollout.complete': (state, { change }, { sequence }) =>
    patchRollout(state, change, sequence, { phase: 'complete', stalledBy: [] }),
  'rollout.reverted': (state, { change, at: endedAt }, { sequence }) => {
    patchRollout(state, change, sequence, { phase: 'reverted', stalledBy: [], endedAt });
    leave(state, change, sequence);
    drop(state, change);
  },
  'rollout.succeeded': (state, { change, at: endedAt }, { sequence }) =>
    patchRollout(state, change, sequence, { phase: 'succeeded', endedAt }),
  'rollout.stalled': (state, { change, nodes: stalledBy }, { sequence }) =>
    patchRollout(state, change, sequence, { stalledBy }),
};

function pause(state: State, change: string, { sequence }: Entry, to: Pick<Change, 'paused' | 'pausedBecause'>): void {
  patchChange(state, change, to);
  patchRollout(state, change, sequence, to);
}

function start(state: State, fact: FactOf<'rollout.started'>, { sequence }: Entry): void {
  const change = state.changes.get(fact.change);
  if (change === undefined) return;
  const rollout: Rollout = {
    change: fact.change,
    phase: 'rolling',
    paused: change.paused,
    pausedBecause: change.pausedBecause,
    aborted: false,
    maxFailures: fact.maxFailures,
    maxUnavailable: fact.maxUnavailable,
    failed: 0,
    unknown: 0,
    reason: '',
    nodes: Object.keys(change.targets).sort(),
    stalledBy: [],
    startedAt: fact.at,
    endedAt: undefined,
    supersededBy: undefined,
    frozen: undefined,
  };
  state.rollouts.set(fact.change, rollout);
  patchChange(state, fact.change, { started: true });
  for (const [name, { from, to, recipe }] of Object.entries(change.targets)) {
    const target = { from, to, recipe, left: false, deferred: undefined, outcome: undefined, startedBy: undefined };
    state.targets.set(targetKey(fact.change, name), target);
    putNode(state, { ...nodeOf(state, name), change: fact.change }, sequence);
  }
  state.touched.add(viewKey('rollouts', fact.change));
  repool(state, fact.change, sequence);
}

function supersede(state: State, fact: FactOf<'rollout.superseded'>, { sequence }: Entry): void {
  patchRollout(state, fact.change, sequence, { phase: 'superseded', supersededBy: fact.by, endedAt: fact.at });
  patchChange(state, fact.change, { open: false, targets: {} });
  state.openChanges.delete(fact.change);
  repool(state, fact.change, sequence);
  leave(state, fact.change, sequence);
  drop(state, fact.change);
}

function leave(state: State, change: string, sequence: number): void {
  for (const name of state.rollouts.get(change)?.nodes ?? []) {
    const node = state.nodes.get(name);
    if (node?.change === change) putNode(state, leftRollout(node), sequence);
  }
}

function forgetDeferred(state: State, change: string): void {
  for (const name of state.rollouts.get(change)?.nodes ?? []) {
    const key = targetKey(change, name);
    const target = state.targets.get(key);
    if (target?.deferred !== undefined) state.targets.set(key, { ...target, deferred: undefined });
  }
}
