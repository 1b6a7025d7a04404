import {
  answered,
  decided,
  pageOf,
  takeTouched,
  type Answer,
  type Core,
  type Decision,
  type Digest,
  type Draft,
  type Now,
} from '#libs/engine';
import { byAge, type Reason } from '#libs/contracts';
import { durationMs } from '#libs/manifests';
import { boundReasons } from '#libs/rules';
import { loadWithBindings } from './bindings.js';
import { digestWith } from './committed-digest.js';
import { noteShown, showCounts } from './counts.js';
import { evolve, reads } from './evolve.js';
import { gathering } from './gather.js';
import type { GatherResult, Input, RenderNeed, Request } from './inputs.js';
import { isBlocked, Queue, turnOf } from './queue.js';
import { MIGRATIONS } from './migrations.js';
import { answerPublished, DEFAULT_QUOTA_BYTES, type PublishSettings, type PublishedInput } from './published.js';
import { dump, openByAge, State, touchedIds, type Change, NO_VERSION, type Progress } from './state.js';
import { view, viewKeys } from './views.js';

type MergerDraft = Draft<State, Input, RenderNeed>;
/** What a decision remembers for the next one. */
interface Memory {
  readonly queue: Progress | undefined;
  /** Set if changed counts are to be shown; monotonic. */
  readonly showCountsAtMs: number | undefined;
}

type Results = ReadonlyMap<string, GatherResult>;

/** How many nodes outside rollouts are rendered at a time: one batch of facts. */
const NODES_AT_ONCE = 500;
/** How many changes are rendered at a time. A long rendering is often outdated before it is finished. */
const CHANGES_AT_ONCE = 20;
/**
 * The merger renders one config per node from all changes. Invariants after each of its batches:
 * 1. changes are accepted or rejected in the order of CHANGES, each of them once;
 * 2. if two open changes overlap, at most one of them is past rendering, unless the newer one corrects the older one;
 * 3. the committed state is the result of all committed changes, in the order of the ledger;
 * 4. a rendering is appended only if its inputs (committed state, labels) are still current.
 */
export function mergerCore(
  digest: Digest,
  quotaBytes = DEFAULT_QUOTA_BYTES,
): Core<State, Input, RenderNeed, GatherResult> {
  return {
    name: 'merger',
    version: 18,
    migrations: MIGRATIONS,
    reads,
    wantsTargets: true,
    gather: gathering(digest),
    initial: () => new State(),
    evolve,
    decide: (state, inputs, gathered, now) => decide(state, inputs, gathered, now, { digest, quotaBytes }),
    remember: (state, memory) => {
      const { queue, showCountsAtMs } = memory as Memory;
      if (queue !== undefined) state.progress.queue = queue;
      if (showCountsAtMs !== undefined) state.progress.counts = showCounts(state, showCountsAtMs);
    },
    cursor: (state) => state.cursor.get(),
    takeTouched,
    viewKeys,
    view,
    forgets: ['changes'],
    onViewWritten: (state, { bucket, key }) => {
      if (bucket === 'fragments') noteShown(state, key.replace('.', '/'));
    },
    dump,
    load: loadWithBindings,
  };
}

function decide(
  state: State,
  inputs: readonly Input[],
  gathered: Results,
  now: Now,
  means: PublishSettings,
): Decision<Input, RenderNeed> {
  const version = state.progress.version.get();
  let queue: Progress | undefined;
  const { counts, countsVersion } = state.progress;
  const isCountDue = counts.version !== countsVersion.get();
  const mayShow = isCountDue && now.monotonicMs >= counts.notBeforeMs;
  const decision = decided<State, Input, RenderNeed>(state, now, evolve, (draft) => {
    endChanges(draft, means.digest);
    renderNodes(draft, gathered);
    for (const input of inputs) takeInput(draft, input, gathered, means);
    queue = advanceQueue(draft, gathered, version);
    if (isCountDue && !mayShow) draft.wakeAt(counts.notBeforeMs);
  });
  const memory: Memory = { queue, showCountsAtMs: mayShow ? now.monotonicMs : undefined };
  return { ...decision, memory };
}

