import type {
  Action,
  Because,
  DrainOutcome,
  Fragment,
  FragmentRef,
  LeaseKind,
  LeasePhase,
  NodeProgress,
  PoolProgress,
  Reason,
  Targets,
  Verdict,
} from '#libs/contracts';
import { Cell, SortedSet, Table, UndoLog } from '#libs/kernel';
import type { PoolPolicy } from '#libs/budget';

/** The right of one node to change now, until it is released. */
export interface Lease {
  readonly id: string;
  readonly pool: string;
  /** Empty for leases outside a rollout. */
  readonly change: string;
  readonly kind: LeaseKind;
  readonly phase: Exclude<LeasePhase, 'released'>;
  readonly hash: string;
  readonly from: string;
  readonly recipe: string;
  readonly actions: readonly Action[];
  readonly applyMs: number;
  readonly drainMs: number;
  /** Takes no unit of the pool. */
  readonly free: boolean;
  readonly because: Because | '';
  readonly reason: string;
  /** The drain service said: drained, uncordoned. */
  readonly drained: boolean;
  readonly uncordoned: boolean;
  /** The drain service gave the drain up, and says how that counts; empty if it did not. */
  readonly stopped: DrainOutcome | '';
  readonly stoppedBecause: string;
  /** How it is to be drained, as one text to compare; empty where it is not drained, or that is not known. */
  readonly drainTerms: string;
  /** Its pool says to go on without a node that cannot be drained in time. */
  readonly defers: boolean;
  /** A report named it after it had ended. */
  readonly answered: boolean;
  /** When this copy read that the present phase began, monotonic. */
  readonly sinceMs: number;
  readonly grantedAt: string;
  readonly settledAt: string;
}

/** The last report of a node that was taken. */
export interface Report {
  readonly incarnation: number;
  readonly birth: number;
  readonly seq: number;
  readonly hash: string;
  readonly lease: string;
  readonly verdict: Verdict;
  readonly reason: string;
  readonly restored: boolean;
  readonly bootId: string;
  readonly fresh: boolean;
}

/** A node that another tool, or a person, has out of service. */
export interface TakenUnit {
  readonly owner: string;
  readonly reason: string;
  readonly at: string;
  /** When this copy read that, monotonic. */
  readonly sinceMs: number;
  /** It is given back by itself after this; 0 for never. */
  readonly forMs: number;
}

/** Why a lease outside a rollout is not tried again at once. `restarts`: in how many tries in a row the machine was restarted in vain. */
export type Retry =
  | { readonly kind: 'later'; readonly tries: number; readonly atMs: number; readonly restarts?: number }
  /** After `invalid`, or restarts of the machine in vain: only when what the node would be given, or the node, is another one. */
  | {
      readonly kind: 'when-changed';
      readonly circumstances: string;
      readonly reason: string;
      readonly restarts?: number;
    };

export interface NodeState {
  readonly node: string;
  readonly joined: boolean;
  readonly silent: boolean;
  /** Why Kubernetes, or whoever cordoned it, has it out of service; empty if it is in service. */
  readonly outOfService: string;
  /** Another tool, or a person, has it out of service; undefined if nobody has. */
  readonly taken: TakenUnit | undefined;
  readonly labels: Readonly<Record<string, string>>;
  readonly capabilities: readonly string[];
  readonly pool: string;
  /** Pools that it came from while it was unavailable: it counts there too until that is over. */
  readonly alsoIn: readonly string[];
  readonly report: Report | undefined;
  readonly lease: Lease | undefined;
  /** The last lease, released: what the view shows. */
  readonly lastLease: Lease | undefined;
  readonly leases: number;
  /** The committed config that fits it. */
  readonly desired: { readonly hash: string; readonly recipe: string; readonly joining: boolean } | undefined;
  /** Rendered, not reviewed yet. */
  readonly rendered: { readonly hash: string; readonly recipe: string } | undefined;
  readonly unfit: readonly Reason[];
  readonly owed: string;
  readonly retry: Retry | undefined;
  readonly skippedBy: string;
  /** The config that it can only be given with a restart of the machine, as its last lease has shown; empty for none. */
  readonly escalated: string;
  readonly drifted: readonly string[];
  /** The open rollout that it is a target of. */
  readonly change: string;
}

