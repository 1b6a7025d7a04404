import {
  changeSequence,
  fragmentId,
  READS_OBJECTS,
  type BindingsView,
  type BoundField,
  type FactOf,
  type Fragment,
  type FragmentRef,
} from '#libs/contracts';
import { viewKey } from '#libs/engine';
import {
  bindingsIn,
  BOUND_VALUES,
  boundFieldKey,
  boundValuesId,
  boundValuesIn,
  MOST_BOUND_VALUES,
  selectorOf,
  selects,
} from '#libs/manifests';
import { boundFieldsOf, compileFragment, type BoundNode, type FragmentIndex } from '#libs/rules';
import { load, type Change, type NodeState, type PublishedValues, type State } from './state.js';

/** The source of the changes with the values of bindings. */
export const BINDINGS_SOURCE = 'bindings';

/** The most nodes of which it is remembered what was published. Those that exist are always remembered. */
const MOST_PUBLISHED = 20_000;

type Content = Pick<Change, 'apply' | 'delete'>;

const isValues = ({ kind }: { readonly kind: string }): boolean => kind === BOUND_VALUES;
const hasFields = (fragment: Fragment): boolean => bindingsIn(fragment).some(({ object }) => object !== undefined);

/** What templates and bindings can refer to on a node. */
export const templateNode = (state: State, index: FragmentIndex, node: NodeState): BoundNode => ({
  name: node.node,
  labels: node.labels,
  values: index.valuesOf(node.node),
  readsObjects: node.capabilities.includes(READS_OBJECTS),
  isSilent: state.notReady.get(node.node)?.includes('silent') === true,
});

/** The nodes whose values a change contains. It touches no others. */
export function valuedNodes(state: State, { apply, delete: gone }: Content): readonly NodeState[] {
  return [...apply, ...gone].filter(isValues).flatMap(({ name }) => state.nodes.get(name) ?? []);
}

/** The committed fragments that use the values of the change on one of its nodes. It changes them too. */
export function valueUsersOf(state: State, change: Content): readonly Fragment[] {
  const nodes = valuedNodes(state, change);
  if (nodes.length === 0) return [];
  return committedWithFields(state).filter((fragment) =>
    nodes.some(({ labels }) => selects(selectorOf(fragment), labels)),
  );
}

const committedWithFields = ({ fragments, boundFragmentIds }: State): readonly Fragment[] =>
  [...boundFragmentIds].flatMap((id) => fragments.get(id)?.fragment ?? []);

/** Keeps track of the committed fragments that have bindings to fields. */
export function noteCommitted({ boundFragmentIds }: State, id: string, fragment: Fragment | undefined): void {
  if (fragment !== undefined && hasFields(fragment)) boundFragmentIds.add(id);
  else boundFragmentIds.delete(id);
}

/** A fold from its JSON. */
export function loadWithBindings(dumped: unknown): State {
  const state = load(dumped);
  for (const [id, { fragment }] of [...state.fragments.entries()].sort(([a], [b]) => (a < b ? -1 : 1)))
    noteCommitted(state, id, fragment);
  return state;
}

/** What the applier of a node should read: for the committed state, and for open changes, which wait for it. */
export function fieldsOn(state: State, node: NodeState): readonly BoundField[] {
  const bindings = boundOn(state, node).flatMap((fragment) => compileFragment(fragment).bindings);
  return boundFieldsOf(bindings, { name: node.node, labels: node.labels }).slice(0, MOST_BOUND_VALUES);
}

function boundOn(state: State, { labels }: NodeState): readonly Fragment[] {
  const open = [...state.openChanges].flatMap((name) => withFields(state.changes.get(name)?.apply ?? []));
  return [...committedWithFields(state), ...open].filter((one) => selects(selectorOf(one), labels));
}

/** What people call each field: the names of the bindings that mean it. */
function namesOn(state: State, node: NodeState): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  for (const fragment of boundOn(state, node))
    for (const binding of compileFragment(fragment).bindings)
      for (const field of boundFieldsOf([binding], { name: node.node, labels: node.labels }))
        names.set(boundFieldKey(field), binding.name);
  return names;
}

/** A list of fragments stays the same object in every phase of a change. */
const WITH_FIELDS = new WeakMap<Change['apply'], readonly Fragment[]>();
function withFields(apply: Change['apply']): readonly Fragment[] {
  const cached = WITH_FIELDS.get(apply) ?? apply.filter(hasFields);
  WITH_FIELDS.set(apply, cached);
  return cached;
}

export const bindingsKey = (node: string): string => viewKey('bindings', node);

/** The value of the view; undefined if there is nothing to read for the node. */
export function bindingsView(state: State, name: string): Omit<BindingsView, 'ledger'> | undefined {
  const node = state.nodes.get(name);
  const fields = node === undefined ? [] : fieldsOn(state, node);
  return fields.length === 0 ? undefined : { node: name, fields };
}

