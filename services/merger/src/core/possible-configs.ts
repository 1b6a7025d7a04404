import { EMPTY_HASH, fragmentId, type FactOf } from '#libs/contracts';
import { selectorOf, type NodeSelector } from '#libs/manifests';
import {
  UNKNOWN,
  type Basis,
  type Change,
  type CommittedFragment,
  type NodeState,
  type PossibleConfig,
  type PossibleConfigs,
  type Selectors,
  type SelectorSince,
  type State,
} from './state.js';

/**
 * Which configs each node may have. Invariants after each fact:
 * 1. a node without a row has the config of the committed state, for its labels of now;
 * 2. a row has every config that its node may have, and from what each was rendered. So it says which fragments the
 *    node may have, whatever was committed or rolled back since;
 * 3. only a report that is not older than the last lease of the node removes a config from its row.
 */

/** So many configs of a node are told apart. With more, nobody knows what it has. */
const MOST_CONFIGS = 16;
/** For so many nodes that have left it is remembered what they had, because they may come back with it. */
const MOST_LEFT = 10_000;
/** So many selectors of a fragment are told apart. */
const MOST_SELECTORS = 16;

export const EVERY_NODE: NodeSelector = {};

/** From now on, the node may get the config of this lease. */
export function leaseApplying(
  state: State,
  { node, lease, change, hash }: Pick<FactOf<'node.lease.applying'>, 'node' | 'lease' | 'change' | 'hash'>,
): void {
  if (!state.nodes.has(node)) return;
  const { configs } = rowOf(state, node);
  put(state, node, { configs: withConfig(configs, configOf(state, node, hash, change)), lease });
}

/** No applier works on the last lease of the node any more. */
export function leaseOver(state: State, node: string): void {
  const row = state.possibleConfigs.get(node);
  if (row !== undefined && row.lease !== '') put(state, node, { ...row, lease: '' });
}

/** Call this before the tables say which config is in force. */
export function configReported(
  state: State,
  { node, hash, lease, restored }: Pick<FactOf<'node.reported'>, 'node' | 'hash' | 'lease' | 'restored'>,
): void {
  const row = state.possibleConfigs.get(node);
  if (row === undefined && (!state.nodes.has(node) || isCommitted(state, node, hash))) return;
  // Until the lease is over, a report that does not name it may be about the time before it.
  const isOver = row === undefined || row.lease === '' || row.lease === lease;
  const config = configOf(state, node, hash);
  // After an incomplete rollback, a node may still have parts of another config.
  const configs = isOver && restored ? [config] : withConfig(rowOf(state, node).configs, config);
  put(state, node, { configs, lease: isOver ? '' : row.lease });
}

/** The node may have been here before. */
export function configsJoined(state: State, node: string): void {
  if (state.possibleConfigs.has(node)) return;
  put(state, node, { configs: [configOf(state, node, inForceOn(state, node))], lease: '' });
}

/** Call this before the tables say that it has left. */
export function configsLeft(state: State, node: string): void {
  const labels = state.nodes.get(node)?.labels;
  if (labels === undefined) return;
  const row = rowOf(state, node);
  if (row.configs.every(({ hash }) => hash === EMPTY_HASH)) return state.possibleConfigs.delete(node);
  state.possibleConfigs.set(node, { ...row, configs: row.configs.map((one) => ({ labels, ...one })) });
  forgetLeft(state);
}

/**
 * The node will be rendered again. Call this before the tables say so. `desiredFrom`: what the config in `desired` was
 * rendered from, if that is not what the tables say.
 */
export function configsOutdated(
  state: State,
  { node, labels }: NodeState,
  isRelabelled: boolean,
  desiredFrom?: Basis,
): void {
  const dated = <T extends Basis>(basis: T): T => (isRelabelled ? { labels, ...basis } : basis);
  const row = rowOf(state, node);
  const desired = state.desired.get(node);
  state.possibleConfigs.set(node, { ...row, configs: row.configs.map(dated) });
  if (desired !== undefined)
    state.desired.set(node, { ...desired, renderedFrom: dated(desiredFrom ?? basisOf(state, node)) });
}

/** Call this when the config of the committed state for this node may be another one. */
export function configsCommitted(state: State, node: string, before: Basis): void {
  const row = state.possibleConfigs.get(node);
  const hash = inForceOn(state, node);
  if (row !== undefined) put(state, node, row);
  else if (!isCommitted(state, node, hash)) put(state, node, { configs: [{ hash, change: '', ...before }], lease: '' });
}

/** Keeps which nodes an ended change selected if some may have it, and forgets the changes that none has any more. */
export function noteTried(state: State, change: Change): void {
  const tried = new Set<string>();
  for (const { configs } of state.possibleConfigs.values()) for (const one of configs) tried.add(one.change);
  if (tried.has(change.change)) state.triedSelectors.set(change.change, selectorsIn(change));
  for (const name of [...state.triedSelectors.keys()]) if (!tried.has(name)) state.triedSelectors.delete(name);
}

/** The selectors of a fragment after another version was committed, or its deletion. */
export function nextSelectors(before: CommittedFragment | undefined, next: SelectorSince): readonly SelectorSince[] {
  const all = before?.selectors ?? [];
  if (all.length > 0 && same(all.at(-1)?.selector, next.selector)) return all;
  const [first, second, ...rest] = [...all, next];
  if (first === undefined || second === undefined || rest.length < MOST_SELECTORS - 1) return [...all, next];
  // Of the oldest two, one is left that selects the nodes of both.
  const either = first.selector ?? second.selector ?? EVERY_NODE;
  const isBoth =
    first.selector !== undefined && second.selector !== undefined && !same(first.selector, second.selector);
  return [{ since: first.since, selector: isBoth ? EVERY_NODE : either }, ...rest];
}

