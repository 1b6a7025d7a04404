import {
  byAge,
  fragmentId,
  isDnsLabel,
  type BoundValue,
  type FailingProbe,
  type Fragment,
  type Reason,
  type Target,
  type Targets,
} from '#libs/contracts';
import { Cell, dumpTables, loadTables, SortedSet, Table, UndoLog } from '#libs/engine';
import type { Change as ChangeContent, NodeSelector } from '#libs/manifests';

export interface NodeState {
  readonly node: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly capabilities: readonly string[];
}

/** The phase of a change. A closed change no longer counts in the queue. */
export type Phase = 'accepted' | 'waiting' | 'rendered' | 'validated' | 'rolling' | 'committed' | 'rejected' | 'ended';
export type RolloutPhase = 'none' | 'rolling' | 'complete' | 'reverting' | 'reverted' | 'superseded';

export interface Change extends ChangeContent {
  readonly change: string;
  readonly source: string;
  readonly phase: Phase;
  readonly open: boolean;
  readonly rollout: RolloutPhase;
  readonly aborted: boolean;
  readonly waitsFor: readonly string[];
  /** What it refers to and does not exist, as `Kind/name`: it waits until it does, and holds up no other fragments. */
  readonly needs: readonly string[];
  /** When it is rejected if it still waits for that, in milliseconds since 1970; 0 if it does not wait. */
  readonly needsUntilMs: number;
  /** Its fragments that it leaves alone, because a newer change has touched them while it waited, and that change. */
  readonly leftTo?: Readonly<Record<string, string>>;
  readonly attempt: number;
  /** The inputs of the attempt have changed. */
  readonly outdated: boolean;
  readonly replaces: readonly string[];
  readonly nodes: number;
  readonly unchanged: number;
  readonly pools: Readonly<Record<string, number>>;
  readonly reasons: readonly Reason[];
  readonly warnings: readonly Reason[];
  /** Nodes that it does not fit, and the committed state neither: it does not reach them. */
  readonly incompatible: readonly string[];
  readonly outcome: string;
  readonly reason: string;
  /** By whom it was paused, and why; empty if it is not. */
  readonly paused: string;
  readonly generation: number;
  readonly acceptedAt: string;
  readonly endedAt: string;
  /** Outcome `duplicate`: the change that this one repeats. */
  readonly duplicateOf?: string;
}

/** A change that is only planned: it has no id, and counts as newer than all others. */
export const newChange = (
  { apply, delete: gone, message, author, strategy, retryOf, takeOver, rollbackOf }: ChangeContent,
  source: string,
): Change => ({
  change: `c${Number.MAX_SAFE_INTEGER}`,
  source,
  apply,
  delete: gone,
  message,
  author,
  strategy,
  retryOf,
  ...(takeOver === true ? { takeOver } : {}),
  ...(rollbackOf === undefined ? {} : { rollbackOf }),
  phase: 'accepted',
  open: true,
  rollout: 'none',
  aborted: false,
  waitsFor: [],
  needs: [],
  needsUntilMs: 0,
  attempt: 0,
  outdated: true,
  replaces: [],
  nodes: 0,
  unchanged: 0,
  pools: {},
  reasons: [],
  warnings: [],
  incompatible: [],
  outcome: '',
  reason: '',
  paused: '',
  generation: 0,
  acceptedAt: '',
  endedAt: '',
});

export interface CommittedFragment {
  readonly fragment: Fragment;
  /** The change that last applied or deleted it. */
  readonly change: string;
  /** The source that it belongs to. */
  readonly source: string;
  /** What that change replaced; undefined if it created or deleted the fragment. */
  readonly replaced?: Pick<CommittedFragment, 'fragment' | 'source'>;
  /** Of the committed state, when it last changed. */
  readonly generation: number;
  /** Which nodes it was for, oldest first. */
  readonly selectors: readonly SelectorSince[];
  /** When it last reached a node that did not have it yet; before that, when it was committed. */
  readonly appliedAt: string;
}

/** The generation of a config that is not known: it may have any part of what was ever committed. */
export const UNKNOWN = -1;

/** What a node has instead of the config of the committed state. */
export interface Behind {
  /** It has everything that was committed up to this generation, or `UNKNOWN`. */
  readonly generation: number;
  /** And this change, which is being rolled out or rolled back; empty if none. */
  readonly change: string;
}

/** Which nodes the committed fragment selected from a generation on. */
export interface SelectorSince {
  readonly since: number;
  /** Absent: the fragment was deleted. */
  readonly selector?: NodeSelector;
}

/** From what a config was rendered. */
export interface Basis {
  /** The committed state; `UNKNOWN` if nobody knows what is in the config. */
  readonly generation: number;
  /** The labels of the node, if they are not those of now. */
  readonly labels?: Readonly<Record<string, string>>;
}

/** A config that a node may have. */
export interface PossibleConfig extends Basis {
  readonly hash: string;
  /** The change that it was rendered with; empty if none. */
  readonly change: string;
}

