import type { KnownBadView, Reason, ReviewView } from '#libs/contracts';
import {
  answered,
  assertNever,
  decided,
  pageOf,
  refused,
  takeTouched,
  viewKey,
  type Answer,
  type Core,
  type Decision,
  type Draft,
  type Now,
  type ViewBody,
  type ViewKey,
} from '#libs/engine';
import { durationText, MAX_DURATION_MS } from '#libs/manifests';
import {
  besides,
  boundReasons,
  knownBadReasons,
  knownBadWords,
  mergeReasons,
  outcomeOfReview,
  withHolders,
  type Touched,
  type WaitingChange,
} from '#libs/rules';
import { clearedOf, evolve, reads } from './evolve.js';
import { gather } from './gather.js';
import type { Input, Request, ReviewNeed, ReviewResult } from './inputs.js';
import { judgeAll, whyCleared } from './known-bad.js';
import { dump, findingOf, load, MIGRATIONS, State, type Candidate, type Story } from './state.js';

type ValidatorDraft = Draft<State, Input, ReviewNeed>;

/** How many nodes outside rollouts are reviewed at a time. */
const NODES_AT_ONCE = 500;

/**
 * The validator decides which configs may reach a node. Invariants after each of its batches:
 * 1. a review names the attempt that it belongs to, lists all reasons at once, and is valid for no other attempt;
 * 2. no change is reviewed before every recorded `invalid` is judged, so a review knows all known-bad configs;
 * 3. each recorded `invalid` of a forward lease is judged once; a cleared one stays cleared.
 */
export const validatorCore: Core<State, Input, ReviewNeed, ReviewResult> = {
  name: 'validator',
  version: 6,
  migrations: MIGRATIONS,
  reads,
  wantsTargets: true,
  gather,
  initial: () => new State(),
  evolve,
  decide,
  takeTouched,
  viewKeys,
  view,
  forgets: ['reviews'],
  dump,
  load,
};

function decide(
  state: State,
  inputs: readonly Input[],
  gathered: ReadonlyMap<string, ReviewResult>,
  now: Now,
): Decision<Input, ReviewNeed> {
  return decided<State, Input, ReviewNeed>(state, now, evolve, (draft) => {
    judgeAll(draft);
    for (const input of inputs) {
      if (draft.full) draft.waiting.add(input);
      else draft.answers.set(input, answer(draft, input.request));
    }
    reviewChanges(draft, gathered);
    reviewNodes(draft, gathered);
  });
}

function reviewChanges(draft: ValidatorDraft, gathered: ReadonlyMap<string, ReviewResult>): void {
  for (const name of [...draft.state.openCandidates]) {
    const candidate = draft.state.candidates.get(name);
    if (draft.full || candidate === undefined) continue;
    if (!needsReview(draft.state, candidate)) {
      endWaiting(draft, candidate);
      continue;
    }
    const key = `change|${name}|${candidate.attempt}`;
    const result = gathered.get(key);
    if (result?.did !== 'review-change')
      draft.need({ key, do: 'review-change', change: name, targets: candidate.targets });
    else reviewChange(draft, candidate, result);
  }
}

/** A review is outdated if a node has reported one of its configs as invalid since. */
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
  found: ReviewResult & { readonly did: 'review-change' },
): void {
  const { change, attempt } = candidate;
  const reasons = mergeReasons([
    ...candidate.problems,
    ...found.reasons.filter(besides(candidate.problems)),
    ...reasonsOfKnownBad(draft.state, candidate),
    ...(candidate.strict ? [...candidate.warnings, ...found.warnings] : []),
  ]);
  const touched = draft.state.touches.get(change) ?? NOTHING;
  const outcome = outcomeOfReview(reasons, touched, candidate.strict);
  if (outcome.needs.length > 0) {
    const untilMs = draft.state.blockedUntil.get(change) ?? draft.now.wallMs + candidate.needsTimeoutMs;
    const { needs } = outcome;
    return draft.emit({
      type: 'config.blocked',
      change,
      attempt,
      needs,
      reasons: boundReasons(outcome.reasons),
      untilMs,
    });
  }
  if (reasons.length > 0) return reject(draft, candidate, outcome.reasons);
  draft.emit({
    type: 'config.validated',
    change,
    attempt,
    warnings: boundReasons(found.warnings),
    incompatible: found.incompatible,
  });
}

const NOTHING: Touched = { applied: [], deleted: [] };

/** The missing references of a change, and which other waiting changes have them now. */
const withOthers = (state: State, change: string, reasons: readonly Reason[]): readonly Reason[] =>
  withHolders(reasons, (state.touches.get(change) ?? NOTHING).applied, waitingBesides(state, change));