function takeInput(draft: MergerDraft, input: Input, gathered: Results, means: PublishSettings): void {
  if (draft.full) draft.waiting.add(input);
  else if (input.type === 'published') takePublished(draft, input, means);
  else takeRequest(draft, input, input.request, gathered);
}

/** Handles each change once, in the order of its stream. A message at or below the cursor was already handled. */
function takePublished(draft: MergerDraft, published: PublishedInput, means: PublishSettings): void {
  if (published.sequence > draft.state.cursor.get()) answerPublished(draft, published, means);
}

function takeRequest(draft: MergerDraft, input: Input, request: Request, gathered: Results): void {
  // All pages of a plan must match: the first page computes the plan, the other pages reuse the stored result.
  const key = request.cursor === '' ? `plan|${request.id}|${basis(draft.state)}` : `plan|${request.id}`;
  const result = gathered.get(key);
  if (result?.did !== 'plan') {
    const { body, source, cursor } = request;
    draft.need({ key, do: 'plan', body, source, again: cursor !== '' });
    draft.waiting.add(input);
    return;
  }
  draft.answers.set(input, planAnswer(result, request));
}

const NO_PLAN = { nodes: [], warnings: [], waitsFor: [], pools: {}, touched: 0, unchanged: 0 };

function planAnswer({ plan }: GatherResult & { readonly did: 'plan' }, page: Request): Answer {
  const rejected = boundReasons(plan.rejected);
  if (!('nodes' in plan)) return answered({ ...NO_PLAN, rejected });
  const { items: shown, next } = pageOf(plan.nodes, page, ({ node }) => node);
  return answered({ ...plan, rejected, warnings: boundReasons(plan.warnings), nodes: shown, ...next });
}

/** Identifies the inputs of every rendering. */
const basis = (state: State): string => `g${state.generation.get()}|n${state.nodesVersion.get()}`;

/** Records which changes have been committed, or have ended in another way. */
function endChanges(draft: MergerDraft, digest: Digest): void {
  for (const change of openByAge(draft.state)) {
    if (draft.full) return;
    if (change.rollout === 'complete') commit(draft, change, digest);
    else if (change.rollout === 'reverted') end(draft, change, change.aborted ? 'aborted' : 'reverted');
    else if (change.rollout === 'superseded') end(draft, change, 'superseded');
    else if (change.aborted && change.rollout === 'none') end(draft, change, 'aborted');
    else if (isPassed(change)) end(draft, { ...change, reason: passedText(change) }, 'superseded');
  }
}

/** Newer changes have touched all of its fragments while it waited. */
const isPassed = (change: Change): boolean => change.leftTo !== undefined && touchedIds(change).length === 0;
const passedText = ({ leftTo = {} }: Change): string =>
  `newer changes have touched all of its fragments: ${[...new Set(Object.values(leftTo))].sort(byAge).join(', ')}`;

const end = (draft: MergerDraft, change: Change, outcome: string): void =>
  draft.emit({ type: 'config.ended', change: change.change, outcome, reason: change.reason });

function commit(draft: MergerDraft, change: Change, digest: Digest): void {
  const { state } = draft;
  const hashes = digestWith(state, change, digest, (bytes) => draft.spend(bytes));
  if (hashes === undefined) return draft.need({ key: `hashes|${basis(state)}`, do: 'hash-fragments' });
  const generation = state.generation.get() + 1;
  draft.emit({ type: 'config.committed', change: change.change, generation, digest: hashes });
}

/** Renders nodes outside rollouts: those that joined, were relabelled, or are newly selected by a commit. */
function renderNodes(draft: MergerDraft, gathered: Results): void {
  const { state } = draft;
  if (state.toRender.size === 0) return;
  const nodes = [...state.toRender.keys()].sort().slice(0, NODES_AT_ONCE);
  const key = `nodes|${basis(state)}|${nodes[0] ?? ''}|${nodes.length}|${openByAge(state)
    .map((change) => `${change.change}.${change.rollout}`)
    .join()}`;
  const result = gathered.get(key);
  if (result?.did !== 'render-nodes') return draft.need({ key, do: 'render-nodes', nodes });
  const generation = state.generation.get();
  for (const { node, hash, recipe, outdatedIn, problems } of result.nodes) {
    draft.emit({
      type: 'node.rendered',
      node,
      hash,
      recipe,
      generation,
      cause: state.toRender.get(node) ?? 'commit',
      outdatedIn,
      problems,
    });
  }
  draft.more = draft.more || state.toRender.size > 0;
}

