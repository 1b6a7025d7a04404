import { fragmentId, reasonFor, type Fragment, type Reason, type Target } from '#libs/contracts';
import { PAUSE, type Digest, type Steps } from '#libs/engine';
import {
  budgetOf,
  canonicalJson,
  choosePool,
  DEFAULT_POOL,
  poolPolicies,
  poolsSelecting,
  compileFragment,
  compileFragments,
  isCompiled,
  type FragmentIndex,
  emptyHash,
  isHeldBack,
  renderNode,
  type RenderedConfig,
  failingEverywhere,
  leftOut,
  mergeReasons,
  newReasons,
  reviewConfig,
  type PoolPolicy,
} from '#libs/rules';
import {
  applyMsOf,
  CONFIRM_SHARE,
  durationMs,
  immutableReasons,
  isNodeKind,
  kindOf,
  MAX_CONFIG_BYTES,
  parseRolloutPolicy,
  PROBE_TIMEOUT_MS,
  selectorOf,
  selects,
  utf8Bytes,
} from '#libs/manifests';
import { templateNode } from './bindings.js';
import { committedFragments, fragmentsWith } from './committed.js';
import { cutOffWarnings } from './cut-off.js';
import { touchedNodes } from './selection.js';
import { openByAge, touchedIds, type Change, type DesiredConfig, type NodeState, type State } from './state.js';

/** The result of rendering a change on top of the committed state. Nothing is written yet. */
export interface ChangeRendering {
  readonly targets: Readonly<Record<string, Target>>;
  /** The texts of the new configs, by node. */
  readonly texts: ReadonlyMap<string, string>;
  readonly nodes: number;
  readonly unchanged: number;
  /** The nodes that the change touches and does not reach, because their committed config has the same faults. */
  readonly incompatible: readonly NodeState[];
  readonly pools: Readonly<Record<string, number>>;
  readonly problems: readonly Reason[];
  readonly warnings: readonly Reason[];
}

type Content = Pick<Change, 'apply' | 'delete'>;
type OwnedContent = Pick<Change, 'apply' | 'delete' | 'source' | 'takeOver'>;

/** Prepares fragments for rendering. Pauses after each fragment that was not compiled before. */
export function* compiled(fragments: readonly Fragment[]): Steps<FragmentIndex> {
  for (const fragment of fragments) {
    if (!isNodeKind(fragment.kind) || isCompiled(fragment)) continue;
    compileFragment(fragment);
    yield PAUSE;
  }
  return compileFragments(fragments);
}