export type RolloutPhase = 'rolling' | 'complete' | 'succeeded' | 'reverting' | 'reverted' | 'superseded';

/** How many targets are in which class. */
export interface Tally {
  readonly settled: number;
  readonly active: number;
  readonly pending: number;
  readonly owed: number;
  readonly left: number;
}

export interface Rollout {
  readonly change: string;
  readonly phase: RolloutPhase;
  readonly paused: boolean;
  readonly aborted: boolean;
  readonly maxFailures: number;
  /** Forward leases that ended so, over the whole rollout. */
  readonly failed: number;
  readonly unknown: number;
  readonly reason: string;
  readonly nodes: readonly string[];
  readonly stalledBy: string;
  readonly startedAt: string;
  readonly endedAt: string;
  readonly supersededBy: string;
  /** What is shown once its targets are forgotten. */
  readonly frozen: FrozenRollout | undefined;
}

export interface FrozenRollout {
  readonly tally: Tally;
  readonly pools: Readonly<Record<string, PoolProgress>>;
  readonly worst: readonly NodeProgress[];
  /** Nodes that are still owed what it left them → that hash; they leave this list when they get it. */
  readonly owed: Readonly<Record<string, string>>;
}

/** A node's way in one rollout. */
export interface TargetState {
  readonly from: string;
  readonly to: string;
  readonly recipe: string;
  readonly left: boolean;
  readonly owed: string;
  /** The verdict of its last lease in this rollout, for people. */
  readonly verdict: Because | '';
  readonly reason: string;
  readonly at: string;
}

const TROUBLE: ReadonlySet<string> = new Set<Because>(['invalid', 'failed', 'escalated', 'unknown']);
/** Its last lease in the rollout did not do what it was for. */
export const wentWrong = ({ verdict }: TargetState): boolean => TROUBLE.has(verdict);

/** A change, as far as the scheduler is concerned. */
export interface Change {
  readonly change: string;
  readonly open: boolean;
  readonly started: boolean;
  readonly aborted: boolean;
  readonly paused: boolean;
  readonly policies: readonly Fragment[];
  readonly policyDeletes: readonly FragmentRef[];
  readonly maxFailures: number | undefined;
  /** Of the rendering that counts; 0 while none does. */
  readonly attempt: number;
  readonly targets: Targets;
  readonly replaces: readonly string[];
  readonly validated:
    | { readonly attempt: number; readonly sequence: number; readonly unfit: readonly string[] }
    | undefined;
}

export interface Want {
  readonly kind: LeaseKind;
  readonly change: string;
  readonly to: string;
  readonly recipe: string;
}

/** Where a node stands in the queue of its pool. */
export interface Place {
  readonly pool: string;
  readonly key: string;
  readonly unavailable: boolean;
  readonly want: Want;
  readonly since: number;
}

/** Nodes of a pool. */
export interface PoolSets {
  readonly unavailable: SortedSet;
  readonly silent: SortedSet;
  /** Who wants a lease and needs a unit; and who wants one and is down already. */
  readonly queue: SortedSet;
  readonly downQueue: SortedSet;
}

/** A node's contribution to the indexes, kept to take it out again. */
export interface Indexed {
  readonly countsIn: readonly string[];
  readonly member: string;
  /** The pool in which it is a member that is not heard; empty if it is none. */
  readonly silentIn: string;
  readonly selectedBy: readonly string[];
}

export type TargetClass = keyof Tally;

