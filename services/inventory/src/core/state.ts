import type { NodeReport, ReportStamp } from '#libs/contracts';
import { Cell, Table, UndoLog } from '#libs/engine';

export type Labels = Readonly<Record<string, string>>;
export interface NodeState {
  readonly node: string;
  readonly state: 'ready' | 'silent' | 'gone';
  readonly labels: Labels;
  /** The labels among these that come from its Node object. */
  readonly kubernetesLabels: Labels;
  /** The labels among these that a person set. */
  readonly setLabels: Labels;
  /** Labels of the node itself with a key that a person set. */
  readonly hiddenLabels: Labels;
  readonly capabilities: readonly string[];
  readonly version: string;
  readonly stamp: ReportStamp;
  readonly since: string;
  /** Why it is silent or gone; undefined if unknown. */
  readonly because: string | undefined;
  /** Why its Node is out of service, such as NotReady or cordoned; undefined if it is in service. */
  readonly unavailable: string | undefined;
  /** The uid of its Node object; undefined for a node that Kubernetes does not know. */
  readonly uid: string | undefined;
}

/** A Node object, as the API server has it now. */
export interface KubernetesNode {
  readonly uid: string;
  readonly labels: Labels;
  readonly unavailable: string | undefined;
  /** The boot id of the machine, as its kubelet reported it; undefined if unknown. */
  readonly bootId: string | undefined;
}

/** The fold of the inventory, and what this copy has heard itself. */
export class State {
  readonly undo = new UndoLog();
  readonly touched = new Set<string>();
  readonly nodes = new Table<string, NodeState>(this.undo);
  /** The latest announcement of each node that the scheduler has recorded, even if it contained nothing new. */
  readonly announced = new Table<string, ReportStamp>(this.undo);
  /** The highest incarnation of each node that the scheduler has recorded, in any report. */
  readonly incarnations = new Table<string, number>(this.undo);
  // ---- memory of this copy, not part of the fold ----
  /** When this copy last heard a node, RFC 3339, for people; undefined if unknown. */
  readonly heardAt = new Map<string, string | undefined>();
  /** The same, monotonic: silence is counted from here. */
  readonly heardMs = new Table<string, number>(this.undo);
  /** The longest heartbeat interval that a heard node was asked to use; 0 if none. */
  readonly pacedMs = new Map<string, number>();
  /** Silent nodes that were heard from again. */
  readonly heardAgain = new Table<string, true>(this.undo);
  /** The existing Node objects, by name; undefined without Kubernetes, or if it has not answered yet. */
  readonly kubernetes: KubernetesNodes = { nodes: undefined, ignored: undefined };
  /**
   * The last announcement of each node, with Kubernetes only. If its Node object is deleted and recreated, the node
   * joins with this announcement.
   */
  keepsAnnouncements = false;
  readonly announcements = new Map<string, NodeReport>();
  readonly memo = new Memo(this.undo);
}

interface KubernetesNodes {
  nodes: Map<string, KubernetesNode> | undefined;
  /** The Node objects of what seems to be another cluster, kept up to date like `nodes`. */
  ignored: Map<string, KubernetesNode> | undefined;
}

/** Avoids checks that would find nothing. No answer depends on it. */
class Memo {
  /** Nodes that may differ from their Node objects. */
  readonly toCompare: Table<string, true>;
  /** When the next node can become silent, monotonic; undefined if unknown. */
  readonly nextSilentMs: Cell<number | undefined>;
  /** How many nodes existed at the last check for silent ones. */
  present = 0;

  constructor(undo: UndoLog) {
    this.toCompare = new Table(undo);
    this.nextSilentMs = new Cell<number | undefined>(undo, undefined);
  }
}

/** What a decision remembers for the next one. */
export interface Memory {
  /** Nodes that do not differ from their Node objects. */
  readonly compared: readonly string[];
  /** If it checked for silent nodes: when the next one can become silent, and how many nodes exist. */
  readonly silence: { readonly nextMs: number | undefined; readonly present: number } | undefined;
}
