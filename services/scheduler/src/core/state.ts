import {
  REMOTE_APPLIER,
  type FailingProbe,
  type LeaseEndReason,
  type Fragment,
  type FragmentRef,
  type LeaseKind,
  type NodeProgress,
  type PoolProgress,
  type Reason,
  type Targets,
  type Verdict,
} from '#libs/contracts';
import { Cell, SortedSet, Table, UndoLog } from '#libs/engine';
import { DEFAULT_POOL, type PoolPolicy } from '#libs/rules';
import type { Reading } from './inputs.js';
import type { EndedLease, Lease } from './lease.js';

/** The last report of a node that was recorded. */
export interface Report {
  readonly incarnation: number;
  readonly nonce: number;
  readonly seq: number;
  readonly hash: string;
  readonly lease: string;
  readonly verdict: Verdict;
  readonly reason: string;
  readonly restored: boolean;
  readonly bootId: string;
  readonly fresh: boolean;
  /** The lease ended before anything on the node was changed. */
  readonly untouched: boolean;
  /** Why the target cannot be used now, if its applier runs elsewhere; undefined if it can. */
  readonly unavailable?: string | undefined;
  /** What Sluice has deleted on the target and is still there, and why. */
  readonly leftovers: readonly string[];
}

/** Who has taken a node out of service, and for how long. */
export interface TakenUnit {
  readonly owner: string;
  readonly reason: string;
  readonly at: string;
  /** When this copy read that, monotonic. */
  readonly sinceMs: number;
  /** The node is given back automatically after this time; 0: never. */
  readonly forMs: number;
}

/**
 * When a lease outside a rollout is tried again. `restarts`: how many tries in a row rebooted the machine without
 * success.
 */
export type Retry =
  | { readonly kind: 'later'; readonly tries: number; readonly atMs: number; readonly restarts?: number }
  /**
   * After `invalid`, or after reboots that did not help: tried again only when the config or the node has changed.
   */
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
  /** When this copy read that it is silent, monotonic; 0 if it never was. */
  readonly silentSinceMs: number;
  /** Why the Kubernetes Node is out of service, such as NotReady or cordoned; undefined if it is in service. */
  readonly outOfService: string | undefined;
  /** Who has taken it out of service; undefined if nobody has. */
  readonly taken: TakenUnit | undefined;
  readonly labels: Readonly<Record<string, string>>;
  readonly capabilities: readonly string[];
  readonly pool: string;
  /** Pools that it left while it was unavailable. It counts there too until it is available. */
  readonly alsoIn: readonly string[];
  readonly report: Report | undefined;
  /** A lease that it may have worked on is over, and no report says what became of it: its config is not known. */
  readonly unsure: boolean;
  readonly lease: Lease | undefined;
  /** The last released lease, for the view. */
  readonly lastLease: EndedLease | undefined;
  readonly leases: number;
  /** The ledger sequence of the last fact about a lease of the node; 0 if there is none. */
  readonly leaseLedger: number;
  /** The desired config, if it is compatible. */
  readonly desired: { readonly hash: string; readonly recipe: string; readonly joining: boolean } | undefined;
  /** The last desired or committed config that it had. With another one, it has what a failed change left behind. */
  readonly lastDesired: string | undefined;
  /** A rendered config that is not reviewed yet. */
  readonly rendered: { readonly hash: string; readonly recipe: string } | undefined;
  readonly incompatible: readonly Reason[];
  /** Why it was deferred; undefined if it was not. */
  readonly deferred: string | undefined;
  readonly retry: Retry | undefined;
  readonly skippedBy: string | undefined;
  /** Why it was skipped last; empty if nobody said. */
  readonly skippedBecause: string;
  /** The config that needs a reboot on this node, because its last lease was escalated. */
  readonly escalated: string | undefined;
  /** How it differs from its config in force, and when (RFC 3339) it first reported drift; undefined without drift. */
  readonly drift: { readonly differences: readonly string[]; readonly since: string } | undefined;
  /** The probes of its config in force that fail. It is unhealthy if there are any. */
  readonly failingProbes: readonly FailingProbe[];
  /** The commands that a rollback could not undo, until the next change is applied. */
  readonly notUndone: readonly string[];
  /** The open rollout that it is a target of. */
  readonly change: string | undefined;
}