/** The other changes that wait for references. */
function waitingBesides(state: State, change: string): readonly WaitingChange[] {
  return [...state.openCandidates].flatMap((name) => {
    const missing = name === change ? [] : (state.candidates.get(name)?.missing ?? []);
    const needs = [...new Set(missing.flatMap((reason) => reason.needs ?? []))];
    return needs.length === 0 ? [] : [{ change: name, applied: state.touches.get(name)?.applied ?? [], needs }];
  });
}

function reject(draft: ValidatorDraft, { change, attempt }: Candidate, reasons: readonly Reason[]): void {
  draft.emit({ type: 'config.rejected', change, stage: 'review', attempt, reasons: boundReasons(reasons) });
}

/** Rejects a change that has waited for missing references for too long. */
function endWaiting(draft: ValidatorDraft, candidate: Candidate): void {
  const untilMs = draft.state.blockedUntil.get(candidate.change);
  if (candidate.missing.length === 0 || untilMs === undefined) return;
  const leftMs = untilMs - draft.now.wallMs;
  if (leftMs > 0) return draft.wakeAt(draft.now.monotonicMs + Math.min(leftMs, MAX_DURATION_MS));
  const waited = `the change waited ${durationText(candidate.needsTimeoutMs)} for it`;
  reject(
    draft,
    candidate,
    withOthers(draft.state, candidate.change, candidate.missing).map((reason) => ({
      ...reason,
      message: `${reason.message}: ${waited}`,
    })),
  );
}

/** Known-bad configs among the targets. Nodes whose config does not change are not checked. */
function reasonsOfKnownBad(state: State, candidate: Candidate): readonly Reason[] {
  const result = altered(candidate).flatMap(([node, target]) => {
    const byHash = state.knownBad.get(target.to);
    const story = byHash ?? state.knownBad.get(state.badRecipes.get(target.recipe) ?? '');
    return story === undefined ? [] : [{ node, story, isItself: byHash !== undefined }];
  });
  // Several nodes may have configs of the same fragments: one message for all of them is enough.
  const itself = new Set(result.filter(({ isItself }) => isItself).map(({ story }) => story.hash));
  const { applied, deleted } = state.touches.get(candidate.change) ?? NOTHING;
  const touched = [...applied, ...deleted];
  return result.flatMap(({ node, story }) =>
    knownBadReasons(touched, node, knownBadWords(story, itself.has(story.hash))),
  );
}

function reviewNodes(draft: ValidatorDraft, gathered: ReadonlyMap<string, ReviewResult>): void {
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
    draft.emit({ type: 'node.reviewed', node, hash, compatible: reasons.length === 0, reasons });
  }
  draft.more = draft.more || draft.state.unreviewed.size > 0;
}

function answer(draft: ValidatorDraft, request: Request): Answer {
  switch (request.op) {
    case 'list': {
      const { items: shown, next } = pageOf([...draft.state.knownBad.keys()].sort(), request, (hash) => hash);
      return answered({ knownBad: shown.map((hash) => knownBadView(draft.state, `config.${hash}`)), ...next });
    }
    case 'add':
      return add(draft, request);
    case 'clear':
      return clear(draft, request);
    default:
      return assertNever(request);
  }
}

/** More than there are fleets that find one config to be bad. Each finding is a fact, so there must be an end. */
const MOST_FINDINGS = 200;

/**
 * Another fleet found a config to be bad. What works here is not added, and neither is a finding that a person has
 * cleared here. A finding that is new makes it known-bad again.
 */
function add(draft: ValidatorDraft, request: Request & { readonly op: 'add' }): Answer {
  const { hash, recipe = '', fleet, node, change, reason, finding = change } = request;
  const known = draft.state.knownBad.get(hash);
  const cleared = known === undefined ? clearedOf(draft.state, hash) : undefined;
  const before = known ?? cleared;
  const all = before === undefined ? [] : [...before.findings, ...before.clearedFindings];
  const isNew = all.length < MOST_FINDINGS && !all.includes(findingOf({ ...request, lease: '' }));
  if (known !== undefined && !isNew) return answered({ hash, knownBad: true });
  if (known === undefined) {
    const clearedBecause =
      cleared === undefined || isNew
        ? whyCleared(draft.state, request)
        : `${cleared.by} cleared it: ${cleared.clearedReason}`;
    if (clearedBecause !== undefined) return refused('conflict', `${hash} is not known-bad here: ${clearedBecause}`);
    const rolling = rollingWith(draft.state, [hash, recipe]);
    if (rolling !== undefined)
      return refused('conflict', `${rolling} is rolling ${hash} out here, which will show whether it works`);
  }
  draft.emit({
    type: 'config.judged',
    ...{ hash, recipe, fleet, node, change, reason, finding },
    lease: '',
    knownBad: true,
    clearedBecause: '',
  });
  return answered({ hash, knownBad: true });
}

