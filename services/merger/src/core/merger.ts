import { changeId, isDnsLabel, type Reason } from '#libs/contracts';
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
import { readChange } from '#libs/manifests';
import { canonicalJson, boundReasons } from '#libs/rules';
import { evolve, reads } from './evolve.js';
import { gathering } from './gather.js';
import type { GatherResult, Input, RenderNeed, Request } from './inputs.js';
import { reachOf, turnOf, type Reach } from './queue.js';
import { fragmentsWith } from './rendering.js';
import { dump, load, openByAge, State, type Change } from './state.js';
import { view, viewKeys } from './views.js';

type MergerDraft = Draft<State, Input, RenderNeed>;
type Results = ReadonlyMap<string, GatherResult>;

/** How many nodes outside rollouts are rendered at a time: one batch of facts. */
const NODES_AT_ONCE = 500;

/**
 * The merger renders one config per node from all changes. Invariants after each of its batches:
 * 1. changes are accepted or rejected in the order of CHANGES, each of them once;
 * 2. if two open changes overlap, at most one of them is past rendering, unless the newer one corrects the older one;
 * 3. the committed state is the result of all committed changes, in the order of the ledger;
 * 4. a rendering is appended only if its inputs (committed state, labels) are still current.
 */
export function mergerCore(digest: Digest): Core<State, Input, RenderNeed, GatherResult> {
  return {
    name: 'merger',
    version: 2,
    reads,
    wantsTargets: true,
    gather: gathering(digest),
    initial: () => new State(),
    evolve,
    decide: (state, inputs, gathered, now) => decide(state, inputs, gathered, now, digest),
    cursor: (state) => state.cursor.get(),
    takeTouched,
    viewKeys,
    view,
    dump,
    load,
  };
}

function decide(
  state: State,
  inputs: readonly Input[],
  gathered: Results,
  now: Now,
  digest: Digest,
): Decision<Input, RenderNeed> {
  return decided<State, Input, RenderNeed>(state, now, evolve, (draft) => {
    endChanges(draft, digest);
    renderNodes(draft, gathered);
    for (const input of inputs) takeInput(draft, input, gathered);
    advanceQueue(draft, gathered);
  });
}

function takeInput(draft: MergerDraft, input: Input, gathered: Results): void {
  if (draft.full) draft.held.add(input);
  else if (input.type === 'published') takePublished(draft, input);
  else takeRequest(draft, input, input.request, gathered);
}

/** Handles each change once, in the order of its stream. A message at or below the cursor was already handled. */
function takePublished(draft: MergerDraft, { sequence, source, text }: Input & { readonly type: 'published' }): void {
  if (sequence <= draft.state.cursor.get()) return;
  const change = changeId(sequence);
  const refused = (reasons: readonly Reason[]): void =>
    draft.emit({ type: 'config.rejected', change, stage: 'schema', attempt: 0, reasons: boundReasons(reasons) });
  if (!isDnsLabel(source)) {
    const message = `the source ${JSON.stringify(source)} (the subject after config.desired.) is not a DNS label`;
    return refused([{ fragment: '', field: '', code: 'bad-source', message, nodes: [] }]);
  }
  const read = readChange(text);
  if (read.ok) draft.emit({ type: 'config.accepted', change, source, ...read.change });
  else refused(read.reasons);
}

function takeRequest(draft: MergerDraft, input: Input, request: Request, gathered: Results): void {
  // All pages of a plan must match: the first page computes the plan, the other pages reuse the stored result.
  const key = request.cursor === '' ? `plan|${request.id}|${basis(draft.state)}` : `plan|${request.id}`;
  const found = gathered.get(key);
  if (found?.did !== 'plan') {
    draft.need({ key, do: 'plan', body: request.body, again: request.cursor !== '' });
    draft.held.add(input);
    return;
  }
  draft.answers.set(input, planAnswer(found, request));
}