/** The scheduler's fold. Everything below the line is derived from what stands above it. */
export class State {
  readonly undo = new UndoLog();
  readonly nodes = new Table<string, NodeState>(this.undo);
  readonly changes = new Table<string, Change>(this.undo);
  readonly rollouts = new Table<string, Rollout>(this.undo);
  /** By `<change>/<node>`. */
  readonly targets = new Table<string, TargetState>(this.undo);
  /** Committed policy fragments, by `Kind/name`. */
  readonly policies = new Table<string, Fragment>(this.undo);
  /** Hash or recipe → sequence of the last forward lease that ended `invalid` with it. */
  readonly invalids = new Table<string, number>(this.undo);
  readonly condemned = new Table<string, true>(this.undo);
  /** Leases that ended `invalid` and are not judged yet → change. */
  readonly unjudged = new Table<string, string>(this.undo);
  /** How far REPORTS has been taken. */
  readonly cursor = new Cell<number>(this.undo, 0);
  // ---- derived ----
  readonly pools = new Table<string, PoolPolicy>(this.undo);
  readonly policyVersion = new Cell<number>(this.undo, 0);
  readonly indexed = new Table<string, Indexed>(this.undo);
  readonly places = new Table<string, Place>(this.undo);
  readonly members = new Table<string, number>(this.undo);
  readonly selected = new Table<string, number>(this.undo);
  readonly manyPools = new SortedSet(this.undo);
  /** Nodes on which nothing serves yet, and that never had a lease. */
  readonly fresh = new Table<string, true>(this.undo);
  /** Node → the ended rollouts that still show it as owed. */
  readonly owedBy = new Table<string, readonly string[]>(this.undo);
  readonly tallies = new Table<string, Tally>(this.undo);
  readonly classes = new Table<string, { readonly tally: TargetClass; readonly pool: string }>(this.undo);
  /** By `<change>/<pool>`. */
  readonly poolTallies = new Table<string, Tally>(this.undo);
  /** Of the nodes with a lease that is not released, those at which only their applier is at work, as `<deadline>|<node>`: nothing is to be done before that. */
  readonly working = new SortedSet(this.undo);
  /** And all the others. */
  readonly attended = new SortedSet(this.undo);
  /** Pending targets that cannot go on, as `<change>/<node>`. */
  readonly stuck = new SortedSet(this.undo);
  /** Targets that are owed or whose last lease went wrong, as `<change>/<node>`. */
  readonly troubled = new SortedSet(this.undo);
  /** Nodes whose next try has its time. */
  readonly backingOff = new SortedSet(this.undo);
  /** Nodes that are taken for a time. */
  readonly borrowed = new SortedSet(this.undo);
  /** Changes that are not ended. */
  readonly openChanges = new SortedSet(this.undo);
  private readonly poolSets = new Map<string, PoolSets>();
  // ---- this copy's own memory, no part of the fold ----
  readonly touched = new Set<string>();
  /** Lease → when its view was written after it settled, monotonic. */
  readonly shownMs = new Table<string, number>(this.undo);

  poolSet(pool: string): PoolSets {
    let sets = this.poolSets.get(pool);
    if (sets === undefined) {
      sets = {
        unavailable: new SortedSet(this.undo),
        silent: new SortedSet(this.undo),
        queue: new SortedSet(this.undo),
        downQueue: new SortedSet(this.undo),
      };
      this.poolSets.set(pool, sets);
    }
    return sets;
  }

  /** Nodes with a lease that is not released. */
  leased(): readonly string[] {
    return [...this.attended, ...[...this.working].map(nodeOfPlace)];
  }

  poolNames(): readonly string[] {
    return [...new Set(['default', ...this.pools.keys(), ...this.poolSets.keys()])].sort();
  }
}

/** How many nodes have what a change wants of them: on the way back, those that are still to go. */
export const appliedIn = (phase: RolloutPhase, tally: Tally): number =>
  phase === 'reverting' ? tally.active + tally.pending : phase === 'reverted' ? 0 : tally.settled;

export const EMPTY_TALLY: Tally = { settled: 0, active: 0, pending: 0, owed: 0, left: 0 };

const unknownNode = (node: string): NodeState => ({
  node,
  joined: false,
  silent: false,
  outOfService: '',
  taken: undefined,
  labels: {},
  capabilities: [],
  pool: 'default',
  alsoIn: [],
  report: undefined,
  lease: undefined,
  lastLease: undefined,
  leases: 0,
  desired: undefined,
  rendered: undefined,
  unfit: [],
  owed: '',
  retry: undefined,
  skippedBy: '',
  escalated: '',
  drifted: [],
  change: '',
});

/** A node, also one that nobody has told of yet. */
export const nodeOf = (state: State, node: string): NodeState => state.nodes.get(node) ?? unknownNode(node);

/** Whose entry this is, of a set that is in another order than that of names. */
export const nodeOfPlace = (key: string): string => key.slice(key.lastIndexOf('|') + 1);

export const targetKey = (change: string, node: string): string => `${change}/${node}`;
export function parseTargetKey(key: string): { readonly change: string; readonly node: string } {
  const slash = key.indexOf('/');
  return { change: key.slice(0, slash), node: key.slice(slash + 1) };
}