/** Renders a change for the nodes that it touches, and for those of the changes that it corrects. Pauses per node. */
export function* renderChange(
  state: State,
  change: OwnedContent,
  replaces: readonly string[],
  digest: Digest,
): Steps<ChangeRendering> {
  const after = yield* compiled(fragmentsWith(state, change));
  let before: FragmentIndex | undefined;
  const targets = new Map<string, Target>();
  const texts = new Map<string, string>();
  const problems: Reason[] = [...foreignProblems(state, change, replaces), ...fixedProblems(state, change)];
  const altered: NodeState[] = [];
  const faults: Reason[] = [];
  const incompatible: NodeState[] = [];
  let unchanged = 0;
  for (const node of nodesOf(state, change, replaces)) {
    yield PAUSE;
    const rendered = renderNode(after.forNode(node.labels), templateNode(state, after, node), digest);
    const reasons = [...rendered.reasons, ...tooLarge(rendered, node.node)];
    const isUnusable = state.desired.get(node.node)?.hash === '';
    if (reasons.length > 0 || isUnusable) {
      before ??= yield* compiled(committedFragments(state));
      const old = renderNode(before.forNode(node.labels), templateNode(state, before, node), digest);
      // A node that has no value yet does not hold up the others.
      const found = newReasons(reasons, old.reasons).filter((reason) => !isHeldBack(reason));
      problems.push(...found);
      const isKnown = found.length === 0 && reasons.length > 0;
      const known = isKnown ? reasons : knownFaults(node, rendered, isUnusable ? old : undefined);
      // A change with problems reaches no node. Keep what could be rendered, so that the review finds further problems.
      if (found.length === 0 && known.length > 0) {
        incompatible.push(node);
        faults.push(...leftOut(known, node.node));
      }
      if (known.length > 0 || (reasons.length > 0 && rendered.reasons.length === 0)) continue;
    }
    const from = fromOf(state, node, digest);
    const same = from.hash === rendered.hash;
    const needed =
      !same ||
      from.recipe !== rendered.recipe ||
      replaces.some((older) => Object.hasOwn(state.targets.get(older) ?? {}, node.node));
    if (same) unchanged += 1;
    else altered.push(node);
    if (!needed) continue;
    targets.set(node.node, { from: from.hash, to: rendered.hash, recipe: rendered.recipe });
    texts.set(node.node, rendered.text);
  }
  const pools = poolsWith(state, change, replaces);
  const poolOf = poolsOf(state, altered, pools);
  return {
    targets: Object.fromEntries(targets),
    texts,
    nodes: altered.length,
    unchanged,
    incompatible,
    pools: countPools(poolOf),
    problems: mergeReasons(problems),
    warnings: [
      ...warningsOf(state, change, pools),
      ...(yield* idleSelectors(state, change)),
      ...(yield* failingProbes(state, change)),
      ...unhealthyNodes(state, change, altered),
      ...mergeReasons(faults),
      ...slowProbes(fragmentsWith(state, change), altered, poolOf, pools),
      ...cutOffWarnings(state, change, altered, { poolOf, pools }),
    ],
  };
}

