import { fragmentId, isRestOfDrift, type Fragment, type FragmentCounts, type FragmentView } from '#libs/contracts';
import { viewKey } from '#libs/engine';
import { isNodeKind, leavesEveryNode, selects, type NodeSelector } from '#libs/manifests';
import { namedIn, placesIn } from '#libs/rules';
import { valueUsersOf } from './bindings.js';
import { usersOf } from './names.js';
import { selectorIn } from './possible-configs.js';
import { nodesSelectedBy, selectorText } from './reach.js';
import {
  touchedIds,
  type Change,
  type CommittedFragment,
  type NodeState,
  type PossibleConfig,
  type ShownCounts,
  type State,
} from './state.js';

/** How far a fragment has reached its nodes. */
export type Reached = Omit<FragmentView, 'ledger' | 'fragment' | 'change' | 'gone' | 'source'>;

/** How many nodes that still have a deleted fragment are named. */
const MOST_NAMED = 10;
const NOWHERE: Reached = {
  rolling: '',
  inSync: false,
  appliedGeneration: 0,
  appliedAt: '',
  removing: false,
  stillOn: [],
};

/** The shortest time between two writes of changed counts. */
const LEAST_MS = 1_000;
/** A view has the whole fragment, so counts of large fragments are written less often: at most 1 MB per second. */
const BYTES_PER_MS = 1_000;

/** Asks that the views of all fragments whose counts have changed are written, and returns when that may be again. */
export function showCounts(state: State, nowMs: number): ShownCounts {
  const counter = counterOf(state);
  const { shown } = state.progress;
  let bytes = 0;
  const committed = [...state.fragments.entries()].map(([id, row]) => [id, row, false] as const);
  const gone = [...state.goneFragments.entries()].map(([id, row]) => [id, row, true] as const);
  for (const [id, row, isGone] of [...committed, ...gone]) {
    const text = textOf(counter, id, row, isGone);
    if (shown.get(row)?.text === text) continue;
    const size = shown.get(row)?.bytes ?? JSON.stringify(row.fragment).length;
    shown.set(row, { text, bytes: size });
    state.touched.add(viewKey('fragments', id.replace('/', '.')));
    bytes += size;
  }
  return { version: state.progress.countsVersion.get(), notBeforeMs: nowMs + Math.max(LEAST_MS, bytes / BYTES_PER_MS) };
}

/**
 * Records what was written. A view shows the facts that are known when it is written, and these may be more than at the
 * decision, or the view may be written for another reason.
 */
export function noteShown(state: State, id: string): void {
  const { shown } = state.progress;
  const committed = state.fragments.get(id);
  const row = committed ?? state.goneFragments.get(id);
  if (row === undefined) return;
  const text = textOf(counterOf(state), id, row, committed === undefined);
  shown.set(row, { text, bytes: shown.get(row)?.bytes ?? JSON.stringify(row.fragment).length });
}

const textOf = (counter: Counter, id: string, row: CommittedFragment, isGone: boolean): string =>
  JSON.stringify(isGone ? counter.left(row) : counter.reached(id, row));

/** Which nodes still have a deleted fragment. */
export const leftOn = (state: State, row: CommittedFragment): Reached => counterOf(state).left(row);

/** How far a committed fragment has reached its nodes. */
export const reachedBy = (state: State, id: string, row: CommittedFragment): Reached =>
  counterOf(state).reached(id, row);

/** Nodes of which the config in force was rendered from the same generation and change. */
interface Class extends Pick<Change, 'change'> {
  readonly generation: number;
  readonly nodes: string[];
}

/** Nodes that may have a config from the same generation and change. */
interface Holders extends Pick<PossibleConfig, 'generation' | 'change'> {
  /** Of this counter. */
  readonly id: number;
  readonly nodes: Pick<NodeState, 'node' | 'labels'>[];
  /** By the text of a selector: the nodes that it selects. */
  readonly selected: Map<string, readonly string[]>;
}

/** Those of the holders who have a fragment. */
interface Selected {
  readonly holders: Holders;
  readonly selector: NodeSelector;
  readonly text: string;
}

type Left = Pick<Reached, 'counts' | 'stillOn'>;

/** A cache that is derived from the fold. It is not part of the fold. */
const COUNTERS = new WeakMap<State, Counter>();

function counterOf(state: State): Counter {
  const version = state.progress.countsVersion.get();
  const cached = COUNTERS.get(state);
  if (cached?.version === version) return cached;
  const counter = new Counter(state, version);
  COUNTERS.set(state, counter);
  return counter;
}

/**
 * Counts nodes per fragment. Hundreds of fragments usually share a few selectors, and few nodes are not up to date, so
 * each combination is counted once.
 */
