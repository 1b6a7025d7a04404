import type { NodeReport, ReportStamp } from '#libs/contracts';
import { Cell, Table, UndoLog } from '#libs/engine';

export type Labels = Readonly<Record<string, string>>;
export interface NodeState {
  readonly node: string;
  readonly state: 'ready' | 'silent' | 'gone';
  readonly labels: Labels;
  /** Of these, those of its Node object. */
  readonly kubernetesLabels: Labels;
  readonly capabilities: readonly string[];
  readonly version: string;
  readonly stamp: ReportStamp;
  readonly since: string;
  /** Why it is silent or gone, where somebody said. */
  readonly because: string | undefined;
  /** Why Kubernetes, or the person or tool that cordoned it, has it out of service; undefined if it is in service. */
  readonly unavailable: string | undefined;
  /** Of its Node object; undefined for a node that Kubernetes does not know. */
  readonly uid: string | undefined;
}

/** A Node object, as the API server has it now. */
export interface KubernetesNode {
  readonly uid: string;
  readonly labels: Labels;
  readonly unavailable: string | undefined;
}

/** The inventory's fold, and what this copy heard itself. */
export class State {
  readonly undo = new UndoLog();
  readonly touched = new Set<string>();
  readonly nodes = new Table<string, NodeState>(this.undo);
  /** The latest announcement of each node that the scheduler has taken, also where it said nothing new. */
  readonly announced = new Table<string, ReportStamp>(this.undo);
  // ---- this copy's own memory ----
  /** When it last heard of a node, RFC 3339, for people; undefined where nobody said. */
  readonly heardAt = new Map<string, string | undefined>();
  /** The same, monotonic: silence is counted from here. */
  readonly heardMs = new Table<string, number>(this.undo);
  /** Of a node that was heard: how far apart it was asked to beat, at most; 0 if it was not asked. */
  readonly pacedMs = new Map<string, number>();
  /** Silent nodes that were heard again. */
  readonly heardAgain = new Table<string, true>(this.undo);
  /** The Node objects that there are, by name; undefined where Kubernetes is not asked, or has not answered yet. */
  readonly kubernetes: { nodes: Map<string, KubernetesNode> | undefined } = { nodes: undefined };
  /**
   * What each node announced last, where Kubernetes is asked: should its Node object go and come again, the node joins
   * by that.
   */
  keepsAnnouncements = false;
  readonly announcements = new Map<string, NodeReport>();
  readonly memo = new Memo(this.undo);
}

/** Spares looks that would find nothing; no answer depends on it. */
class Memo {
  /** Nodes that may differ from their Node objects. */
  readonly toCompare: Table<string, true>;
  /** When the next node can have become silent, monotonic; undefined when that is not known. */
  readonly nextSilentMs: Cell<number | undefined>;
  /** How many nodes there were when somebody looked for silent ones last. */
  present = 0;

  constructor(undo: UndoLog) {
    this.toCompare = new Table(undo);
    this.nextSilentMs = new Cell<number | undefined>(undo, undefined);
  }
}

/** What a decision found out for the next one. */
export interface Memory {
  /** Nodes that do not differ from their Node objects. */
  readonly compared: readonly string[];
  /** Where it looked for silent nodes: when the next can become silent, and how many nodes there are. */
  readonly silence: { readonly nextMs: number | undefined; readonly present: number } | undefined;
}
