import { fragmentId, type Fragment, type Targets } from '#libs/contracts';
import { selectorOf, selects } from '#libs/manifests';
import { valuedNodes } from './bindings.js';
import { openUsersOf } from './names.js';
import { selectorsOf } from './selection.js';
import type { Change, State } from './state.js';

/** Names of nodes. The same selectors give the same object until a node joins, leaves or is relabelled. */
type NodeSet = ReadonlySet<string>;

/** What a change touches. */
export interface Reach {
  /** Ids of its fragments. */
  readonly ids: ReadonlySet<string>;
  /**
   * Nodes that its own fragments select or selected, those of fragments that look up a name of the change, and those
   * whose values it has.
   */
  readonly own: NodeSet;
  /** These and its targets. The targets of a correction include those of the change that it corrects. */
  readonly nodes: NodeSet;
}

/** Counts work, in bytes (see MAX_DECISION_BYTES). */
export type Spend = (bytes: number) => void;

/** The cost of one check: whether a selector selects a node, or whether two changes overlap. */
const LOOK_BYTES = 4;

/** Computes what a change touches in this state. */
export function reachOf(state: State, change: Change, spend: Spend): Reach {
  const sets = setsOf(state);
  const selected = sets.selectedBy(state, [...selectorsOf(state, change), ...openUsersOf(state, change)], spend);
  const valued = valuedNodes(state, change);
  const own = valued.length === 0 ? selected : new Set([...selected, ...valued.map(({ node }) => node)]);
  spend((change.apply.length + change.delete.length) * LOOK_BYTES);
  return { ids: idsOf(change), own, nodes: sets.withTargets(own, state.targets.get(change.change), spend) };
}

/** Compares all nodes of the other change with only the change's own nodes, not with those that it corrects. */
export function overlaps(state: State, other: Reach, change: Reach, spend: Spend): boolean {
  spend(LOOK_BYTES);
  return meets(other.ids, change.ids) || setsOf(state).meets(other.nodes, change.own, spend);
}

/** The nodes that a fragment selects. */
export const nodesSelectedBy = (state: State, fragment: Fragment): NodeSet =>
  setsOf(state).selectedBy(state, [fragment], () => {});

/** A cache that is derived from the fold. It is not part of the fold. */
const SETS = new WeakMap<State, NodeSets>();

function setsOf(state: State): NodeSets {
  const version = state.nodesVersion.get();
  const cached = SETS.get(state);
  if (cached?.version === version) return cached;
  const sets = new NodeSets(version);
  SETS.set(state, sets);
  return sets;
}

/** The most entries of the cache. When it is full, it starts over. */
const MOST_SETS = 10_000;
const NOBODY: NodeSet = new Set<string>();

/**
 * The nodes that each selector selects. Hundreds of changes usually share a few selectors, so each selector is
 * evaluated once, and each pair of node sets is compared once.
 */
class NodeSets {
  private readonly sets = new Map<string, NodeSet>();
  private readonly pairs = new WeakMap<NodeSet, WeakMap<NodeSet, boolean>>();
  private readonly wide = new WeakMap<Targets, { readonly own: NodeSet; readonly nodes: NodeSet }>();

  constructor(readonly version: number) {}

  selectedBy(state: State, fragments: readonly Fragment[], spend: Spend): NodeSet {
    const [first, ...more] = [...new Map(fragments.map((fragment) => [selectorText(fragment), fragment]))].sort(
      ([a], [b]) => (a < b ? -1 : 1),
    );
    if (first === undefined) return NOBODY;
    if (more.length === 0) return this.cached(first[0], () => nodesOf(state, first[1], spend));
    return this.cached([first, ...more].map(([text]) => text).join('\n'), () => {
      const each = [first, ...more].map(([text, one]) => this.cached(text, () => nodesOf(state, one, spend)));
      spend(each.reduce((sum, { size }) => sum + size, 0) * LOOK_BYTES);
      return new Set(each.flatMap((set) => [...set]));
    });
  }

  withTargets(own: NodeSet, targets: Targets | undefined, spend: Spend): NodeSet {
    if (targets === undefined) return own;
    const cached = this.wide.get(targets);
    if (cached?.own === own) return cached.nodes;
    const names = Object.keys(targets);
    spend(names.length * LOOK_BYTES);
    const nodes = names.every((name) => own.has(name)) ? own : new Set([...own, ...names]);
    this.wide.set(targets, { own, nodes });
    return nodes;
  }

  meets(a: NodeSet, b: NodeSet, spend: Spend): boolean {
    if (a === b) return a.size > 0;
    const pairs = this.pairs.get(a) ?? new WeakMap<NodeSet, boolean>();
    const cached = pairs.get(b);
    if (cached !== undefined) return cached;
    spend(Math.min(a.size, b.size) * LOOK_BYTES);
    const overlap = meets(a, b);
    this.pairs.set(a, pairs.set(b, overlap));
    return overlap;
  }

  private cached(key: string, make: () => NodeSet): NodeSet {
    const cached = this.sets.get(key);
    if (cached !== undefined) return cached;
    const set = make();
    if (this.sets.size >= MOST_SETS) this.sets.clear();
    this.sets.set(key, set);
    return set;
  }
}

function nodesOf(state: State, fragment: Fragment, spend: Spend): NodeSet {
  const selector = selectorOf(fragment);
  spend(state.nodes.size * LOOK_BYTES);
  const nodes = new Set<string>();
  for (const { node, labels } of state.nodes.values()) if (selects(selector, labels)) nodes.add(node);
  return nodes;
}

export const meets = (a: ReadonlySet<string>, b: ReadonlySet<string>): boolean => {
  const [small, large] = a.size < b.size ? [a, b] : [b, a];
  for (const item of small) if (large.has(item)) return true;
  return false;
};

/** Fragments and changes never change, so what is derived from them stays valid. */
const TEXTS = new WeakMap<Fragment, string>();
const IDS = new WeakMap<Change['apply'], ReadonlySet<string>>();

export function selectorText(fragment: Fragment): string {
  const cached = TEXTS.get(fragment);
  if (cached !== undefined) return cached;
  const text = JSON.stringify(selectorOf(fragment));
  TEXTS.set(fragment, text);
  return text;
}

/** The fragments that a change touches. Their list is the key: it stays the same object in every phase of a change. */
export function idsOf(change: Change): ReadonlySet<string> {
  const cached = IDS.get(change.apply);
  if (cached !== undefined) return cached;
  const ids = new Set([...change.apply, ...change.delete].map(fragmentId));
  IDS.set(change.apply, ids);
  return ids;
}