const NO_PLAN = { nodes: [], warnings: [], waitsFor: [], pools: {}, touched: 0, unchanged: 0 };

function planAnswer({ plan }: GatherResult & { readonly did: 'plan' }, page: Request): Answer {
  const rejected = boundReasons(plan.rejected);
  if (!('nodes' in plan)) return answered({ ...NO_PLAN, rejected });
  const { shown, next } = pageOf(plan.nodes, page, ({ node }) => node);
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
  }
}

const end = (draft: MergerDraft, change: Change, outcome: string): void =>
  draft.emit({ type: 'config.ended', change: change.change, outcome, reason: change.reason });

function commit(draft: MergerDraft, change: Change, digest: Digest): void {
  const fragments = [...fragmentsWith(draft.state, change)].sort((a, b) =>
    `${a.kind}/${a.name}` < `${b.kind}/${b.name}` ? -1 : 1,
  );
  draft.emit({
    type: 'config.committed',
    change: change.change,
    generation: draft.state.generation.get() + 1,
    digest: digest(canonicalJson(fragments)),
  });
}

/** Renders nodes outside rollouts: those that joined, were relabelled, or are newly selected by a commit. */
function renderNodes(draft: MergerDraft, gathered: Results): void {
  const { state } = draft;
  if (state.toRender.size === 0) return;
  const nodes = [...state.toRender.keys()].sort().slice(0, NODES_AT_ONCE);
  const key = `nodes|${basis(state)}|${nodes[0] ?? ''}|${nodes.length}|${openByAge(state)
    .map((change) => `${change.change}.${change.rollout}`)
    .join()}`;
  const found = gathered.get(key);
  if (found?.did !== 'render-nodes') return draft.need({ key, do: 'render-nodes', nodes });
  const generation = state.generation.get();
  for (const { node, hash, recipe, outdatedIn, problems } of found.nodes) {
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

/** Renders every change whose turn has come, and records what the others wait for. */
function advanceQueue(draft: MergerDraft, gathered: Results): void {
  const { state } = draft;
  if (state.toRender.size > 0) return; // render these first: their configs are the `from` of targets
  const open = openByAge(state);
  if (open.every((change) => change.rollout !== 'none')) return;
  const reach = reachOf(state, open);
  for (const change of open) {
    if (draft.full) return;
    if (change.rollout === 'none' && !change.aborted) advance(draft, change, reach, gathered);
  }
}

function advance(draft: MergerDraft, change: Change, reach: Reach, gathered: Results): void {
  const turn = turnOf(draft.state, change, reach);
  if (turn.is === 'waiting') {
    if (change.phase === 'waiting' && same(change.waitsFor, turn.waitsFor)) return;
    return draft.emit({ type: 'config.waiting', change: change.change, waitsFor: turn.waitsFor });
  }
  const isCurrent =
    !change.outdated && change.attempt > 0 && change.phase !== 'waiting' && same(change.replaces, turn.replaces);
  if (!isCurrent) render(draft, change, turn.replaces, gathered);
}

function render(draft: MergerDraft, change: Change, replaces: readonly string[], gathered: Results): void {
  const key = `change|${change.change}|${change.attempt + 1}|${basis(draft.state)}|${replaces.join()}`;
  const found = gathered.get(key);
  if (found?.did !== 'render-change') return draft.need({ key, do: 'render-change', change: change.change, replaces });
  const { nodes, unchanged, pools, problems, warnings } = found.rendering;
  draft.emit(
    {
      type: 'config.rendered',
      change: change.change,
      attempt: change.attempt + 1,
      nodes,
      unchanged,
      pools,
      targets: found.blobs,
      replaces,
      problems: boundReasons(problems),
      warnings: boundReasons(warnings),
      strict: change.strategy.strict === true,
    },
    found.targets,
  );
}

const same = (a: readonly string[], b: readonly string[]): boolean =>
  a.length === b.length && a.every((item, i) => item === b[i]);
