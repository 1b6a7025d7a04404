import type { KnownBadView, Reason, ReviewView } from '#libs/contracts';
import {
  assertNever,
  decided,
  takeTouched,
  viewKey,
  type Answer,
  type Core,
  type Decision,
  type Draft,
  type Now,
  type ViewBody,
  type ViewKey,
} from '#libs/kernel';
import { besides, boundReasons, knownBadWords, mergeReasons } from '#libs/review';
import { dump, load } from './dump.js';
import { evolve, READS } from './evolve.js';
import type { Input, Request, ReviewNeed, Reviewed } from './inputs.js';
import { judgeAll } from './judgement.js';
import { State, type Candidate, type Story } from './state.js';

type ValidatorDraft = Draft<State, Input, ReviewNeed>;

/** Nodes reviewed outside rollouts, at a time. */
const NODES_AT_ONCE = 500;

/**
 * The validator: what may reach a node. What always holds after each of its batches:
 * 1. a review names the attempt that it judged, with every reason at once, and counts for no other;
 * 2. no review is given while an `invalid` is not judged, so that known-bad is asked about all that is known;
 * 3. each recorded `invalid` of a forward lease is judged once, by lease; forgiving is final for it.
 */
export const validatorCore: Core<State, Input, ReviewNeed, Reviewed> = {
  name: 'validator',
  version: 3,
  reads: READS,
  wantsTargets: true,
  initial: () => new State(),
  evolve,
  decide,
  takeTouched,
  viewKeys,
  view,
  dump,
  load,
};

function decide(
  state: State,
  inputs: readonly Input[],
  gathered: ReadonlyMap<string, Reviewed>,
  now: Now,
): Decision<Input, ReviewNeed> {
  return decided<State, Input, ReviewNeed>(state, now, evolve, (draft) => {
    judgeAll(draft);
    for (const input of inputs) {
      if (draft.full) draft.held.add(input);
      else draft.answers.set(input, answer(draft, input.request));
    }
    reviewChanges(draft, gathered);
    reviewNodes(draft, gathered);
  });
}

function reviewChanges(draft: ValidatorDraft, gathered: ReadonlyMap<string, Reviewed>): void {
  for (const name of [...draft.state.openCandidates]) {
    const candidate = draft.state.candidates.get(name);
    if (draft.full || candidate === undefined || !needsReview(draft.state, candidate)) continue;
    const key = `change|${name}|${candidate.attempt}`;
    const found = gathered.get(key);
    if (found?.did !== 'review-change')
      draft.need({ key, do: 'review-change', change: name, targets: candidate.targets });
    else reviewChange(draft, candidate, found);
  }
}

/** A review is outdated when a node has since called one of its configs invalid. */
function needsReview(state: State, candidate: Candidate): boolean {
  if (candidate.reviewed === 0) return true;
  if (state.lastInvalid.get() < candidate.reviewed) return false;
  const { invalids } = state;
  return altered(candidate).some(
    ([, target]) =>
      (invalids.get(target.to) ?? 0) > candidate.reviewed || (invalids.get(target.recipe) ?? 0) > candidate.reviewed,
  );
}

const altered = (candidate: Candidate) =>
  Object.entries(candidate.targets).filter(([, target]) => target.from !== target.to);

function reviewChange(
  draft: ValidatorDraft,
  candidate: Candidate,
  found: Reviewed & { readonly did: 'review-change' },
): void {
  const { change, attempt } = candidate;
  const reasons = mergeReasons([
    ...candidate.problems,
    ...found.reasons.filter(besides(candidate.problems)),
    ...knownBadReasons(draft.state, candidate),
  ]);
  if (reasons.length > 0)
    return draft.emit({ type: 'config.rejected', change, stage: 'review', attempt, reasons: boundReasons(reasons) });
  draft.emit({ type: 'config.validated', change, attempt, warnings: boundReasons(found.warnings), unfit: found.unfit });
}

/** Known-bad is asked only about nodes whose config the change alters. */
function knownBadReasons(state: State, candidate: Candidate): readonly Reason[] {
  return altered(candidate).flatMap(([node, target]) => {
    const byHash = state.knownBad.get(target.to);
    const story = byHash ?? state.knownBad.get(state.badRecipes.get(target.recipe) ?? '');
    if (story === undefined) return [];
    const message = knownBadWords(story, byHash !== undefined);
    const touched = state.touches.get(candidate.change) ?? [];
    // A reason there must be, whatever it can name.
    return (touched.length === 0 ? [''] : touched).map((fragment) => ({
      fragment,
      field: 'spec',
      code: 'known-bad',
      message,
      nodes: [node],
    }));
  });
}

