import { byAge, fragmentId, takenReport, type FactOf, type FactType } from '#libs/contracts';
import { viewKey, type Entry } from '#libs/kernel';
import { isPolicyKind } from '#libs/manifests';
import { carriedPolicies } from '#libs/policy';
import type { State } from './state.js';

/** The facts that the validator's fold uses. */
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
  'node.reviewed',
  'node.reported',
  'node.lease.settled',
  'rollout.started',
  'rollout.complete',
  'rollout.superseded',
];

/** Reviews of ended changes that are kept for questions about them. */
const KEPT_REVIEWS = 400;

/** Folds one fact of the ledger. */
export function evolve(state: State, entry: Entry): void {
  const { fact, sequence } = entry;
  switch (fact.type) {
    case 'config.accepted': {
      const carried = carriedPolicies(fact);
      state.touches.set(
        fact.change,
        [...fact.apply, ...fact.delete].filter(({ kind }) => !isPolicyKind(kind)).map(fragmentId),
      );
      if (carried.apply.length + carried.delete.length > 0) state.carried.set(fact.change, carried);
      return;
    }
    case 'config.rendered': {
      const { change, attempt, problems } = fact;
      state.candidates.set(change, { change, attempt, targets: entry.targets ?? {}, problems, reviewed: 0 });
      return state.openCandidates.add(change);
    }
    case 'config.waiting':
      // It was rendered, and something came before it after all: it will be rendered again.
      state.candidates.delete(fact.change);
      return state.openCandidates.delete(fact.change);
    case 'config.validated':
      return review(state, fact, sequence);
    case 'config.rejected':
      forget(state, fact.change);
      return record(state, {
        change: fact.change,
        attempt: fact.attempt,
        verdict: 'rejected',
        reasons: fact.reasons,
        warnings: [],
      });
    case 'config.committed':
      return commit(state, fact.change);
    case 'config.ended':
      state.rollouts.delete(fact.change);
      return forget(state, fact.change);
    case 'config.judged':
      return judge(state, fact);
    case 'config.forgiven':
      return forgive(state, fact);
    case 'rollout.started':
      state.rollouts.set(fact.change, { targets: state.candidates.get(fact.change)?.targets ?? {}, complete: false });
      return forget(state, fact.change);
    case 'rollout.complete':
      return state.rollouts.set(fact.change, {
        targets: state.rollouts.get(fact.change)?.targets ?? {},
        complete: true,
      });
    case 'rollout.superseded':
      state.rollouts.delete(fact.change);
      return forget(state, fact.change);
    default:
      return evolveNode(state, entry);
  }
}

function evolveNode(state: State, { fact, sequence }: Entry): void {
  switch (fact.type) {
    case 'node.joined':
    case 'node.changed':
      state.labels.set(fact.node, fact.labels);
      return state.capabilities.set(fact.node, fact.capabilities);
    case 'node.left':
      for (const table of [state.capabilities, state.labels, state.committed, state.inForce, state.unreviewed])
        table.delete(fact.node);
      for (const change of [...state.rollouts.keys()]) leave(state, change, fact.node);
      return;
    case 'node.rendered':
      state.committed.set(fact.node, fact.hash);
      for (const change of fact.leaves) leave(state, change, fact.node);
      return state.unreviewed.set(fact.node, { hash: fact.hash, problems: fact.problems });
    case 'node.reviewed':
      return state.unreviewed.delete(fact.node);
    case 'node.reported':
      return state.inForce.set(fact.node, fact.hash);
    case 'node.lease.settled':
      if (fact.report !== undefined) state.inForce.set(fact.node, takenReport(fact)?.hash ?? fact.hash);
      if (fact.kind === 'forward' && fact.because === 'invalid') recordInvalid(state, fact, sequence);
      return;
    default:
      return;
  }
}

function leave(state: State, change: string, node: string): void {
  const rollout = state.rollouts.get(change);
  if (rollout?.targets[node] === undefined) return;
  const targets = Object.fromEntries(Object.entries(rollout.targets).filter(([name]) => name !== node));
  state.rollouts.set(change, { ...rollout, targets });
}

function recordInvalid(state: State, fact: FactOf<'node.lease.settled'>, sequence: number): void {
  const { lease, change, node, hash, recipe, reason } = fact;
  state.unjudged.set(lease, { lease, change, node, hash, recipe, reason, sequence });
  for (const key of [hash, recipe]) if (key !== '') state.invalids.set(key, sequence);
  state.lastInvalid.set(sequence);
}

function review(state: State, fact: FactOf<'config.validated'>, sequence: number): void {
  const candidate = state.candidates.get(fact.change);
  if (candidate?.attempt === fact.attempt) state.candidates.set(fact.change, { ...candidate, reviewed: sequence });
  record(state, {
    change: fact.change,
    attempt: fact.attempt,
    verdict: 'validated',
    reasons: [],
    warnings: fact.warnings,
  });
}

function record(state: State, made: Parameters<State['reviews']['set']>[1]): void {
  state.reviews.set(made.change, made);
  state.touched.add(viewKey('reviews', made.change));
  if (state.reviews.size <= KEPT_REVIEWS * 2) return;
  // By age, and not as they stand in the table: what a decision tried and took back stands in another order there.
  for (const old of [...state.reviews.keys()].sort(byAge).slice(0, state.reviews.size - KEPT_REVIEWS))
    state.reviews.delete(old);
}

function forget(state: State, change: string): void {
  state.touches.delete(change);
  if (!state.rollouts.has(change)) state.carried.delete(change);
  state.candidates.delete(change);
  state.openCandidates.delete(change);
}

function commit(state: State, change: string): void {
  for (const [node, target] of Object.entries(state.rollouts.get(change)?.targets ?? {})) {
    // A node that was rendered on its own since has left the rollout; its next rendering is on its way.
    if (state.committed.has(node)) state.committed.set(node, target.to);
  }
  state.rollouts.delete(change);
  const carried = state.carried.get(change);
  for (const ref of carried?.delete ?? []) state.policies.delete(fragmentId(ref));
  for (const fragment of carried?.apply ?? []) state.policies.set(fragmentId(fragment), fragment);
  state.carried.delete(change);
}

function judge(state: State, fact: FactOf<'config.judged'>): void {
  state.unjudged.delete(fact.lease);
  if (!fact.condemned) return;
  const { hash, recipe, change, node, lease, reason, at: since } = fact;
  state.knownBad.set(hash, { hash, recipe, change, node, lease, reason, since });
  state.forgiven.delete(`${hash}/${recipe}`);
  if (recipe !== '') state.badRecipes.set(recipe, hash);
  touchKnownBad(state, hash, recipe);
}

function forgive(state: State, fact: FactOf<'config.forgiven'>): void {
  // A second recipe of the same hash follows the first: its story is told there.
  const story = state.knownBad.get(fact.hash) ?? [...state.forgiven.values()].find(({ hash }) => hash === fact.hash);
  state.knownBad.delete(fact.hash);
  state.badRecipes.delete(fact.recipe);
  if (story !== undefined)
    state.forgiven.set(`${fact.hash}/${fact.recipe}`, {
      ...story,
      recipe: fact.recipe,
      by: fact.by,
      forgivenReason: fact.reason,
    });
  touchKnownBad(state, fact.hash, fact.recipe);
}

function touchKnownBad(state: State, hash: string, recipe: string): void {
  state.touched.add(viewKey('known-bad', `config.${hash}`));
  if (recipe !== '') state.touched.add(viewKey('known-bad', `recipe.${recipe}`));
}