/** What a node may have, if it is not known to have the config of the committed state. */
export interface PossibleConfigs {
  readonly configs: readonly PossibleConfig[];
  /** The lease with which the node may still get one of them; empty if there is none. */
  readonly lease: string;
}

/** Which nodes the fragments of a change select, by id; null if it deletes the fragment. */
export type Selectors = Readonly<Record<string, NodeSelector | null>>;

export type NotReady = 'silent' | 'unavailable' | 'taken' | 'degraded';

/** The last lease of a node that was not applied, or what was decided instead of one. */
export interface Work {
  readonly change: string;
  readonly state: 'applying' | 'failed' | 'deferred';
}

/** The first change that a source published with an id. */
export interface FirstUse {
  readonly change: string;
  readonly digest: string;
  readonly storedMs: number;
}

/** What a source has published on a day. */
export interface Usage {
  /** Days since 1970 in UTC. */
  readonly day: number;
  readonly bytes: number;
  /** How many of its changes were rejected because they exceeded the quota. */
  readonly refusals: number;
}

/**
 * So many sources have a quota of their own. All others of that day share one, and so do sources with invalid names, so
 * that names are no way around it.
 */
export const MOST_SOURCES = 1_000;
const SHARED = '';

/** The key in `usage` by which a source is counted. */
export const quotaOf = ({ usage }: State, source: string): string =>
  isDnsLabel(source) && (usage.has(source) || usage.size < MOST_SOURCES) ? source : SHARED;

/** What counts for the quota of a source on the day of `nowMs`. */
export function useOn(state: State, source: string, nowMs: number): Usage {
  const [use, day] = [state.usage.get(quotaOf(state, source)), dayOf(nowMs)];
  return use?.day === day ? use : { day, bytes: 0, refusals: 0 };
}

export const dayOf = (ms: number): number => Math.floor(ms / (24 * 3_600_000));

/** The key of `firstUses`. A source is a DNS label, so the first slash ends it. */
export const useKey = (source: string, id: string): string => `${source}/${id}`;

/** What was last published about a host name. */
export interface Published {
  /** Empty if its deletion was published. */
  readonly addresses: readonly string[];
  readonly change: string;
}

/** What was last published about the values of a node's bindings. */
export interface PublishedValues {
  /** Empty if their deletion was published. */
  readonly values: readonly BoundValue[];
  readonly change: string;
}

export interface DesiredConfig {
  readonly hash: string;
  readonly recipe: string;
  /** While a node is to be rendered again. Otherwise: from the committed state, and for the labels of now. */
  readonly renderedFrom?: Basis;
}

/** The version of no queue: all changes must be checked. */
export const NO_VERSION = -1;

/** How far this copy has checked the queue. It is not part of the fold, and no decision depends on it. */
export interface Progress {
  /** The change at which the next decision continues. */
  readonly next: string;
  /** How many changes are not checked yet. */
  readonly left: number;
  /** The version of the queue that was checked. If the version is different now, all changes must be checked again. */
  readonly version: number;
}

/** When the counts of this copy were last shown. It is not part of the fold, and no decision depends on it. */
export interface ShownCounts {
  /** The version of the counts that are shown. */
  readonly version: number;
  /** When they may be shown again, monotonic. */
  readonly notBeforeMs: number;
}

