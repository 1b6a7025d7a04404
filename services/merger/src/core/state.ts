import {
  byAge,
  fragmentId,
  isDnsLabel,
  restOfDrift,
  type BoundValue,
  type FailingProbe,
  type Fragment,
  type Reason,
  type Target,
  type Targets,
} from '#libs/contracts';
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
  /** Of the committed state, when it was first applied: before that, no node had it. */
  readonly since: number;
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

/** What a relabelled node has until it gets its config again: what these labels selected up to this generation. */
export interface Former {
  readonly labels: Readonly<Record<string, string>>;
  readonly generation: number;
}

/** The leases that a node has not answered: the committed state when it got the first of them, and the last. */
export interface Unanswered {
  readonly first: number;
  readonly last: number;
  readonly leases: number;
}

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
  /** Nodes that have got a lease and not reported what came of it, so that they may have its config. */
  readonly unanswered = new Table<string, Unanswered>(this.undo);
  /** The nodes that were relabelled and do not have the config for their labels yet. */
  readonly former = new Table<string, readonly Former[]>(this.undo);
  /** Nodes with drift → how they differ from the config that they last reported. */
  readonly drift = new Table<string, readonly string[]>(this.undo);
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
  'former',
  'work',
  'unanswered',
  'drift',
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

type Rows<V> = readonly (readonly [string, V])[];

export const MIGRATIONS: Readonly<Record<number, (dumped: unknown) => unknown>> = {
  // Version 2 kept the content of ended changes. The stream CHANGES has it, too.
  2: (dumped) => {
    const all = dumped as { readonly changes: Rows<Change> };
    return {
      ...all,
      changes: all.changes.map(([name, change]) => [name, change.open ? change : withoutContent(change)]),
    };
  },
  // Version 3 did not say to which source a fragment belongs and what a change replaced, and remembered no ids: no
  // change from before can be rolled back.
  3: (dumped) => {
    const { changes, fragments, goneFragments, ...rest } = dumped as {
      readonly changes: Rows<Change>;
      readonly fragments: Rows<Omit<CommittedFragment, 'source'>>;
      readonly goneFragments: Rows<Omit<CommittedFragment, 'source'>>;
    };
    const sources = new Map(changes.map(([name, { source }]) => [name, source]));
    const owned = (rows: typeof fragments): Rows<CommittedFragment> =>
      rows.map(([id, row]) => [id, { ...row, source: sources.get(row.change) ?? 'unknown' }]);
    const open = changes.filter(([, change]) => change.open);
    return {
      ...rest,
      changes: open,
      fragments: owned(fragments),
      goneFragments: owned(goneFragments),
      firstUses: [],
      usage: [],
    };
  },
  // Version 4 did not know which probes fail.
  4: (dumped) => ({ ...(dumped as object), failing: [] }),
  // Version 5 counted sources with invalid names apart.
  5: (dumped) => dumped,
  // Version 6 forgot ended changes that were rolled out together with the others.
  6: (dumped) => dumped,
  // Version 7 kept which nodes were deferred.
  7: (dumped) => dumped,
  // Version 8 did not count what was rejected because of a quota.
  8: (dumped) => {
    const all = dumped as { readonly usage: Rows<Omit<Usage, 'refusals'>> };
    return { ...all, usage: all.usage.map(([source, use]) => [source, { ...use, refusals: 0 }]) };
  },
  // Version 9 had no changes that wait for missing references.
  9: (dumped) => {
    const all = dumped as { readonly changes: Rows<Change> };
    return { ...all, changes: all.changes.map(([name, row]) => [name, { ...row, needs: [], needsUntilMs: 0 }]) };
  },
  // Version 10 did not know which nodes are up to date. Until they report, all of them count as that.
  10: (dumped) => {
    const { fragments, goneFragments, ...rest } = dumped as {
      readonly changes: Rows<Change>;
      readonly fragments: Rows<CommittedFragment>;
      readonly goneFragments: Rows<CommittedFragment>;
    };
    const changes = new Map(rest.changes);
    const dated = (rows: typeof fragments): Rows<CommittedFragment> =>
      rows.map(([id, row]) => {
        const { generation = 0, endedAt = '' } = changes.get(row.change) ?? {};
        return [id, { ...row, generation, appliedAt: endedAt }];
      });
    const nothing = { inForce: [], behind: [], work: [], notReady: [] };
    return {
      ...rest,
      changes: rest.changes.map(([name, row]) => [name, { ...row, incompatible: [] }]),
      fragments: dated(fragments),
      goneFragments: dated(goneFragments),
      ...nothing,
    };
  },
  // Version 11 did not know what had drifted.
  11: (dumped) => {
    const all = dumped as { readonly notReady: Rows<readonly (NotReady | 'drifted')[]> };
    const drifted = all.notReady.filter(([, whys]) => whys.includes('drifted'));
    return {
      ...all,
      drift: drifted.map(([node]) => [node, [restOfDrift(1)]]),
      notReady: all.notReady
        .map(([node, whys]) => [node, whys.filter((why) => why !== 'drifted')] as const)
        .filter(([, whys]) => whys.length > 0),
    };
  },
  // Version 12 had no host names.
  12: (dumped) => ({ ...(dumped as object), published: [] }),
  // Version 13 did not know what relabelled nodes still have.
  13: (dumped) => ({ ...(dumped as object), former: [] }),
  // Version 14 did not know which changes are paused while they wait, and since when there is a fragment: every node
  // that lacks something may have it. Generation 0 also meant that nobody knows what a node has.
  14: (dumped) => {
    const all = dumped as {
      readonly changes: Rows<Change>;
      readonly fragments: Rows<CommittedFragment>;
      readonly goneFragments: Rows<CommittedFragment>;
      readonly behind: Rows<Behind>;
      readonly former: Rows<readonly Former[]>;
    };
    const unsure = <T extends { readonly generation: number }>(one: T): T =>
      one.generation === 0 ? { ...one, generation: UNKNOWN } : one;
    const old = (rows: Rows<CommittedFragment>): Rows<CommittedFragment> =>
      rows.map(([id, row]) => [id, { ...row, since: 0 }]);
    return {
      ...all,
      changes: all.changes.map(([name, row]) => [name, { ...row, paused: '' }]),
      fragments: old(all.fragments),
      goneFragments: old(all.goneFragments),
      behind: all.behind.map(([node, row]) => [node, unsure(row)]),
      former: all.former.map(([node, rows]) => [node, rows.map(unsure)]),
      unanswered: [],
    };
  },
  // Version 15 had no bindings.
  15: (dumped) => ({ ...(dumped as object), publishedValues: [] }),
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