/** What a node is rolled back to if the change fails. A config that cannot be rendered is none: then what it has. */
function fromOf({ desired, inForce }: State, { node }: NodeState, digest: Digest): DesiredConfig {
  const committed = desired.get(node);
  if (committed !== undefined && committed.hash !== '') return committed;
  return { hash: inForce.get(node) ?? emptyHash(digest), recipe: '' };
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

/**
 * What a review would find on a node whose committed config could not be rendered, if all of that is in it already.
 * The review itself knows no config of this node to compare with, and would reject the change.
 */
function knownFaults(
  { node, capabilities }: NodeState,
  now: RenderedConfig,
  old: RenderedConfig | undefined,
): readonly Reason[] {
  if (old === undefined) return [];
  const reviewed = { name: node, capabilities, missingObjects: new Set<string>() };
  const faults = reviewConfig(now.config, reviewed);
  return newReasons(faults, reviewConfig(old.config, reviewed)).length > 0 ? [] : faults;
}

/** Fragments of other sources. What a replaced change takes over, the one that corrects it takes over, too. */
function foreignProblems(state: State, change: OwnedContent, replaces: readonly string[]): readonly Reason[] {
  if (change.takeOver === true) return [];
  const replaced = replaces.flatMap((older) => state.changes.get(older) ?? []);
  const taken = new Set(replaced.filter(({ takeOver }) => takeOver === true).flatMap(touchedIds));
  return touchedIds(change).flatMap((id) => {
    const owner = state.fragments.get(id)?.source ?? change.source;
    if (owner === change.source || taken.has(id)) return [];
    const message = `belongs to the source ${owner}: change it there, or take it over (sluice apply --take-over; in JSON "takeOver": true; in Kubernetes the annotation sluice.dev/take-over=true)`;
    return [reasonFor({ fragment: id }, 'owned-by', message)];
  });
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

/** Which of these pools each node is in, by the same rule as in the scheduler. */
export function poolsOf(
  state: State,
  nodes: readonly NodeState[],
  pools: ReadonlyMap<string, PoolPolicy>,
): ReadonlyMap<string, string> {
  const selected = new Map(nodes.map((node) => [node.node, poolsSelecting(pools.values(), node.labels)]));
  const needsTie = [...selected.values()].some((names) => names.length > 1);
  const counts = new Map<string, number>();
  if (needsTie)
    for (const node of state.nodes.values())
      for (const pool of poolsSelecting(pools.values(), node.labels)) counts.set(pool, (counts.get(pool) ?? 0) + 1);
  const budget = (pool: string): number => budgetOf(pools.get(pool) ?? DEFAULT_POOL, counts.get(pool) ?? 0);
  return new Map([...selected].map(([node, names]) => [node, choosePool(names, budget)]));
}

/** The pools during the rollout of a change: those in open rollouts and in the change itself apply already. */
export function poolsWith(state: State, change: Content, replaces: readonly string[]): ReadonlyMap<string, PoolPolicy> {
  const open = openByAge(state).filter((other) => other.rollout !== 'none' && !replaces.includes(other.change));
  return poolPolicies(fragmentsWith(state, ...open, change));
}

function countPools(poolOf: ReadonlyMap<string, string>): Readonly<Record<string, number>> {
  // Not in a record: `constructor` is the name of a pool that people may choose, and in the prototype of every object.
  const counts = new Map<string, number>();
  for (const pool of poolOf.values()) counts.set(pool, (counts.get(pool) ?? 0) + 1);
  return Object.fromEntries(counts);
}

function warningsOf(state: State, change: Content, pools: ReadonlyMap<string, PoolPolicy>): readonly Reason[] {
  const missing = change.delete.filter((ref) => !state.fragments.has(fragmentId(ref)));
  const deletes = missing.map((ref) => ({
    fragment: fragmentId(ref),
    field: '',
    code: 'not-found',
    message: 'it cannot be deleted: it does not exist',
    nodes: [],
  }));
  return [...deletes, ...sharedPoolWarnings(state, change, pools)];
}

/** Fragments and policies that select no node: often a misspelt label. In an empty fleet, none is expected to. */
function* idleSelectors(state: State, { apply }: Content): Steps<readonly Reason[]> {
  const found: Reason[] = [];
  if (state.nodes.size === 0) return found;
  for (const fragment of apply) {
    if (kindOf(fragment.kind)?.role === 'input') continue;
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

/** Committed probes that pass on no node, if the change touches one of these nodes: they do not protect it. */
function* failingProbes(state: State, change: Content): Steps<readonly Reason[]> {
  const touched = touchedNodes(state, change).flatMap(({ node }) => state.failing.get(node) ?? []);
  const applied = new Map(change.apply.map((fragment) => [fragmentId(fragment), fragment]));
  const deleted = new Set(change.delete.map(fragmentId));
  const found: Reason[] = [];
  for (const name of [...new Set(touched.map(({ probe }) => probe))].sort()) {
    yield PAUSE;
    const id = `Probe/${name}`;
    const probe = deleted.has(id) ? undefined : state.fragments.get(id)?.fragment;
    // People publish whole manifests: most of their fragments are as they were.
    const isKept =
      probe !== undefined && canonicalJson(applied.get(id)?.spec ?? probe.spec) === canonicalJson(probe.spec);
    const warning = isKept ? failingEverywhere(probe, probedNodes(state)) : undefined;
    if (warning !== undefined) found.push(warning);
  }
  return found;
}

/** Nodes that the change does not reach before their probes pass, because a RolloutPolicy says so. */
function unhealthyNodes(state: State, change: Content, altered: readonly NodeState[]): readonly Reason[] {
  const unhealthy = altered.filter(({ node }) => state.failing.has(node));
  if (unhealthy.length === 0) return [];
  const strict = fragmentsWith(state, change)
    .filter(({ kind }) => kind === 'RolloutPolicy')
    .map(parseRolloutPolicy)
    .filter(({ health }) => health === 'strict');
  const message =
    'it has health: strict, and the probes of these nodes fail: the change is deferred there until they pass';
  return mergeReasons(
    unhealthy.flatMap(({ node, labels }) => {
      const policy = strict.find(({ selector }) => selects(selector, labels));
      if (policy === undefined) return [];
      const fragment = `RolloutPolicy/${policy.name}`;
      return [{ fragment, field: 'spec.health', code: 'unhealthy', message, nodes: [node] }];
    }),
  );
}

/** Probes of which one attempt may take longer than a node has to confirm the change. */
function slowProbes(
  fragments: readonly Fragment[],
  altered: readonly NodeState[],
  poolOf: ReadonlyMap<string, string>,
  pools: ReadonlyMap<string, PoolPolicy>,
): readonly Reason[] {
  const leastMs = Math.min(applyMsOf(DEFAULT_POOL), ...[...pools.values()].map((pool) => applyMsOf(pool)));
  const slow = fragments.filter((one) => one.kind === 'Probe' && timeoutOf(one) >= leastMs * CONFIRM_SHARE);
  return mergeReasons(
    slow.flatMap((probe) =>
      altered.flatMap(({ node, labels, capabilities }) => {
        const pool = poolOf.get(node) ?? 'default';
        const confirmMs = applyMsOf(pools.get(pool) ?? DEFAULT_POOL, capabilities) * CONFIRM_SHARE;
        if (timeoutOf(probe) < confirmMs || !selects(selectorOf(probe), labels)) return [];
        const message = `one attempt may take ${timeoutOf(probe) / 1_000}s, but the nodes of the pool ${pool} must confirm a change within ${Math.floor(confirmMs / 1_000)}s, two thirds of applyTimeout: use a shorter timeout, or a longer applyTimeout`;
        return [{ fragment: fragmentId(probe), field: 'spec.timeout', code: 'slow-probe', message, nodes: [node] }];
      }),
    ),
  );
}

/** In milliseconds. */
function timeoutOf({ spec }: Fragment): number {
  const { timeout } = spec as { readonly timeout?: unknown };
  return timeout === undefined ? PROBE_TIMEOUT_MS : (durationMs(String(timeout)) ?? 0);
}

function* probedNodes({ nodes, failing }: State) {
  for (const { node, labels } of nodes.values()) yield { node, labels, failingProbes: failing.get(node) ?? [] };
}

function sharedPoolWarnings(state: State, change: Content, pools: ReadonlyMap<string, PoolPolicy>): readonly Reason[] {
  const added = change.apply.filter(({ kind }) => kind === 'Pool');
  if (added.length === 0) return [];
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
  const renderings: NodeRendering[] = [];
  for (const name of names) {
    yield PAUSE;
    const node = state.nodes.get(name);
    if (node === undefined) continue;
    const committedNode = templateNode(state, committed, node);
    const { hash, recipe, text, reasons, config } = renderNode(committed.forNode(node.labels), committedNode, digest);
    const problems = [...reasons, ...tooLarge({ hash, recipe, text, reasons, config }, name)];
    const outdatedIn: string[] = [];
    for (const [change, targets] of open) {
      const target = Object.hasOwn(targets, name) ? targets[name] : undefined;
      if (target === undefined) continue;
      // Compiled only when needed: a node is a target of at most one rollout, and there may be hundreds of rollouts.
      const index = indexes.get(change) ?? (yield* compiled(fragmentsWith(state, contentOf(state, change))));
      indexes.set(change, index);
      const now = renderNode(index.forNode(node.labels), templateNode(state, index, node), digest);
      if (now.reasons.length > 0 || now.hash !== target.to) outdatedIn.push(change);
    }
    const unusable = problems.length > 0;
    renderings.push({
      node: name,
      hash: unusable ? '' : hash,
      recipe: unusable ? '' : recipe,
      text,
      outdatedIn,
      problems,
    });
  }
  return renderings;
}

const contentOf = (state: State, change: string): Content => state.changes.get(change) ?? { apply: [], delete: [] };