/**
 * Renders every change whose turn has come, and records what the others wait for. If the queue is too long for one
 * decision, the next decision continues at the change where this one stopped.
 */
function advanceQueue(draft: MergerDraft, gathered: Results, version: number): Progress | undefined {
  const { state } = draft;
  if (state.toRender.size > 0) return undefined; // render these first: their configs are the `from` of targets
  const { queue: before } = state.progress;
  if (before.version === version && before.left === 0) return undefined;
  const queue = new Queue(state, (bytes) => draft.spend(bytes));
  const waiting = queue.open.filter((change) => change.rollout === 'none' && !change.aborted);
  const first = Math.max(
    0,
    waiting.findIndex(({ change }) => change === before.next),
  );
  const nameOf = (place: number): string => waiting[place % waiting.length]?.change ?? '';
  let left = before.version === version ? Math.min(before.left, waiting.length) : waiting.length;
  let place = first;
  let advanced = 0;
  let next: string | undefined;
  for (; left > 0 && !draft.full && advanced < CHANGES_AT_ONCE; left -= 1, place += 1) {
    if (!advance(draft, waiting[place % waiting.length] as Change, queue, gathered)) continue;
    advanced += 1;
    next ??= nameOf(place);
  }
  // After a rendering, continue with the first change that needed it, and then check all others again.
  if (next !== undefined) left = waiting.length;
  else next = left === 0 ? '' : nameOf(place);
  // The ledger may refuse these facts. Then the next decision must check all changes again.
  return { next, left, version: draft.facts.length > 0 ? NO_VERSION : version };
}

/** Returns whether the change must be rendered before more can be decided about it. */
function advance(draft: MergerDraft, change: Change, queue: Queue, gathered: Results): boolean {
  if (isBlocked(change)) return false;
  const turn = turnOf(queue, change);
  if (turn.is === 'waiting') {
    if (change.phase !== 'waiting' || !same(change.waitsFor, turn.waitsFor))
      draft.emit({ type: 'config.waiting', change: change.change, waitsFor: turn.waitsFor });
    return false;
  }
  const isCurrent =
    !change.outdated && change.attempt > 0 && change.phase !== 'waiting' && same(change.replaces, turn.replaces);
  return !isCurrent && render(draft, change, turn.replaces, gathered);
}

function render(draft: MergerDraft, change: Change, replaces: readonly string[], gathered: Results): boolean {
  const key = `change|${change.change}|${change.attempt + 1}|${basis(draft.state)}|${replaces.join()}`;
  const result = gathered.get(key);
  if (result?.did !== 'render-change') {
    draft.need({ key, do: 'render-change', change: change.change, replaces });
    return true;
  }
  const { nodes, unchanged, pools, problems, warnings } = result.rendering;
  draft.emit(
    {
      type: 'config.rendered',
      change: change.change,
      attempt: change.attempt + 1,
      nodes,
      unchanged,
      pools,
      targets: result.blobs,
      replaces,
      problems: boundReasons(problems),
      warnings: boundReasons([...leftOut(change), ...warnings]),
      strict: change.strategy.strict === true,
      ...needsTimeoutOf(change),
    },
    result.targets,
  );
  return false;
}

/** What it leaves as newer changes have made it. */
const leftOut = ({ leftTo = {} }: Change): readonly Reason[] =>
  Object.entries(leftTo).map(([fragment, newer]) => ({
    fragment,
    field: '',
    code: 'left-to-newer',
    message: `${newer} has changed it while this change waited, so this change leaves it as it is`,
    nodes: [],
  }));

function needsTimeoutOf({ strategy: { needsTimeout } }: Change): { readonly needsTimeoutMs?: number } {
  const ms = needsTimeout === undefined ? undefined : durationMs(needsTimeout);
  return ms === undefined ? {} : { needsTimeoutMs: ms };
}

const same = (a: readonly string[], b: readonly string[]): boolean =>
  a.length === b.length && a.every((item, i) => item === b[i]);