class Counter {
  private readonly classes: readonly Class[];
  private readonly holders: readonly Holders[];
  private readonly leftovers: NodesByFragment;
  private readonly drift: NodesByFragment;
  /** By fragment: the change that is being rolled out and applies or deletes it. */
  private readonly rolling = new Map<string, Change>();
  private readonly counts = new Map<string, FragmentCounts>();
  private readonly lefts = new Map<string, Left>();
  private readonly ids = new Map<string, ReadonlySet<string>>();
  /** By selector: whether a node that it selects is not ready. */
  private readonly notReady = new Map<string, boolean>();

  constructor(
    private readonly state: State,
    readonly version: number,
  ) {
    this.classes = classesOf(state);
    this.holders = holdersOf(state);
    this.leftovers = new NodesByFragment(state.leftovers, state.nodes, (text) =>
      isRestOfDrift(text) || !text.includes(': ') ? [] : [text.slice(0, text.indexOf(': '))],
    );
    const rows = state.drift.size === 0 ? [] : [...state.fragments.values()];
    const places = placesIn(rows.map(({ fragment: { spec = {}, ...one } }) => ({ ...one, spec })));
    this.drift = new NodesByFragment(state.drift, state.nodes, (text) => namedIn(text, places).map(fragmentId));
    for (const name of state.openChanges) {
      const change = state.changes.get(name);
      if (change?.rollout === 'rolling' || change?.rollout === 'complete')
        for (const id of this.idsOf(change)) this.rolling.set(id, change);
    }
  }

  reached(id: string, { fragment, generation, appliedAt }: CommittedFragment): Reached {
    if (!isNodeKind(fragment.kind)) return { ...NOWHERE, inSync: true, appliedGeneration: generation, appliedAt };
    const rolling = this.rolling.get(id);
    const version = rolling?.apply.find((one) => fragmentId(one) === id) ?? fragment;
    const counts = rolling === undefined ? this.committed(id, fragment, generation) : this.inRollout(rolling, version);
    const inSync = rolling === undefined && counts.upToDate === counts.nodes && !this.hasNotReady(fragment);
    const applied = inSync ? { appliedGeneration: generation, appliedAt } : { appliedGeneration: 0, appliedAt: '' };
    return { ...NOWHERE, counts, rolling: rolling?.change ?? '', inSync, ...applied };
  }

  /** Of a deleted fragment: it is left where a config may be in force that has it, or where a part of it is. */
  left(row: CommittedFragment): Reached {
    const { fragment } = row;
    if (!isNodeKind(fragment.kind)) return NOWHERE;
    const selected = this.holders.flatMap((holders): Selected[] => {
      if (holders.change === '' && holders.generation >= row.generation) return [];
      const selector = selectorIn(this.state, row, holders);
      return selector === undefined ? [] : [{ holders, selector, text: JSON.stringify(selector) }];
    });
    const leftovers = this.leftovers.mayHave(fragmentId(fragment));
    const keys = selected.map(({ holders: { id }, text }) => `${id} ${text}`);
    const key = [...keys, leftovers.join(), selectorText(fragment)].join('\n');
    const found = this.lefts.get(key) ?? this.leftOn(fragment, [...selected.flatMap(nodesIn), ...leftovers]);
    this.lefts.set(key, found);
    return { ...NOWHERE, ...found, removing: found.stillOn.length > 0 && leavesEveryNode(fragment) };
  }

  private leftOn(fragment: Fragment, holders: readonly string[]): Left {
    const left = [...new Set(holders)].sort();
    const selected = nodesSelectedBy(this.state, fragment);
    const others = left.filter((node) => !selected.has(node));
    return { counts: this.tally(selected.size + others.length, left, []), stillOn: left.slice(0, MOST_NAMED) };
  }

  private committed(id: string, fragment: Fragment, generation: number): FragmentCounts {
    const behind = this.classes.filter((one) => one.generation < generation || this.isTouched(one.change, id));
    const drifted = this.driftedFrom(id);
    const key = [...behind.map((one) => `${one.generation} ${one.change}`), drifted.join(' '), selectorText(fragment)];
    return this.cached(key.join('|'), () => {
      const selected = nodesSelectedBy(this.state, fragment);
      return this.tally(
        selected.size,
        behind.flatMap(({ nodes }) => nodes.filter((node) => selected.has(node))),
        drifted.filter((node) => selected.has(node)),
      );
    });
  }

  private inRollout(change: Change, version: Fragment): FragmentCounts {
    const drifted = this.driftedFrom(fragmentId(version));
    return this.cached([change.change, drifted.join(' '), selectorText(version)].join('|'), () => {
      const { inForce, targets } = this.state;
      const selected = nodesSelectedBy(this.state, version);
      // A node that got the same config from the change that this one corrects is done, too.
      const wanted = targets.get(change.change) ?? {};
      const left = [...selected].filter(
        (node) => Object.hasOwn(wanted, node) && inForce.get(node) !== wanted[node]?.to,
      );
      return this.tally(
        selected.size,
        left,
        drifted.filter((node) => selected.has(node)),
        change.change,
      );
    });
  }

