import { fragmentId, type Fragment, type Reason, type Target } from '#libs/contracts';
import { PAUSE, type Digest, type Steps } from '#libs/engine';
import {
  budgetOf,
  choosePool,
  DEFAULT_POOL,
  poolPolicies,
  poolsSelecting,
  compileFragment,
  compileFragments,
  isCompiled,
  type FragmentIndex,
  emptyHash,
  renderNode,
  type RenderedConfig,
  mergeReasons,
  newReasons,
} from '#libs/rules';
import { immutableReasons, isPolicyKind, MAX_CONFIG_BYTES, selectorOf, selects, utf8Bytes } from '#libs/manifests';
import { touchedNodes } from './selection.js';
import type { Change, NodeState, State } from './state.js';

/** The result of rendering a change on top of the committed state. Nothing is written yet. */
export interface ChangeRendering {
  readonly targets: Readonly<Record<string, Target>>;
  /** The texts of the new configs, by node. */
  readonly texts: ReadonlyMap<string, string>;
  readonly nodes: number;
  readonly unchanged: number;
  readonly pools: Readonly<Record<string, number>>;
  readonly problems: readonly Reason[];
  readonly warnings: readonly Reason[];
}

type Content = Pick<Change, 'apply' | 'delete'>;

/** The committed fragments after the change is applied to them. */
export function fragmentsWith(state: State, change: Content): readonly Fragment[] {
  const all = new Map(committedFragments(state).map((fragment) => [fragmentId(fragment), fragment]));
  for (const ref of change.delete) all.delete(fragmentId(ref));
  for (const fragment of change.apply) all.set(fragmentId(fragment), fragment);
  return [...all.values()];
}

/** All committed fragments, sorted by id. */
export const committedFragments = (state: State): readonly Fragment[] =>
  [...state.fragmentIds].flatMap((id) => state.fragments.get(id)?.fragment ?? []);

/** Prepares fragments for rendering. Pauses after each fragment that was not compiled before. */
export function* compiled(fragments: readonly Fragment[]): Steps<FragmentIndex> {
  for (const fragment of fragments) {
    if (isPolicyKind(fragment.kind) || isCompiled(fragment)) continue;
    compileFragment(fragment);
    yield PAUSE;
  }
  return compileFragments(fragments);
}

/** Renders a change for the nodes that it touches, and for those of the changes that it corrects. Pauses per node. */
export function* renderChange(
  state: State,
  change: Content,
  replaces: readonly string[],
  digest: Digest,
): Steps<ChangeRendering> {
  const after = yield* compiled(fragmentsWith(state, change));
  let before: FragmentIndex | undefined;
  const targets: Record<string, Target> = {};
  const texts = new Map<string, string>();
  const problems: Reason[] = [...fixedProblems(state, change)];
  const altered: NodeState[] = [];
  let unchanged = 0;
  for (const node of nodesOf(state, change, replaces)) {
    yield PAUSE;
    const rendered = renderNode(after.forNode(node.labels), { name: node.node, labels: node.labels }, digest);
    const reasons = [...rendered.reasons, ...tooLarge(rendered, node.node)];
    if (reasons.length > 0) {
      before ??= yield* compiled(committedFragments(state));
      const old = renderNode(before.forNode(node.labels), { name: node.node, labels: node.labels }, digest);
      const found = newReasons(reasons, old.reasons);
      problems.push(...found);
      // A change with problems reaches no node. Keep what could be rendered, so that the review finds further problems.
      if (found.length === 0 || rendered.reasons.length === 0) continue;
    }
    const from = state.desired.get(node.node) ?? { hash: emptyHash(digest), recipe: '' };
    const same = from.hash === rendered.hash;
    const needed =
      !same ||
      from.recipe !== rendered.recipe ||
      state.deferred.has(node.node) ||
      replaces.some((older) => state.targets.get(older)?.[node.node] !== undefined);
    if (same) unchanged += 1;
    else altered.push(node);
    if (!needed) continue;
    targets[node.node] = { from: from.hash, to: rendered.hash, recipe: rendered.recipe };
    texts.set(node.node, rendered.text);
  }
  const pools = countPools(state, altered);
  return {
    targets,
    texts,
    nodes: altered.length,
    unchanged,
    pools,
    problems: mergeReasons(problems),
    warnings: [...warningsOf(state, change), ...(yield* idleSelectors(state, change))],
  };
}

function nodesOf(state: State, change: Content, replaces: readonly string[]): readonly NodeState[] {
  const names = new Set(touchedNodes(state, change).map((node) => node.node));
  for (const older of replaces) {
    for (const name of Object.keys(state.targets.get(older) ?? {})) names.add(name);
    const content = state.changes.get(older);
    if (content !== undefined) for (const node of touchedNodes(state, content)) names.add(node.node);
  }
  return [...names]
    .sort()
    .map((name) => state.nodes.get(name))
    .filter((node): node is NodeState => node !== undefined);
}

/** Changes of immutable parts of committed fragments. */
const fixedProblems = (state: State, { apply }: Content): readonly Reason[] =>
  apply.flatMap((fragment) => {
    const committed = state.fragments.get(fragmentId(fragment))?.fragment;
    return committed === undefined ? [] : immutableReasons(committed, fragment);
  });

function tooLarge(rendered: RenderedConfig, node: string): readonly Reason[] {
  const bytes = utf8Bytes(rendered.text);
  if (bytes <= MAX_CONFIG_BYTES) return [];
  const { id, size } = largestOf(rendered);
  return [
    {
      fragment: id,
      field: 'spec',
      code: 'too-large',
      message: `the rendered config has ${bytes} bytes; the limit is ${MAX_CONFIG_BYTES}; the largest part is ${id} with ${size}`,
      nodes: [node],
    },
  ];
}

