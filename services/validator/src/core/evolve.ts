import { byAge, fragmentId, takenReport, type FactOf, type FragmentRef } from '#libs/contracts';
import { folding, viewKey, type FactTable } from '#libs/engine';
import { DEFAULT_NEEDS_TIMEOUT, durationMs, isPolicyKind } from '#libs/manifests';
import { carriedPolicies } from '#libs/rules';
import { findingOf, type ClearedStory, type Review, type State } from './state.js';

/** How many reviews of ended changes are kept, to answer requests about them. */
const KEPT_REVIEWS = 400;

const DEFAULT_NEEDS_TIMEOUT_MS = durationMs(DEFAULT_NEEDS_TIMEOUT) as number;

/** How each fact changes the fold of the validator. */
const FACTS: FactTable<State> = {
  'config.accepted': (state, fact) => {
    const carried = carriedPolicies(fact);
    const onNodes = (refs: readonly FragmentRef[]) => refs.filter(({ kind }) => !isPolicyKind(kind)).map(fragmentId);
    state.touches.set(fact.change, { applied: onNodes(fact.apply), deleted: onNodes(fact.delete) });
    if (carried.apply.length + carried.delete.length > 0) state.carried.set(fact.change, carried);
  },
  'config.rendered': (state, fact, { targets = {} }) => {
    const { change, attempt, problems, warnings, strict, needsTimeoutMs = DEFAULT_NEEDS_TIMEOUT_MS } = fact;
    const rendered = { change, attempt, targets, problems, warnings, strict, needsTimeoutMs };
    state.candidates.set(change, { ...rendered, reviewed: 0, missing: [] });
    state.openCandidates.add(change);
  },
  'config.waiting': (state, { change }) => {
    // It was already rendered, but now has to wait: it will be rendered again.
    state.candidates.delete(change);
    state.openCandidates.delete(change);
    touchBlocked(state);
  },
  'config.validated': (state, { change, attempt, warnings }, { sequence }) => {
    const candidate = state.candidates.get(change);
    if (candidate?.attempt === attempt) state.candidates.set(change, { ...candidate, reviewed: sequence, missing: [] });
    state.blockedUntil.delete(change);
    touchBlocked(state);
    record(state, { change, attempt, verdict: 'validated', reasons: [], warnings });
  },
  'config.blocked': (state, { change, attempt, reasons, untilMs }, { sequence }) => {
    const candidate = state.candidates.get(change);
    if (candidate?.attempt !== attempt) return;
    state.candidates.set(change, { ...candidate, reviewed: sequence, missing: reasons });
    state.blockedUntil.set(change, untilMs);
    touchBlocked(state);
    record(state, { change, attempt, verdict: 'blocked', reasons, warnings: [] });
  },
  'config.rejected': (state, { change, attempt, reasons }) => {
    forget(state, change);
    record(state, { change, attempt, verdict: 'rejected', reasons, warnings: [] });
  },
  'config.committed': commit,
  'config.ended': endRollout,
  'config.judged': judge,
  'config.cleared': clear,
  'rollout.started': (state, { change }) => {
    state.rollouts.set(change, { targets: state.candidates.get(change)?.targets ?? {}, complete: false });
    forget(state, change);
  },
  'rollout.complete': (state, { change }) =>
    state.rollouts.set(change, { targets: state.rollouts.get(change)?.targets ?? {}, complete: true }),
  'rollout.superseded': endRollout,
  'node.joined': present,
  'node.changed': present,
  'node.left': (state, { node }) => {
    for (const table of [state.capabilities, state.labels, state.committed, state.inForce, state.unreviewed])
      table.delete(node);
    for (const change of [...state.rollouts.keys()]) leave(state, change, node);
  },
  'node.rendered': (state, { node, hash, problems, outdatedIn }) => {
    state.committed.set(node, hash);
    for (const change of outdatedIn) leave(state, change, node);
    state.unreviewed.set(node, { hash, problems });
  },
  'node.reviewed': (state, { node }) => state.unreviewed.delete(node),
  'node.reported': (state, { node, hash }) => state.inForce.set(node, hash),
  'node.lease.settled': (state, fact, { sequence }) => {
    if (fact.report !== undefined) state.inForce.set(fact.node, takenReport(fact)?.hash ?? fact.hash);
    if (fact.kind === 'forward' && fact.because === 'invalid') recordInvalid(state, fact, sequence);
  },
};

export const { reads, evolve } = folding(FACTS);

function present(state: State, { node, labels, capabilities }: FactOf<'node.joined' | 'node.changed'>): void {
  state.labels.set(node, labels);
  state.capabilities.set(node, capabilities);
}

function endRollout(state: State, { change }: { readonly change: string }): void {
  state.rollouts.delete(change);
  forget(state, change);
}

function leave(state: State, change: string, node: string): void {
  const rollout = state.rollouts.get(change);
  if (rollout === undefined || !Object.hasOwn(rollout.targets, node)) return;
  const targets = Object.fromEntries(Object.entries(rollout.targets).filter(([name]) => name !== node));
  state.rollouts.set(change, { ...rollout, targets });
}

