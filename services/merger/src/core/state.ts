import {
  fragmentId,
  type Fragment,
  type FragmentRef,
  type Reason,
  type Strategy,
  type Target,
  type Targets,
} from '#libs/contracts';
import { Cell, SortedSet, Table, UndoLog } from '#libs/kernel';

export interface NodeState {
  readonly node: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly capabilities: readonly string[];
}

/** How far a change has come. A closed one is over for the queue. */
export type Phase = 'accepted' | 'waiting' | 'rendered' | 'validated' | 'rolling' | 'committed' | 'rejected' | 'ended';
export type RolloutPhase = 'none' | 'rolling' | 'complete' | 'reverting' | 'reverted' | 'superseded';

export interface Change {
  readonly change: string;
  readonly source: string;
  readonly apply: readonly Fragment[];
  readonly delete: readonly FragmentRef[];
  readonly message: string;
  readonly author: string;
  readonly strategy: Strategy;
  readonly retryOf: string;
  readonly phase: Phase;
  readonly open: boolean;
  readonly rollout: RolloutPhase;
  readonly aborted: boolean;
  readonly behind: readonly string[];
  readonly attempt: number;
  /** What the attempt rests on no longer holds. */
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

export interface Committed {
  readonly fragment: Fragment;
  readonly change: string;
}

export interface Desired {
  readonly hash: string;
  readonly recipe: string;
}

/** The merger's fold. */
export class State {
  readonly undo = new UndoLog();
  readonly touched = new Set<string>();
  readonly nodes = new Table<string, NodeState>(this.undo);
  readonly changes = new Table<string, Change>(this.undo);
  /** The committed state, by `Kind/name`. */
  readonly fragments = new Table<string, Committed>(this.undo);
  /** Deleted ones, so that their view says so. */
  readonly goneFragments = new Table<string, Committed>(this.undo);
  /** What the committed state gives each node. */
  readonly desired = new Table<string, Desired>(this.undo);
  /** The targets of the current attempt of each open change; a target that left is taken out. */
  readonly targets = new Table<string, Targets>(this.undo);
  readonly owed = new Table<string, true>(this.undo);
  readonly condemned = new Table<string, true>(this.undo);
  /** Nodes to be rendered outside a rollout → why. */
  readonly toRender = new Table<string, 'join' | 'relabel' | 'commit'>(this.undo);
  readonly openChanges = new SortedSet(this.undo);
  /** How far CHANGES has been taken. */
  readonly cursor = new Cell<number>(this.undo, 0);
  readonly generation = new Cell<number>(this.undo, 0);
  /** Counts every join, leave and relabel: a rendering rests on it. */
  readonly nodesVersion = new Cell<number>(this.undo, 0);
}

/** The fragments that a change touches, by id. */
export const touchedIds = (change: Pick<Change, 'apply' | 'delete'>): readonly string[] =>
  [...change.apply, ...change.delete].map(fragmentId);

/** Open changes by age. Ids sort by number, not by text. */
export const openByAge = (state: State): readonly Change[] =>
  [...state.openChanges]
    .map((name) => state.changes.get(name))
    .filter((change): change is Change => change !== undefined)
    .sort((a, b) => Number(a.change.slice(1)) - Number(b.change.slice(1)));

export const withoutTarget = (targets: Targets, node: string): Targets =>
  Object.fromEntries(Object.entries(targets).filter(([name]) => name !== node)) as Record<string, Target>;
