import type { NodeReport } from '#libs/contracts';
import { Table, UndoLog } from '#libs/kernel';

export type Labels = Readonly<Record<string, string>>;
/** Whether they are the same, in whatever order. */
export const sameLabels = (a: Labels, b: Labels): boolean =>
  JSON.stringify(Object.entries(a).sort()) === JSON.stringify(Object.entries(b).sort());

/** Where an announcement stands among others of the same node. */
export interface Stamp {
  readonly incarnation: number;
  readonly birth: number;
  readonly seq: number;
}

/** Whether `a` was announced after `b`, as far as their words can tell. */
export const isLater = (a: Stamp, b: Stamp): boolean =>
  a.incarnation > b.incarnation || (a.incarnation === b.incarnation && a.birth === b.birth && a.seq > b.seq);

export interface NodeState {
  readonly node: string;
  readonly state: 'ready' | 'silent' | 'gone';
  readonly labels: Labels;
  /** Of these, those of its Node object. */
  readonly kubernetesLabels: Labels;
  readonly capabilities: readonly string[];
  readonly version: string;
  readonly stamp: Stamp;
  readonly since: string;
  readonly because: string;
  /** Why Kubernetes, or whoever cordoned it, has it out of service; empty if it is in service. */
  readonly unavailable: string;
  /** Of its Node object; empty for a node that Kubernetes does not know. */
  readonly uid: string;
}

/** A Node object, as the API server has it now. */
export interface KubernetesNode {
  readonly uid: string;
  readonly labels: Labels;
  readonly unavailable: string;
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
  /** Of a node that was heard: how far apart it was asked to beat, at most; 0 if it was not asked. */
  readonly pacedMs = new Map<string, number>();
  /** Silent nodes that were heard again. */
  readonly heardAgain = new Table<string, true>(this.undo);
  /** The Node objects that there are, by name; undefined where Kubernetes is not asked, or has not answered yet. */
  readonly kubernetes: { nodes: Map<string, KubernetesNode> | undefined } = { nodes: undefined };
  /** What each node announced last, where Kubernetes is asked: should its Node object go and come again, the node joins by that. */
  keepsAnnouncements = false;
  readonly announcements = new Map<string, NodeReport>();
  /** Spares looks that would find nothing; no answer depends on it. `toCompare`: nodes that may differ from their Node objects. When the next node can have become silent, monotonic; undefined when that is not known. `present`: how many nodes there were at the last such look. */
  readonly memo: { nextSilentMs: number | undefined; present: number; readonly toCompare: Set<string> } = {
    nextSilentMs: undefined,
    present: 0,
    toCompare: new Set(),
  };
}