export type RolloutPhase = 'rolling' | 'complete' | 'succeeded' | 'reverting' | 'reverted' | 'superseded';

/** How many targets are in each class. */
export interface Tally {
  readonly settled: number;
  readonly active: number;
  readonly pending: number;
  readonly deferred: number;
  readonly left: number;
}

export interface Rollout {
  readonly change: string;
  readonly phase: RolloutPhase;
  readonly paused: boolean;
  /** Who paused it and why, as views show it. */
  readonly pausedBecause: string | undefined;
  readonly aborted: boolean;
  readonly maxFailures: number;
  /** How many of its nodes may change at once; 0: only the pools limit that. */
  readonly maxUnavailable: number;
  /** How many forward leases of the rollout ended like this. */
  readonly failed: number;
  readonly unknown: number;
  readonly reason: string;
  readonly nodes: readonly string[];
  /** The nodes that stall it. */
  readonly stalledBy: readonly string[];
  readonly startedAt: string;
  readonly endedAt: string | undefined;
  readonly supersededBy: string | undefined;
  /** What views show after its targets are deleted. */
  readonly frozen: FrozenRollout | undefined;
}

export interface FrozenRollout {
  readonly tally: Tally;
  readonly pools: Readonly<Record<string, PoolProgress>>;
  readonly worst: readonly NodeProgress[];
  /** The nodes that it deferred and that still lack its config. */
  readonly deferred: Readonly<Record<string, DeferredNode>>;
  /** How each of its nodes ended, in the order of `Rollout.nodes`; neighbours with the same result are one entry. */
  readonly results: readonly NodeResults[];
}

/** A node that an ended rollout deferred. */
export interface DeferredNode {
  /** The hash of the config that it lacks. */
  readonly hash: string;
  /** The lease that may have changed it; undefined if there is none. */
  readonly startedBy: string | undefined;
}

/** The result of `count` nodes of a rollout. */
export interface NodeResults {
  readonly state: string;
  readonly pool: string;
  readonly count: number;
}

/** The state of one node in one rollout. */
export interface TargetState {
  readonly from: string;
  readonly to: string;
  readonly recipe: string;
  readonly left: boolean;
  /** Why it was deferred; undefined if it was not. */
  readonly deferred: string | undefined;
  /** How its last lease in this rollout ended. */
  readonly outcome: TargetOutcome | undefined;
  /** The first lease of this rollout that changed the node, or may have; undefined if there is none. */
  readonly startedBy: string | undefined;
}

export interface TargetOutcome {
  readonly because: LeaseEndReason;
  readonly reason: string;
  readonly at: string;
}

const TROUBLE: ReadonlySet<LeaseEndReason | undefined> = new Set([
  'invalid',
  'failed',
  'escalated',
  'unknown',
  'unreachable',
] as const);
/** The last lease of the target in this rollout failed. */
export const wentWrong = ({ outcome }: TargetState): boolean => TROUBLE.has(outcome?.because);

/** The parts of a change that the scheduler needs. */
export interface Change {
  readonly change: string;
  readonly open: boolean;
  readonly started: boolean;
  readonly aborted: boolean;
  readonly paused: boolean;
  readonly pausedBecause: string | undefined;
  readonly policies: readonly Fragment[];
  readonly policyDeletes: readonly FragmentRef[];
  readonly maxFailures: number | undefined;
  /** As written, such as `2` or `10%`. */
  readonly maxUnavailable: string | undefined;
  /** The current attempt; 0 if there is none. */
  readonly attempt: number;
  readonly targets: Targets;
  readonly replaces: readonly string[];
  readonly validated:
    | { readonly attempt: number; readonly sequence: number; readonly incompatible: readonly string[] }
    | undefined;
}

export interface Want {
  readonly kind: LeaseKind;
  readonly change: string;
  readonly to: string;
  readonly recipe: string;
}