/** An open rollout with one of these configs. It could not end if they became known-bad now. */
function rollingWith({ rollouts }: State, keys: readonly string[]): string | undefined {
  for (const [change, { targets }] of rollouts.entries())
    for (const { to, recipe } of Object.values(targets))
      if (keys.includes(to) || (recipe !== '' && keys.includes(recipe))) return change;
  return undefined;
}

/** As in git, a unique prefix is enough. */
const MIN_PREFIX = 7;

function clear(draft: ValidatorDraft, { hash, by, reason, findings }: Request & { readonly op: 'clear' }): Answer {
  const stories = [...draft.state.knownBad.values()];
  const isMeant = (text: string) => text === hash || (hash.length >= MIN_PREFIX && text.startsWith(hash));
  const found = stories.filter((story) => isMeant(story.hash) || isMeant(story.recipe));
  const story = found[0];
  if (story === undefined) {
    const before = [...draft.state.cleared.values()].find((one) => isMeant(one.hash) || isMeant(one.recipe));
    if (before !== undefined) return answered({ hash: before.hash, recipe: before.recipe, cleared: true });
    return refused('not-found', `${hash} is not known-bad; see "sluice get known-bad"`);
  }
  if (found.length > 1 && hash !== story.recipe && hash !== story.hash)
    return refused('conflict', `${hash} is ambiguous: ${found.map((one) => one.hash.slice(0, 16)).join(', ')}`);
  const again = findings && found.flatMap((one) => one.findings).find((one) => !findings.includes(one));
  if (again !== undefined) return refused('conflict', `${hash} was also found to be bad by ${again}`);
  for (const one of found)
    for (const recipe of recipesOf(draft.state, one))
      draft.emit({ type: 'config.cleared', hash: one.hash, recipe, by, reason });
  return answered({ hash: story.hash, recipe: story.recipe, cleared: true });
}

/** Every recipe that became known-bad with this config: different fragments may render to the same config. */
const recipesOf = (state: State, { hash, recipe }: Story): readonly string[] => [
  ...new Set([recipe, ...[...state.badRecipes.entries()].filter(([, bad]) => bad === hash).map(([one]) => one)]),
];

function* viewKeys(state: State): Iterable<string> {
  for (const change of state.reviews.keys()) yield viewKey('reviews', change);
  for (const story of [...state.knownBad.values(), ...state.cleared.values()]) {
    yield viewKey('known-bad', `config.${story.hash}`);
    if (story.recipe !== '') yield viewKey('known-bad', `recipe.${story.recipe}`);
  }
}

function view(state: State, { bucket, key }: ViewKey): ViewBody | undefined {
  return bucket === 'reviews' ? reviewView(state, key) : knownBadView(state, key);
}

/** Limits the size of a view value, which must fit into a message. The ledger has all reasons. */
const SHOWN_REASONS = 100;

function reviewView(state: State, change: string): Omit<ReviewView, 'ledger'> | undefined {
  const review = state.reviews.get(change);
  if (review === undefined) return undefined;
  const isBlocked = (state.candidates.get(change)?.missing.length ?? 0) > 0;
  const reasons = isBlocked ? boundReasons(withOthers(state, change, review.reasons)) : review.reasons;
  return {
    ...review,
    reasons: reasons.slice(0, SHOWN_REASONS),
    warnings: review.warnings.slice(0, SHOWN_REASONS),
  };
}

function knownBadView(state: State, key: string): Omit<KnownBadView, 'ledger'> | undefined {
  const id = key.slice(key.indexOf('.') + 1);
  const bad = key.startsWith('config.') ? state.knownBad.get(id) : state.knownBad.get(state.badRecipes.get(id) ?? '');
  if (bad !== undefined) return { ...bad, gone: false, clearedBy: '', clearedReason: '' };
  const cleared = [...state.cleared.values()].find(
    (story) => (key.startsWith('config.') ? story.hash : story.recipe) === id,
  );
  if (cleared === undefined) return undefined;
  const { by: clearedBy, clearedReason, ...story } = cleared;
  return { ...story, gone: true, clearedBy, clearedReason };
}