function reviewNodes(draft: ValidatorDraft, gathered: ReadonlyMap<string, Reviewed>): void {
  const waiting = [...draft.state.unreviewed.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).slice(0, NODES_AT_ONCE);
  if (waiting.length === 0 || draft.full) return;
  const nodes = waiting.filter(([, { problems }]) => problems.length === 0).map(([node, { hash }]) => ({ node, hash }));
  const key = `nodes|${waiting.map(([node, { hash }]) => `${node}.${hash}`).join()}`;
  const found =
    nodes.length === 0
      ? { did: 'review-nodes' as const, reasons: new Map<string, readonly Reason[]>() }
      : gathered.get(key);
  if (found?.did !== 'review-nodes') return draft.need({ key, do: 'review-nodes', nodes });
  for (const [node, { hash, problems }] of waiting) {
    if (draft.full) return;
    const reasons = boundReasons([...problems, ...(found.reasons.get(node) ?? [])]);
    draft.emit({ type: 'node.reviewed', node, hash, fit: reasons.length === 0, reasons });
  }
  draft.more = draft.more || draft.state.unreviewed.size > 0;
}

function answer(draft: ValidatorDraft, request: Request): Answer {
  switch (request.op) {
    case 'list': {
      const hashes = [...draft.state.knownBad.keys()].sort();
      const from = request.cursor === '' ? 0 : hashes.findIndex((hash) => hash > request.cursor);
      const shown = from < 0 ? [] : hashes.slice(from, from + request.limit);
      const last = shown.at(-1);
      const next = last !== undefined && from + request.limit < hashes.length ? { next: last } : {};
      return {
        ok: true,
        body: { knownBad: shown.map((hash) => knownBadView(draft.state, `config.${hash}`)), ...next },
      };
    }
    case 'forgive':
      return forgive(draft, request);
    default:
      return assertNever(request);
  }
}

/** As git does, a prefix is enough where it is unique. */
const MIN_PREFIX = 7;

function forgive(draft: ValidatorDraft, { hash, by, reason }: Request & { readonly op: 'forgive' }): Answer {
  const stories = [...draft.state.knownBad.values()];
  const isMeant = (text: string) => text === hash || (hash.length >= MIN_PREFIX && text.startsWith(hash));
  const found = stories.filter((story) => isMeant(story.hash) || isMeant(story.recipe));
  const story = found[0];
  if (story === undefined) {
    const before = [...draft.state.forgiven.values()].find((one) => isMeant(one.hash) || isMeant(one.recipe));
    if (before !== undefined) return { ok: true, body: { hash: before.hash, recipe: before.recipe, forgiven: true } };
    return { ok: false, code: 'not-found', message: `${hash} is not known to be bad; see "sluice get known-bad"` };
  }
  if (found.length > 1 && hash !== story.recipe && hash !== story.hash) {
    return {
      ok: false,
      code: 'conflict',
      message: `${hash} is not unique: ${found.map((one) => one.hash.slice(0, 16)).join(', ')}`,
    };
  }
  for (const one of found)
    for (const recipe of recipesOf(draft.state, one))
      draft.emit({ type: 'config.forgiven', hash: one.hash, recipe, by, reason });
  return { ok: true, body: { hash: story.hash, recipe: story.recipe, forgiven: true } };
}

/** Different fragments may come to the same config: every recipe that was condemned with it. */
const recipesOf = (state: State, { hash, recipe }: Story): readonly string[] => [
  ...new Set([recipe, ...[...state.badRecipes.entries()].filter(([, bad]) => bad === hash).map(([one]) => one)]),
];

function* viewKeys(state: State): Iterable<string> {
  for (const change of state.reviews.keys()) yield viewKey('reviews', change);
  for (const story of [...state.knownBad.values(), ...state.forgiven.values()]) {
    yield viewKey('known-bad', `config.${story.hash}`);
    if (story.recipe !== '') yield viewKey('known-bad', `recipe.${story.recipe}`);
  }
}

function view(state: State, { bucket, key }: ViewKey): ViewBody | undefined {
  return bucket === 'reviews' ? reviewView(state, key) : knownBadView(state, key);
}

/** A value must fit into a message; the ledger has all reasons. */
const SHOWN_REASONS = 100;

function reviewView(state: State, change: string): Omit<ReviewView, 'ledger'> | undefined {
  const review = state.reviews.get(change);
  if (review === undefined) return undefined;
  return {
    ...review,
    reasons: review.reasons.slice(0, SHOWN_REASONS),
    warnings: review.warnings.slice(0, SHOWN_REASONS),
  };
}

function knownBadView(state: State, key: string): Omit<KnownBadView, 'ledger'> | undefined {
  const id = key.slice(key.indexOf('.') + 1);
  const bad = key.startsWith('config.') ? state.knownBad.get(id) : state.knownBad.get(state.badRecipes.get(id) ?? '');
  if (bad !== undefined) return { ...bad, gone: false, forgivenBy: '', forgivenReason: '' };
  const forgiven = [...state.forgiven.values()].find(
    (story) => (key.startsWith('config.') ? story.hash : story.recipe) === id,
  );
  if (forgiven === undefined) return undefined;
  const { by: forgivenBy, forgivenReason, ...story } = forgiven;
  return { ...story, gone: true, forgivenBy, forgivenReason };
}