/** The merger's fold. */
export class State {
  readonly undo = new UndoLog();
  readonly touched = new Set<string>();
  readonly nodes = new Table<string, NodeState>(this.undo);
  readonly changes = new Table<string, Change>(this.undo);
  /** The committed state, by `Kind/name`. */
  readonly fragments = new Table<string, CommittedFragment>(this.undo);
  /** The keys of `fragments`, sorted. */
  readonly fragmentIds = new SortedSet(this.undo);
  /** The keys of those with bindings to fields of objects. */
  readonly boundFragmentIds = new SortedSet(this.undo);
  /** Deleted fragments, so that their view shows it. */
  readonly goneFragments = new Table<string, CommittedFragment>(this.undo);
  /** The config of each node from the committed state. */
  readonly desired = new Table<string, DesiredConfig>(this.undo);
  /** The targets of the current attempt of each open change, without nodes that have left. */
  readonly targets = new Table<string, Targets>(this.undo);
  readonly knownBad = new Table<string, true>(this.undo);
  /** Unhealthy nodes → which probes fail there. */
  readonly failing = new Table<string, readonly FailingProbe[]>(this.undo);
  /** The hash of the config that each node last reported, also if it has not joined yet or has left. */
  readonly inForce = new Table<string, string>(this.undo);
  /** The nodes that do not have the config of the committed state. */
  readonly behind = new Table<string, Behind>(this.undo);
  readonly work = new Table<string, Work>(this.undo);
  /** The nodes that may have another config than that of the committed state, also if they have left. */
  readonly possibleConfigs = new Table<string, PossibleConfigs>(this.undo);
  /** The changes that have ended and that nodes may have. */
  readonly triedSelectors = new Table<string, Selectors>(this.undo);
  /** Nodes with drift → how they differ from the config that they last reported. */
  readonly drift = new Table<string, readonly string[]>(this.undo);
  /** Nodes where something that was deleted is still there → what, and why. */
  readonly leftovers = new Table<string, readonly string[]>(this.undo);
  /** Nodes that are not ready, apart from those in `failing` and `drift` → why. */
  readonly notReady = new Table<string, readonly NotReady[]>(this.undo);
  /** Nodes to render outside a rollout → why. */
  readonly toRender = new Table<string, 'join' | 'relabel' | 'commit'>(this.undo);
  readonly openChanges = new SortedSet(this.undo, byAge);
  /** The changes that last applied or deleted a fragment, with the number of those fragments. */
  readonly lastOf = new Table<string, number>(this.undo);
  /** By source and Sluice-Id. */
  readonly firstUses = new Table<string, FirstUse>(this.undo);
  /** By host name. */
  readonly published = new Table<string, Published>(this.undo);
  /** By node. */
  readonly publishedValues = new Table<string, PublishedValues>(this.undo);
  /** By source; see `quotaOf`. */
  readonly usage = new Table<string, Usage>(this.undo);
  /** How far CHANGES has been processed. */
  readonly cursor = new Cell<number>(this.undo, 0);
  readonly generation = new Cell<number>(this.undo, 0);
  /** Counts every join, leave and relabel, because renderings depend on them. */
  readonly nodesVersion = new Cell<number>(this.undo, 0);
  // ---- memory of this copy, not part of the fold ----
  readonly progress = {
    /** Increases with each fact that may change whose turn it is. */
    version: new Cell<number>(this.undo, 0),
    queue: { next: '', left: 0, version: NO_VERSION } as Progress,
    /** Increases with each fact that may change how many nodes have a fragment. */
    countsVersion: new Cell<number>(this.undo, 0),
    counts: { version: NO_VERSION, notBeforeMs: 0 } as ShownCounts,
    /** What is shown of each fragment, as JSON, and the size of the fragment. */
    shown: new WeakMap<CommittedFragment, { readonly text: string; readonly bytes: number }>(),
  };

  /** The counts of some fragments may have changed. */
  countAgain(): void {
    const { countsVersion } = this.progress;
    countsVersion.set(countsVersion.get() + 1);
  }

  /** Counts, before the tables of fragments say so, that a change is the last one to apply or delete a fragment. */
  lastTouched(id: string, change: string): void {
    const before = (this.fragments.get(id) ?? this.goneFragments.get(id))?.change;
    const left = before === undefined ? 0 : (this.lastOf.get(before) ?? 0) - 1;
    if (before !== undefined && left > 0) this.lastOf.set(before, left);
    else if (before !== undefined) this.lastOf.delete(before);
    this.lastOf.set(change, (this.lastOf.get(change) ?? 0) + 1);
  }
}

const TABLES = [
  'nodes',
  'changes',
  'fragments',
  'goneFragments',
  'desired',
  'targets',
  'knownBad',
  'failing',
  'inForce',
  'behind',
  'possibleConfigs',
  'triedSelectors',
  'work',
  'drift',
  'leftovers',
  'notReady',
  'toRender',
  'firstUses',
  'published',
  'publishedValues',
  'usage',
] as const;
const CELLS = ['cursor', 'generation', 'nodesVersion'] as const;

/** The whole fold as JSON. */
export const dump = (state: State): unknown => ({
  ...dumpTables(state, TABLES),
  openChanges: [...state.openChanges],
  ...Object.fromEntries(CELLS.map((name) => [name, state[name].get()])),
});

/** A fold from its JSON. */
export function load(dumped: unknown): State {
  const source = dumped as Record<(typeof CELLS)[number], number> & { readonly openChanges: readonly string[] };
  const state = new State();
  loadTables(state, TABLES, dumped);
  for (const change of source.openChanges) state.openChanges.add(change);
  for (const id of [...state.fragments.keys()].sort()) state.fragmentIds.add(id);
  for (const { change } of [...state.fragments.values(), ...state.goneFragments.values()])
    state.lastOf.set(change, (state.lastOf.get(change) ?? 0) + 1);
  for (const name of CELLS) state[name].set(source[name]);
  return state;
}

/** The fragments that a change touches, by id. */
export const touchedIds = (change: Pick<Change, 'apply' | 'delete'>): readonly string[] =>
  [...change.apply, ...change.delete].map(fragmentId);

/** An ended change with only the names of its fragments. Hundreds are kept, and each may have nearly a megabyte. */
export const withoutContent = (change: Change): Change => ({
  ...change,
  apply: change.apply.map(({ kind, name }) => ({ kind, name, labels: {} })),
});

/** Open changes by age. Ids sort by number, not by text. */
export const openByAge = (state: State): readonly Change[] =>
  [...state.openChanges]
    .map((name) => state.changes.get(name))
    .filter((change): change is Change => change !== undefined);

export const withoutTarget = (targets: Targets, node: string): Targets =>
  Object.fromEntries(Object.entries(targets).filter(([name]) => name !== node)) as Record<string, Target>;