function largestOf({ config }: RenderedConfig): { readonly id: string; readonly size: number } {
  const sized = config.fragments.map((entry) => ({ id: fragmentId(entry), size: utf8Bytes(JSON.stringify(entry)) }));
  return sized.reduce((largest, one) => (one.size > largest.size ? one : largest), { id: '', size: 0 });
}

/** The pool of each node, by the same rule as in the scheduler. */
export function poolsOf(state: State, nodes: readonly NodeState[]): ReadonlyMap<string, string> {
  const pools = poolPolicies([...state.fragments.values()].map(({ fragment }) => fragment));
  const selected = new Map(nodes.map((node) => [node.node, poolsSelecting(pools.values(), node.labels)]));
  const needsTie = [...selected.values()].some((names) => names.length > 1);
  const counts = new Map<string, number>();
  if (needsTie)
    for (const node of state.nodes.values())
      for (const pool of poolsSelecting(pools.values(), node.labels)) counts.set(pool, (counts.get(pool) ?? 0) + 1);
  const budget = (pool: string): number => budgetOf(pools.get(pool) ?? DEFAULT_POOL, counts.get(pool) ?? 0);
  return new Map([...selected].map(([node, names]) => [node, choosePool(names, budget)]));
}

function countPools(state: State, nodes: readonly NodeState[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const pool of poolsOf(state, nodes).values()) counts[pool] = (counts[pool] ?? 0) + 1;
  return counts;
}

function warningsOf(state: State, change: Content): readonly Reason[] {
  const missing = change.delete.filter((ref) => !state.fragments.has(fragmentId(ref)));
  const deletes = missing.map((ref) => ({
    fragment: fragmentId(ref),
    field: '',
    code: 'not-found',
    message: 'it cannot be deleted: it does not exist',
    nodes: [],
  }));
  return [...deletes, ...sharedPoolWarnings(state, change)];
}

/** Fragments and policies that select no node: often a misspelt label. In an empty fleet, none is expected to. */
function* idleSelectors(state: State, { apply }: Content): Steps<readonly Reason[]> {
  const found: Reason[] = [];
  if (state.nodes.size === 0) return found;
  for (const fragment of apply) {
    yield PAUSE;
    const selector = selectorOf(fragment);
    let isIdle = true;
    for (const { labels } of state.nodes.values()) {
      isIdle = !selects(selector, labels);
      if (!isIdle) break;
    }
    if (isIdle)
      found.push({
        fragment: fragmentId(fragment),
        field: 'spec.nodeSelector',
        code: 'selects-nothing',
        message: 'it selects no node: compare it with the labels in sluice get nodes',
        nodes: [],
      });
  }
  return found;
}

function sharedPoolWarnings(state: State, change: Content): readonly Reason[] {
  const added = change.apply.filter(({ kind }) => kind === 'Pool');
  if (added.length === 0) return [];
  const pools = poolPolicies(fragmentsWith(state, change).filter(({ kind }) => isPolicyKind(kind)));
  const shared = [...state.nodes.values()].filter((node) => {
    const names = poolsSelecting(pools.values(), node.labels);
    return names.length > 1 && names.some((name) => added.some((pool) => pool.name === name));
  });
  const message =
    'several pools select these nodes: each node belongs to the pool with the smallest budget, then to the first by name';
  return mergeReasons(
    shared.map((node) => ({
      fragment: `Pool/${added[0]?.name ?? ''}`,
      field: 'spec.nodeSelector',
      code: 'several-pools',
      message,
      nodes: [node.node],
    })),
  );
}

/** The config of one node from the committed state, and the open rollouts whose target for it is outdated. */
export interface NodeRendering {
  readonly node: string;
  readonly hash: string;
  readonly recipe: string;
  readonly text: string;
  readonly outdatedIn: readonly string[];
  readonly problems: readonly Reason[];
}

/**
 * Renders nodes outside a rollout: those that joined, were relabelled, or are newly selected by a commit. Pauses per
 * node.
 */
export function* renderNodes(state: State, names: readonly string[], digest: Digest): Steps<readonly NodeRendering[]> {
  const committed = yield* compiled(committedFragments(state));
  const open = [...state.targets.entries()].filter(([change]) => state.changes.get(change)?.rollout !== 'none');
  const indexes = new Map<string, FragmentIndex>();
  const made: NodeRendering[] = [];
  for (const name of names) {
    yield PAUSE;
    const node = state.nodes.get(name);
    if (node === undefined) continue;
    const templateNode = { name, labels: node.labels };
    const { hash, recipe, text, reasons, config } = renderNode(committed.forNode(node.labels), templateNode, digest);
    const problems = [...reasons, ...tooLarge({ hash, recipe, text, reasons, config }, name)];
    const outdatedIn: string[] = [];
    for (const [change, targets] of open) {
      const target = targets[name];
      if (target === undefined) continue;
      // Compiled only when needed: a node is a target of at most one rollout, and there may be hundreds of rollouts.
      const index = indexes.get(change) ?? (yield* compiled(fragmentsWith(state, contentOf(state, change))));
      indexes.set(change, index);
      const now = renderNode(index.forNode(node.labels), templateNode, digest);
      if (now.reasons.length > 0 || now.hash !== target.to) outdatedIn.push(change);
    }
    const unusable = problems.length > 0;
    made.push({ node: name, hash: unusable ? '' : hash, recipe: unusable ? '' : recipe, text, outdatedIn, problems });
  }
  return made;
}

const contentOf = (state: State, change: string): Content => state.changes.get(change) ?? { apply: [], delete: [] };