const same = (a: NodeSelector | undefined, b: NodeSelector | undefined): boolean =>
  JSON.stringify(a) === JSON.stringify(b);

/** Which nodes have the fragment if they have such a config; undefined if none. */
export function selectorIn(
  state: State,
  { fragment, selectors }: CommittedFragment,
  { generation, change }: Pick<PossibleConfig, 'generation' | 'change'>,
): NodeSelector | undefined {
  if (generation === UNKNOWN) return EVERY_NODE;
  if (change !== '') {
    const own = selectorsOfChange(state, change);
    if (own === undefined) return EVERY_NODE;
    const id = fragmentId(fragment);
    const selector = Object.hasOwn(own, id) ? own[id] : undefined;
    if (selector !== undefined) return selector ?? undefined;
  }
  return selectors.findLast(({ since }) => since <= generation)?.selector;
}

function selectorsOfChange(state: State, name: string): Selectors | undefined {
  const change = state.changes.get(name);
  return change?.open === true ? selectorsIn(change) : state.triedSelectors.get(name);
}

/** A list of fragments stays the same object in every phase of a change. */
const SELECTORS = new WeakMap<Change['apply'], Selectors>();

function selectorsIn({ apply, delete: gone }: Change): Selectors {
  const cached = SELECTORS.get(apply);
  if (cached !== undefined) return cached;
  const applied = apply.map((fragment) => [fragmentId(fragment), selectorOf(fragment)] as const);
  const selectors = Object.fromEntries([...applied, ...gone.map((ref) => [fragmentId(ref), null] as const)]);
  SELECTORS.set(apply, selectors);
  return selectors;
}

const inForceOn = (state: State, node: string): string => state.inForce.get(node) ?? '';

const isCommitted = (state: State, node: string, hash: string): boolean =>
  hash !== '' && state.desired.get(node)?.hash === hash && !state.toRender.has(node);

/** From what the config in `desired` was rendered, and those of the rollouts that reach the node. */
function basisOf(state: State, node: string): Basis {
  if (!state.toRender.has(node)) return { generation: state.generation.get() };
  return state.desired.get(node)?.renderedFrom ?? { generation: UNKNOWN };
}

/** A node without a row has the config of the committed state. */
const rowOf = (state: State, node: string): PossibleConfigs =>
  state.possibleConfigs.get(node) ?? {
    configs: [{ hash: inForceOn(state, node), change: '', ...basisOf(state, node) }],
    lease: '',
  };

const NOT_KNOWN = { generation: UNKNOWN, change: '' };

/** `change`: the one that the config is from, if that is known. */
function configOf(state: State, node: string, hash: string, change?: string): PossibleConfig {
  if (hash === EMPTY_HASH) return { hash, generation: 0, change: '' };
  if (hash === '') return { hash, ...NOT_KNOWN };
  if (state.desired.get(node)?.hash === hash) return { hash, change: '', ...basisOf(state, node) };
  const known = state.possibleConfigs.get(node)?.configs.find((one) => one.hash === hash);
  if (known !== undefined && known.generation !== UNKNOWN) return known;
  const isOf = change !== undefined && targetOf(state, change, node) === hash;
  const from = isOf ? change : rollingTo(state, node, hash)?.change;
  return from === undefined ? { hash, ...NOT_KNOWN } : { hash, change: from, ...basisOf(state, node) };
}

function targetOf({ targets }: State, change: string, node: string): string | undefined {
  const all = targets.get(change);
  return all !== undefined && Object.hasOwn(all, node) ? all[node]?.to : undefined;
}

/** The change whose rollout gives the node this config. */
export function rollingTo(state: State, node: string, hash: string): Change | undefined {
  for (const name of state.targets.keys()) {
    const change = state.changes.get(name);
    if (change?.rollout !== 'none' && targetOf(state, name, node) === hash) return change;
  }
  return undefined;
}

function withConfig(configs: readonly PossibleConfig[], config: PossibleConfig): readonly PossibleConfig[] {
  const others = configs.filter(({ hash }) => hash !== config.hash);
  const known = configs.find(({ hash, generation }) => hash === config.hash && generation !== UNKNOWN);
  const all = [...others, known ?? config];
  return all.length > MOST_CONFIGS ? [{ hash: '', ...NOT_KNOWN }] : all;
}

function put(state: State, node: string, row: PossibleConfigs): void {
  const [only, ...more] = row.configs;
  const isKnown = only !== undefined && more.length === 0 && row.lease === '';
  if (isKnown && isCommitted(state, node, only.hash)) state.possibleConfigs.delete(node);
  else state.possibleConfigs.set(node, row);
  state.countAgain();
}

/** Forgets the nodes that have left and whose configs are the oldest. */
function forgetLeft({ possibleConfigs, nodes }: State): void {
  if (possibleConfigs.size <= nodes.size + MOST_LEFT) return;
  const generationOf = ({ configs }: PossibleConfigs): number => Math.max(...configs.map((one) => one.generation));
  const left = [...possibleConfigs.entries()].filter(([node]) => !nodes.has(node));
  left.sort(([a, x], [b, y]) => generationOf(x) - generationOf(y) || (a < b ? -1 : 1));
  for (const [node] of left.slice(0, MOST_LEFT / 2)) possibleConfigs.delete(node);
}
