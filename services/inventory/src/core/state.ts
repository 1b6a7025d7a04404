import { Table, UndoLog } from '#libs/kernel';

/** Where an announcement stands among others of the same node. */
export interface Stamp {
  readonly incarnation: number;
  readonly birth: number;
  readonly seq: number;
}

export interface NodeState {
  readonly node: string;
  readonly state: 'ready' | 'silent' | 'gone';
  readonly labels: Readonly<Record<string, string>>;
  readonly capabilities: readonly string[];
  readonly version: string;
  readonly stamp: Stamp;
  readonly since: string;
  readonly because: string;
}

/** The inventory's fold, and what this copy heard itself. */
export class State {
  readonly undo = new UndoLog();
  readonly touched = new Set<string>();
  readonly nodes = new Table<string, NodeState>(this.undo);
  /** The latest announcement of each node that the scheduler has taken, also where it said nothing new. */
  readonly announced = new Table<string, Stamp>(this.undo);
  // ---- this copy's own memory ----
  /** When it last heard of a node, RFC 3339, for people; empty where nobody said. */
  readonly heardAt = new Map<string, string>();
  /** The same, monotonic: silence is counted from here. */
  readonly heardMs = new Table<string, number>(this.undo);
  /** Silent nodes that were heard again. */
  readonly heardAgain = new Table<string, true>(this.undo);
  /** Spares looks that would find nothing; no answer depends on it. When the next node can have become silent, monotonic; undefined when that is not known. */
  readonly memo: { nextSilentMs: number | undefined } = { nextSilentMs: undefined };
}