/** What the appliers of some nodes should read may differ once this change is open, committed or ended. */
export function showBindings(state: State, { apply, delete: gone }: Content): void {
  const before = [...apply, ...gone].flatMap((ref) => state.fragments.get(fragmentId(ref))?.fragment ?? []);
  const bound = [...withFields(apply), ...before.filter(hasFields)].map(selectorOf);
  if (bound.length === 0) return;
  for (const { node, labels } of state.nodes.values())
    if (bound.some((selector) => selects(selector, labels))) state.touched.add(bindingsKey(node));
}

/** Values to publish for a node, and what was published for it last. */
export interface WantedValues {
  readonly node: string;
  /** Empty if none are needed any more. */
  readonly fields: readonly BoundField[];
  /** The name of a binding to each field. */
  readonly names: ReadonlyMap<string, string>;
  readonly published: PublishedValues | undefined;
  /** How many open changes have values of this node. */
  readonly open: number;
}

const NO_NAMES: ReadonlyMap<string, string> = new Map();

/** A cache that is derived from the fold. It is not part of the fold. */
const WANTED = new WeakMap<State, { readonly basis: string; readonly wanted: readonly WantedValues[] }>();

/**
 * The nodes that have bindings to fields, or had. Those whose values another source has published are left out. It is
 * the same list as before if nothing has changed, because the shell calls this all the time, for all nodes.
 */
export function wantedValues(state: State): readonly WantedValues[] {
  const { cursor, generation, nodesVersion, openChanges } = state;
  const basis = `${cursor.get()} ${generation.get()} ${nodesVersion.get()} ${[...openChanges].join()}`;
  const cached = WANTED.get(state);
  if (cached?.basis === basis) return cached.wanted;
  const wanted = wantedNow(state);
  WANTED.set(state, { basis, wanted });
  return wanted;
}

function wantedNow(state: State): readonly WantedValues[] {
  const open = [...state.openChanges].flatMap((name) => state.changes.get(name) ?? []);
  const openIds = open.flatMap(({ source, apply, delete: gone }) =>
    [...apply, ...gone].filter(isValues).map((ref) => ({ source, id: fragmentId(ref) })),
  );
  const isForeign = (id: string): boolean =>
    [state.fragments.get(id), ...openIds.filter((one) => one.id === id)].some(
      (owner) => owner !== undefined && owner.source !== BINDINGS_SOURCE,
    );
  const hasAny = state.boundFragmentIds.size > 0 || open.some(({ apply }) => withFields(apply).length > 0);
  const names = new Set([...(hasAny ? state.nodes.keys() : []), ...state.publishedValues.keys()]);
  return [...names].sort().flatMap((name) => {
    const id = boundValuesId(name);
    const node = state.nodes.get(name);
    const fields = node === undefined ? [] : fieldsOn(state, node);
    const published = state.publishedValues.get(name);
    const isGone = fields.length === 0 && (published === undefined || published.values.length === 0);
    if (isGone || isForeign(id)) return [];
    const names = node === undefined || fields.length === 0 ? NO_NAMES : namesOn(state, node);
    return [{ node: name, fields, names, published, open: openIds.filter((one) => one.id === id).length }];
  });
}

type Accepted = Pick<FactOf<'config.accepted'>, 'change' | 'source' | 'apply' | 'delete' | 'rollbackOf'>;

/** Remembers what was published, also if it is never committed: the same is not published again. */
export function noteValues(state: State, { change, source, apply, delete: gone, rollbackOf }: Accepted): void {
  if (source !== BINDINGS_SOURCE || rollbackOf !== undefined) return;
  const { publishedValues } = state;
  for (const fragment of apply)
    if (isValues(fragment)) publishedValues.set(fragment.name, { values: boundValuesIn(fragment), change });
  for (const ref of gone) if (isValues(ref)) publishedValues.set(ref.name, { values: [], change });
  if (publishedValues.size <= MOST_PUBLISHED) return;
  const left = [...publishedValues.entries()].filter(([node]) => !state.nodes.has(node));
  const oldest = left.sort(([, a], [, b]) => changeSequence(a.change) - changeSequence(b.change));
  for (const [node] of oldest.slice(0, MOST_PUBLISHED / 2)) publishedValues.delete(node);
}

/** Forgets the nodes whose values this change has deleted. */
export function forgetValues(state: State, gone: readonly FragmentRef[]): void {
  for (const ref of gone)
    if (isValues(ref) && state.publishedValues.get(ref.name)?.values.length === 0)
      state.publishedValues.delete(ref.name);
}

/**
 * Why values that Sluice has published must not be accepted: others were published after the ones that they replace.
 * Another copy was faster, and these may be older.
 */
export function whyOvertaken(
  state: State,
  {
    source,
    apply,
    rollbackOf,
    retryOf,
  }: Pick<Change, 'source' | 'apply' | 'retryOf'> & { rollbackOf?: string | undefined },
): string | undefined {
  if (source !== BINDINGS_SOURCE || rollbackOf !== undefined || retryOf !== '') return undefined;
  for (const fragment of apply) {
    if (!isValues(fragment)) continue;
    const known = state.publishedValues.get(fragment.name)?.change;
    if ((known ?? '') !== (fragment.spec?.['after'] ?? ''))
      return `${fragmentId(fragment)} was published as ${known ?? 'nothing'} meanwhile: another copy of the merger has read it since`;
  }
  return undefined;
}
