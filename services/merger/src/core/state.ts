import { byAge, fragmentId, type Fragment, type Reason, type Target, type Targets } from '#libs/contracts';
import { Cell, dumpTables, loadTables, SortedSet, Table, UndoLog } from '#libs/engine';
import type { Change as ChangeContent } from '#libs/manifests';

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
  readonly attempt: number;
  /** The inputs of the attempt have changed. */
  readonly outdated: boolean;
  readonly replaces: readonly string[];
  readonly nodes: number;
  readonly unchanged: number;
  readonly pools: Readonly<Record<string, number>>;
  readonly reasons: readonly Reason[];
  readonly warnings: readonly Reason[];
  readonly outcome: string;
  readonly reason: string;
  readonly generation: number;
  readonly acceptedAt: string;
  readonly endedAt: string;
}

/** A change that is only planned: it has no id, and counts as newer than all others. */
export const newChange = ({ apply, delete: gone, message, author, strategy, retryOf }: ChangeContent): Change => ({
  change: `c${Number.MAX_SAFE_INTEGER}`,
  source: '',
  apply,
  delete: gone,
  message,
  author,
  strategy,
  retryOf,
  phase: 'accepted',
  open: true,
  rollout: 'none',
  aborted: false,
  waitsFor: [],
  attempt: 0,
  outdated: true,
  replaces: [],
  nodes: 0,
  unchanged: 0,
  pools: {},
  reasons: [],
  warnings: [],
  outcome: '',
  reason: '',
  generation: 0,
  acceptedAt: '',
  endedAt: '',
});

export interface CommittedFragment {
  readonly fragment: Fragment;
  readonly change: string;
}

export interface DesiredConfig {
  readonly hash: string;
  readonly recipe: string;
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
  /** Deleted fragments, so that their view shows it. */
  readonly goneFragments = new Table<string, CommittedFragment>(this.undo);
  /** The config of each node from the committed state. */
  readonly desired = new Table<string, DesiredConfig>(this.undo);
  /** The targets of the current attempt of each open change, without nodes that have left. */
  readonly targets = new Table<string, Targets>(this.undo);
  readonly deferred = new Table<string, true>(this.undo);
  readonly knownBad = new Table<string, true>(this.undo);
  /** Nodes to render outside a rollout → why. */
  readonly toRender = new Table<string, 'join' | 'relabel' | 'commit'>(this.undo);
  readonly openChanges = new SortedSet(this.undo, byAge);
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
  };
}

const TABLES = [
  'nodes',
  'changes',
  'fragments',
  'goneFragments',
  'desired',
  'targets',
  'deferred',
  'knownBad',
  'toRender',
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
  for (const name of CELLS) state[name].set(source[name]);
  return state;
}

/** The fragments that a change touches, by id. */
export const touchedIds = (change: Pick<Change, 'apply' | 'delete'>): readonly string[] =>
  [...change.apply, ...change.delete].map(fragmentId);

/** Version 2 kept the content of ended changes. The stream CHANGES has it, too. */
export const MIGRATIONS: Readonly<Record<number, (dumped: unknown) => unknown>> = {
  2: (dumped) => {
    const all = dumped as { readonly changes: readonly (readonly [string, Change])[] };
    return {
      ...all,
      changes: all.changes.map(([name, change]) => [name, change.open ? change : withoutContent(change)]),
    };
  },
};

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