/** The place of a node in the queue of its pool. */
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
  /** Those of them whose applier runs elsewhere, and that are not skipped yet. */
  readonly silentTargets: SortedSet;
  /** Targets that do not answer their appliers, or are not ready. */
  readonly unavailableTargets: SortedSet;
  readonly unhealthy: SortedSet;
  /** Nodes that want a lease and need a unit; and nodes that want one and are already unavailable. */
  readonly queue: SortedSet;
  readonly downQueue: SortedSet;
}

export type TargetClass = keyof Tally;

/** Settled targets that a rollback did not put back: the change has not changed them, or their rollback failed. */
export interface NotRolledBack {
  readonly untouched: number;
  readonly degraded: number;
}

/** How a target was last counted. */
export interface TargetCount {
  readonly tally: TargetClass;
  readonly pool: string;
  readonly notRolledBack: keyof NotRolledBack | undefined;
}

/** The scheduler's fold. Everything below the line is derived from the tables above it. */
export class State {
  readonly undo = new UndoLog();
  readonly nodes = new Table<string, NodeState>(this.undo);
  readonly changes = new Table<string, Change>(this.undo);
  readonly rollouts = new Table<string, Rollout>(this.undo);
  /** By `<change>/<node>`. */
  readonly targets = new Table<string, TargetState>(this.undo);
  /** Committed policy fragments, by `Kind/name`. */
  readonly policies = new Table<string, Fragment>(this.undo);
  /** Hash or recipe → sequence of the last forward lease with it that ended as `invalid`. */
  readonly invalids = new Table<string, number>(this.undo);
  readonly knownBad = new Table<string, true>(this.undo);
  /** Leases that ended as `invalid` and are not judged yet → change. */
  readonly unjudged = new Table<string, string>(this.undo);
  /** How far REPORTS has been processed. */
  readonly cursor = new Cell<number>(this.undo, 0);
  // ---- derived ----
  /** The pools that select nodes now: the committed ones with what open rollouts change in them. */
  readonly pools = new Table<string, PoolPolicy>(this.undo);
  readonly committedPools = new Table<string, PoolPolicy>(this.undo);
  readonly policyVersion = new Cell<number>(this.undo, 0);
  /** Node → the pools that select it. */
  readonly selectedBy = new Table<string, readonly string[]>(this.undo);
  readonly places = new Table<string, Place>(this.undo);
  readonly members = new Table<string, number>(this.undo);
  readonly selected = new Table<string, number>(this.undo);
  readonly manyPools = new SortedSet(this.undo);
  /** Fresh nodes that have never had a lease. */
  readonly fresh = new Table<string, true>(this.undo);
  /** Node → the ended rollouts that still show it as deferred. */
  readonly deferredBy = new Table<string, readonly string[]>(this.undo);
  readonly tallies = new Table<string, Tally>(this.undo);
  readonly classes = new Table<string, TargetCount>(this.undo);
  /** By `<change>/<pool>`. */
  readonly poolTallies = new Table<string, Tally>(this.undo);
  /** By `<change>/<pool>`. */
  readonly notRolledBack = new Table<string, NotRolledBack>(this.undo);
  /**
   * Nodes whose applier is working on a lease, as `<deadline>|<node>`. They need no decision before the deadline.
   */
  readonly working = new SortedSet(this.undo);
  /** All other nodes with a lease that is not released. */
  readonly attended = new SortedSet(this.undo);
  /** Blocked targets, as `<change>/<node>`. */
  readonly blocked = new SortedSet(this.undo);
  /** Targets that are deferred, whose last lease failed, or that are not fully rolled back, as `<change>/<node>`. */
  readonly troubled = new SortedSet(this.undo);
  /** Nodes that wait for the time of their next try. */
  readonly backingOff = new SortedSet(this.undo);
  /** Recipe → how many nodes have the desired config with it, or had it until they lost it. */
  readonly having = new Table<string, number>(this.undo);
  /** Recipe → the nodes that try the desired config with it, or have failed to apply it; sorted. */
  readonly trying = new Table<string, readonly string[]>(this.undo);
  /** Nodes that are taken for a limited time. */
  readonly borrowed = new SortedSet(this.undo);
  /** Changes that are not ended. */
  readonly openChanges = new SortedSet(this.undo);
  /** The names of all pools that ever existed: their views stay, and say that they are gone. */
  readonly knownPools = new SortedSet(this.undo);
  private readonly poolSets = new Map<string, PoolSets>();
  // ---- memory of this copy, not part of the fold ----
  readonly touched = new Set<string>();
  reading: Reading = { upTo: 0, end: undefined };
  /** Lease → when its view was written after it settled, monotonic. */
  readonly shownMs = new Table<string, number>(this.undo);