  /** The nodes that say that they are not as the fragment wants them. */
  private driftedFrom(id: string): readonly string[] {
    return [...new Set([...this.drift.have(id), ...this.leftovers.have(id)])];
  }

  /** `left`: the nodes that are not up to date. `only`: the change whose leases count; without it, all do. */
  private tally(nodes: number, left: readonly string[], drifting: readonly string[], only?: string): FragmentCounts {
    const counts = { applying: 0, failed: 0, deferred: 0, waiting: 0 };
    for (const node of left) {
      const work = this.state.work.get(node);
      const did = work !== undefined && (only === undefined || work.change === only) ? work.state : undefined;
      counts[did ?? (this.isAway(node) ? 'deferred' : 'waiting')] += 1;
    }
    const behind = new Set(drifting.length === 0 ? [] : left);
    const drifted = drifting.filter((node) => !behind.has(node)).length;
    return { nodes, upToDate: nodes - left.length - drifted, ...counts, drifted };
  }

  /** Whether the node gets no lease now. */
  private isAway(node: string): boolean {
    return (this.state.notReady.get(node) ?? []).some((why) => why !== 'degraded');
  }

  /** A change that is rolled back has replaced the committed fragment on the nodes that still have it. */
  private isTouched(name: string, id: string): boolean {
    if (name === '') return false;
    const change = this.state.changes.get(name);
    return change === undefined || this.idsOf(change).has(id);
  }

  /** What it touches, and what uses a name or a value that it touches. */
  private idsOf(change: Change): ReadonlySet<string> {
    const ids =
      this.ids.get(change.change) ??
      new Set([
        ...touchedIds(change),
        ...[...usersOf(this.state, change), ...valueUsersOf(this.state, change)].map((user) => fragmentId(user)),
      ]);
    this.ids.set(change.change, ids);
    return ids;
  }

  private hasNotReady(fragment: Fragment): boolean {
    const { notReady, failing, drift } = this.state;
    const tables = [notReady, failing, drift];
    if (tables.every(({ size }) => size === 0)) return false;
    const text = selectorText(fragment);
    let found = this.notReady.get(text);
    if (found === undefined) {
      const selected = nodesSelectedBy(this.state, fragment);
      found = tables.some((table) => [...table.keys()].some((node) => selected.has(node)));
      this.notReady.set(text, found);
    }
    return found;
  }

  private cached(key: string, make: () => FragmentCounts): FragmentCounts {
    const cached = this.counts.get(key) ?? make();
    this.counts.set(key, cached);
    return cached;
  }
}

/** The nodes of a table, by the fragments that their texts are about. */
class NodesByFragment {
  private readonly byId = new Map<string, string[]>();
  /** With a text of which it is not known what it is about. */
  private readonly unclear: string[] = [];

  constructor(table: State['leftovers'], nodes: State['nodes'], idsIn: (text: string) => readonly string[]) {
    for (const [node, texts] of table.entries()) {
      if (!nodes.has(node)) continue;
      const ids = texts.map(idsIn);
      if (ids.some((some) => some.length === 0)) this.unclear.push(node);
      for (const id of new Set(ids.flat())) this.byId.set(id, [...(this.byId.get(id) ?? []), node]);
    }
  }

  have(id: string): readonly string[] {
    return this.byId.get(id) ?? [];
  }

  mayHave(id: string): readonly string[] {
    return [...this.have(id), ...this.unclear];
  }
}

function nodesIn({ holders, selector, text }: Selected): readonly string[] {
  const found =
    holders.selected.get(text) ??
    holders.nodes.filter(({ labels }) => selects(selector, labels)).map(({ node }) => node);
  holders.selected.set(text, found);
  return found;
}

function holdersOf({ possibleConfigs, nodes }: State): readonly Holders[] {
  const all = new Map<string, Holders>();
  for (const [node, { configs }] of possibleConfigs.entries()) {
    const now = nodes.get(node)?.labels;
    if (now === undefined) continue;
    for (const { generation, change, labels = now } of configs) {
      const key = `${generation} ${change}`;
      const found: Holders = all.get(key) ?? { id: all.size, generation, change, nodes: [], selected: new Map() };
      all.set(key, found);
      found.nodes.push({ node, labels });
    }
  }
  return [...all.values()];
}

function classesOf({ behind }: State): readonly Class[] {
  const classes = new Map<string, Class>();
  for (const [node, { generation, change }] of behind.entries()) {
    const key = `${generation} ${change}`;
    const found = classes.get(key) ?? { generation, change, nodes: [] };
    classes.set(key, found);
    found.nodes.push(node);
  }
  return [...classes.values()];
}