function recordInvalid(state: State, fact: FactOf<'node.lease.settled'>, sequence: number): void {
  const { lease, change, node, hash, recipe, reason } = fact;
  state.unjudged.set(lease, { lease, change, node, hash, recipe, reason, sequence });
  noteInvalid(state, fact, sequence);
}

function noteInvalid(
  state: State,
  { hash, recipe }: { readonly hash: string; readonly recipe: string },
  sequence: number,
): void {
  for (const key of [hash, recipe]) if (key !== '') state.invalids.set(key, sequence);
  state.lastInvalid.set(sequence);
}

function record(state: State, review: Review): void {
  state.reviews.set(review.change, review);
  state.touched.add(viewKey('reviews', review.change));
  if (state.reviews.size <= KEPT_REVIEWS * 2) return;
  // Sort by age: undoing a decision can change the order of the table.
  for (const old of [...state.reviews.keys()].sort(byAge).slice(0, state.reviews.size - KEPT_REVIEWS))
    forgetReview(state, old);
}

function forgetReview(state: State, change: string): void {
  state.reviews.delete(change);
  state.touched.add(viewKey('reviews', change));
}

function forget(state: State, change: string): void {
  state.touches.delete(change);
  state.blockedUntil.delete(change);
  if (!state.rollouts.has(change)) state.carried.delete(change);
  state.candidates.delete(change);
  state.openCandidates.delete(change);
  touchBlocked(state);
}

/** The reviews of changes that wait for references say which other waiting changes have them. */
function touchBlocked(state: State): void {
  for (const name of state.openCandidates)
    if ((state.candidates.get(name)?.missing.length ?? 0) > 0) state.touched.add(viewKey('reviews', name));
}

function commit(state: State, { change }: { readonly change: string }): void {
  for (const [node, target] of Object.entries(state.rollouts.get(change)?.targets ?? {})) {
    // A node that was rendered on its own since is no longer in the rollout.
    if (state.committed.has(node)) state.committed.set(node, target.to);
  }
  state.rollouts.delete(change);
  const carried = state.carried.get(change);
  for (const ref of carried?.delete ?? []) state.policies.delete(fragmentId(ref));
  for (const fragment of carried?.apply ?? []) state.policies.set(fragmentId(fragment), fragment);
  state.carried.delete(change);
}

function judge(state: State, fact: FactOf<'config.judged'>, { sequence }: { readonly sequence: number }): void {
  state.unjudged.delete(fact.lease);
  if (!fact.knownBad) return;
  const { hash, recipe, change, node, lease, reason, fleet, at: since } = fact;
  const known = state.knownBad.get(hash);
  const finding = findingOf({ ...fact, lease });
  const findings = known?.findings.includes(finding) === true ? known.findings : [...(known?.findings ?? []), finding];
  // No node here has reported it, so reviews do not know of it yet.
  if (fleet !== undefined && known === undefined) noteInvalid(state, fact, sequence);
  if (fleet !== undefined && known !== undefined) state.knownBad.set(hash, { ...known, findings });
  else {
    const before = known === undefined ? clearedOf(state, hash) : undefined;
    const clearedFindings = known?.clearedFindings ?? [...(before?.clearedFindings ?? []), ...(before?.findings ?? [])];
    const from = fleet === undefined ? {} : { fleet };
    state.knownBad.set(hash, { hash, recipe, change, node, lease, reason, since, findings, clearedFindings, ...from });
  }
  state.cleared.delete(`${hash}/${recipe}`);
  if (recipe !== '') state.badRecipes.set(recipe, hash);
  touchKnownBad(state, hash, recipe);
}

function clear(state: State, fact: FactOf<'config.cleared'>): void {
  // A second recipe with the same hash refers to the story of the first.
  const story = state.knownBad.get(fact.hash) ?? clearedOf(state, fact.hash);
  state.knownBad.delete(fact.hash);
  state.badRecipes.delete(fact.recipe);
  const { recipe, by, reason: clearedReason } = fact;
  if (story !== undefined) state.cleared.set(`${fact.hash}/${recipe}`, { ...story, recipe, by, clearedReason });
  touchKnownBad(state, fact.hash, fact.recipe);
}

/** Different fragments may render to one config, and were then cleared one by one. The last one knows all findings. */
export const clearedOf = (state: State, hash: string): ClearedStory | undefined =>
  [...state.cleared.values()]
    .filter((one) => one.hash === hash)
    .reduce<ClearedStory | undefined>(
      (last, one) => (last === undefined || known(one) > known(last) ? one : last),
      undefined,
    );

const known = ({ findings, clearedFindings }: ClearedStory): number => findings.length + clearedFindings.length;

function touchKnownBad(state: State, hash: string, recipe: string): void {
  state.touched.add(viewKey('known-bad', `config.${hash}`));
  if (recipe !== '') state.touched.add(viewKey('known-bad', `recipe.${recipe}`));
}