  poolSet(pool: string): PoolSets {
    let sets = this.poolSets.get(pool);
    if (sets === undefined) {
      sets = {
        unavailable: new SortedSet(this.undo),
        silent: new SortedSet(this.undo),
        silentTargets: new SortedSet(this.undo),
        unavailableTargets: new SortedSet(this.undo),
        unhealthy: new SortedSet(this.undo),
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
    return [...new Set(['default', ...this.knownPools, ...this.poolSets.keys()])].sort();
  }
}

/**
 * How many nodes have the new config of a change. During a rollback, these are the ones that still have to roll back.
 */
export const appliedIn = (phase: RolloutPhase, tally: Tally): number =>
  phase === 'reverting' ? tally.active + tally.pending : phase === 'reverted' ? 0 : tally.settled;

export const ALL_ROLLED_BACK: NotRolledBack = { untouched: 0, degraded: 0 };
export const EMPTY_TALLY: Tally = { settled: 0, active: 0, pending: 0, deferred: 0, left: 0 };

export const unknownNode = (node: string): NodeState => ({
  node,
  joined: false,
  silent: false,
  silentSinceMs: 0,
  outOfService: undefined,
  taken: undefined,
  labels: {},
  capabilities: [],
  pool: 'default',
  alsoIn: [],
  report: undefined,
  unsure: false,
  lease: undefined,
  lastLease: undefined,
  leases: 0,
  leaseLedger: 0,
  desired: undefined,
  lastDesired: undefined,
  rendered: undefined,
  incompatible: [],
  deferred: undefined,
  retry: undefined,
  skippedBy: undefined,
  skippedBecause: '',
  escalated: undefined,
  drift: undefined,
  failingProbes: [],
  notUndone: [],
  change: undefined,
});

/** The state of a node; an empty one if the node is unknown. */
export const nodeOf = (state: State, node: string): NodeState => state.nodes.get(node) ?? unknownNode(node);

/** Whether the node is known to have this config in force. */
export const isKnownToHave = ({ unsure, report }: NodeState, hash: string | undefined): boolean =>
  !unsure && report !== undefined && report.hash === hash;

/** Whether the node has reported that this lease ended before anything on it was changed. */
export const isUntouchedBy = ({ report }: NodeState, lease: string): boolean =>
  report?.untouched === true && report.lease === lease;

/** Whether its applier runs elsewhere: it cannot answer a heartbeat, and a change cannot harm its applier. */
export const isTarget = ({ capabilities }: NodeState): boolean => capabilities.includes(REMOTE_APPLIER);

/** The settings of a pool: as committed or, if an open rollout brings the pool, as it does. */
export const poolPolicy = (state: State, pool: string): PoolPolicy =>
  state.committedPools.get(pool) ?? state.pools.get(pool) ?? DEFAULT_POOL;

/** The open rollout that a node is a target of. */
export const rolloutOf = (state: State, { change }: NodeState): Rollout | undefined =>
  change === undefined ? undefined : state.rollouts.get(change);
/** The state of the node in that rollout. */
export const targetOf = (state: State, { change, node }: NodeState): TargetState | undefined =>
  change === undefined ? undefined : state.targets.get(targetKey(change, node));

/** The node of an entry in a set that is not sorted by name. */
export const nodeOfPlace = (key: string): string => key.slice(key.lastIndexOf('|') + 1);

export const targetKey = (change: string, node: string): string => `${change}/${node}`;
export function parseTargetKey(key: string): { readonly change: string; readonly node: string } {
  const slash = key.indexOf('/');
  return { change: key.slice(0, slash), node: key.slice(slash + 1) };
}
