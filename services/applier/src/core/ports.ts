import type { Action, Config, ConfigEntry, LeaseView, StatusView } from '#libs/contracts';
import type { Failure, Journal, Original, Originals, OwnReport, Scope, Work } from './journal.js';

/** What the core needs to know about kinds. Pure. */
export interface Kinds {
  /** The kinds that change the node, in the order in which they are applied. */
  readonly order: readonly string[];
  /** The entries to apply for a config: its own, or entries that several of them are merged into. */
  entries(config: Config): readonly ConfigEntry[];
  /** The kinds that the kernel loses at a reboot, or that a target loses when it restarts. */
  readonly forgotten: readonly string[];
  /**
   * The actions that a config needs after all of it was lost and is applied again. Absent if there are none, as for the
   * network of a machine: the kernel knows of what is added.
   */
  actionsAfterLoss?(config: Config): readonly Action[];
  /** The kinds whose resources have properties that their entries do not name, such as the owner of a file. */
  readonly snapshots: readonly string[];
  /**
   * The kinds whose resources depend on nothing else in a config, such as files. A lease leaves alone those that it
   * does not touch.
   */
  readonly independent: readonly string[];
  /** The kinds whose resources take time until they are as their entries want them, such as a Deployment. */
  readonly becomesReady?: readonly string[];
  /**
   * The kinds that another program carries out, such as what the Flux of a cluster applies. A rollback, and a removal,
   * also wait until it has done its part, but only as far as there is time: it may be gone.
   */
  readonly doneByOthers?: readonly string[];
  /**
   * Whether the change from one config to another may cut the node off. If so, the probes of the control plane run too.
   */
  mayCutOff(from: Config, to: Config): boolean;
  /** Probes of what a node must reach to get leases, whatever its config says. */
  readonly controlPlane: readonly ConfigEntry[];
  /**
   * The ones to check before a change. The others are known to pass, because the node could not have received its lease
   * otherwise.
   */
  readonly controlPlaneBefore: readonly ConfigEntry[];
  /**
   * The resources that an entry manages, such as `path:/etc/motd`; none for an Exec, which cannot be rolled back. No
   * two entries may share one.
   */
  resources(entry: ConfigEntry): readonly string[];
}

/** What is known while it is decided whether this node can apply an entry. */
export interface EntryContext {
  readonly config: Config;
  /** The config in force. */
  readonly from: Config;
  /** Of what Sluice manages. */
  readonly originals: Originals;
}

/** One item of a change. Rollbacks consist of the same items. */
export type Item =
  | { readonly do: 'apply'; readonly entry: ConfigEntry }
  /** No config manages the resource any more, so its original is restored. */
  | { readonly do: 'restore'; readonly key: string; readonly original: Original };

/** Whether another program does a part of it. */
export const isForOthers = (item: Item, { doneByOthers = [] }: Kinds): boolean =>
  doneByOthers.includes(item.do === 'apply' ? item.entry.kind : item.original.kind);

export const guardStep = ({ lease, applyMs }: Pick<Work, 'lease' | 'applyMs'>, atMs: number): Step => ({
  do: 'guard',
  lease,
  atMs,
  applyMs,
});
export const itemStep = (item: Item, untilMs: number): Step => (item.do === 'apply' ? { ...item, untilMs } : item);
/** The same during a rollback: on a full disk, it may use the space that was set aside for it. */
export const rollbackItemStep = (item: Item, untilMs: number): Step =>
  item.do === 'apply' ? { ...item, untilMs, isRollback: true } : { ...item, isRollback: true };

/**
 * The next thing to do, one at a time. Every step may be repeated. The process may be killed between two steps or in
 * the middle of one; only the journal on disk counts.
 */
export type Step =
  | { readonly do: 'write-journal'; readonly journal: Journal }
  /** From the state folder. */
  | { readonly do: 'load-config'; readonly hash: string }
  /**
   * Downloads a config from NATS, checks its hash and stores it in the state folder. With `mustKeep`, a config that
   * cannot be stored is refused: without it, a rollback could not be finished after a kill.
   */
  | {
      readonly do: 'fetch-config';
      readonly hash: string;
      readonly mustKeep: boolean;
      /** The change does not need it: without it, less is known. */
      readonly isOptional?: true;
    }
  /**
   * Makes sure that the content of this entry is on this machine: downloads it from the object store if the node does
   * not have it. Changes nothing. If it fails, the downloaded part is kept for the next try.
   */
  | { readonly do: 'fetch-object'; readonly entry: ConfigEntry; readonly untilMs: number }
  /**
   * Downloads the config of a lease that has not begun, and the objects of that config, as far as possible. Changes
   * nothing, and ends early when a notice arrives. What was downloaded is kept for the next try.
   */
  | { readonly do: 'prefetch'; readonly lease: string; readonly hash: string; readonly untilMs: number }
  /** Checks whether this node can apply the config. Changes nothing. */
  | ({
      readonly do: 'check';
      readonly entries: readonly ConfigEntry[];
      readonly actions: readonly Action[];
      readonly scope: Scope;
      /** It ends by then, when nothing may begin any more. What was not checked by then does not matter. */
      readonly untilMs: number;
    } & EntryContext)
  /**
   * Saves the originals of the resources of these entries, except `known` ones. Contents go to the state folder.
   * Refused if that takes longer than `untilMs`: a file may be of any size.
   */
  | {
      readonly do: 'read-before';
      readonly entries: readonly ConfigEntry[];
      readonly originals: Originals;
      /** What Sluice has put on the node according to its status. If it is still there, it is not an original. */
      readonly had: readonly ConfigEntry[];
      readonly untilMs: number;
    }
  /**
   * Reads the resources of these entries as they are before the lease, including properties that the entries do not
   * name. Refused if that takes longer than `untilMs`.
   */
  | { readonly do: 'snapshot'; readonly entries: readonly ConfigEntry[]; readonly untilMs: number }
  /** `fault`: what is to blame if the applier hangs in this step. */
  | {
      readonly do: 'run-probes';
      readonly probes: readonly ConfigEntry[];
      readonly untilMs: number;
      readonly fault: Failure['fault'];
    }
  /** Starts these probes and does not wait for them: a notice of this round brings their results. */
  | { readonly do: 'start-probes'; readonly probes: readonly ConfigEntry[]; readonly round: number }
  /**
   * Makes sure that another process rolls back if this one hangs, or if it is gone and has not confirmed by this time.
   */
  | { readonly do: 'guard'; readonly lease: string; readonly atMs: number; readonly applyMs: number }
  /** Runs the check of an Exec, which says whether its command is needed. */
  | { readonly do: 'check-command'; readonly entry: ConfigEntry; readonly untilMs: number }
  /** An Exec: its check has just said that its command is needed. */
  | { readonly do: 'apply'; readonly entry: ConfigEntry; readonly untilMs: number; readonly isRollback?: true }
  | { readonly do: 'restore'; readonly key: string; readonly original: Original; readonly isRollback?: true }
  /** Undoes what the command of an Exec did. */
  | { readonly do: 'undo'; readonly entry: ConfigEntry; readonly untilMs: number }
  /**
   * Takes an action after these items were applied. What the items say about a unit also applies to its restart. For a
   * reboot, this step only requests it.
   */
  | { readonly do: 'act'; readonly action: Action; readonly items: readonly Item[]; readonly untilMs: number }
  /** Checks whether a unit runs whose restart or reload failed before. */
  | { readonly do: 'read-unit'; readonly unit: string; readonly untilMs: number }
  /** Lets the service manager forget that these units have failed. No other step depends on it. */
  | { readonly do: 'reset-failed'; readonly units: readonly string[] }
  /**
   * Waits until the machine has finished starting, but not longer than this. Before that, a failure may only mean that
   * something is not up yet.
   */
  | { readonly do: 'settle'; readonly untilMs: number }
  /**
   * Looks whether the resources of these items are ready, and waits for a moment if they are not. It is repeated until
   * they are, or the time is over.
   */
  | { readonly do: 'await-ready'; readonly items: readonly Item[]; readonly atMs: number; readonly untilMs: number }
  /**
   * Looks whether another program has done its part of these items, and waits for a moment if it has not. It is
   * repeated, but nothing fails because of it.
   */
  | { readonly do: 'await-others'; readonly items: readonly Item[]; readonly untilMs: number }
  /**
   * Reads back how the node differs from these items. With `untilMs`, it ends by then, and what was not read by then is
   * `late`. What is known from before `sinceMs` is read again; without it, everything is.
   */
  | {
      readonly do: 'compare';
      readonly items: readonly Item[];
      readonly untilMs?: number;
      readonly sinceMs?: number;
    }
  /**
   * Starts to compare the node with these items, and what it refuses to correct, and does not wait for that: a notice
   * of this round brings the differences. A lease ends it.
   */
  | {
      readonly do: 'start-drift-check';
      readonly items: readonly Item[];
      readonly checks: EntryContext;
      /** What was deleted: whether it is still there. */
      readonly leaving: readonly Item[];
      readonly round: number;
    }
  /** Deletes configs and contents that nothing refers to any more. No other step depends on it. */
  | { readonly do: 'tidy'; readonly configs: readonly string[]; readonly journal: Journal }
  | { readonly do: 'read-status' }
  | { readonly do: 'read-lease' }
  | { readonly do: 'report'; readonly report: OwnReport }
  /** Waits until this time, or until a notice arrives. */
  | { readonly do: 'wait'; readonly untilMs: number };

export interface Difference {
  /** A name for people: a path, or `Exec/name`. */
  readonly what: string;
  readonly how: string;
  /** The entry that the node differs from; undefined if no config manages the resource any more. */
  readonly entry?: ConfigEntry;
  /** It could not be read. */
  readonly unreadable?: true;
  /** It could not be read because the target does not answer. */
  readonly unreachable?: true;
  /** The time ended before it was read, so it is unknown whether the node differs. */
  readonly late?: true;
  /** It is gone because the daemon that holds it has restarted, not because anyone removed it. */
  readonly forgotten?: boolean;
  /** Why this node refuses to correct it. Only known in a drift check. */
  readonly refused?: string;
}
export interface ProbeResult {
  readonly name: string;
  readonly passed: boolean;
  readonly reason: string;
  /** The time ended before a single try had its whole timeout, so it is unknown whether the probe fails. */
  readonly isCutShort?: true;
  /** The target does not answer, so it is unknown whether the probe fails. */
  readonly unreachable?: true;
}
/** What another program has not done yet. */
export interface LeftToOthers {
  /** What is waited for, and why. */
  readonly what: readonly string[];
  /** Waiting for it is of no use. */
  readonly isOver: boolean;
  /** By key: what was removed and is still there, also if that is not waited for, and why. Absent: it is not known. */
  readonly left?: Left;
}
export type Left = Readonly<Record<string, string>>;
/** Why something was not done. `content`: the node rejects the config, and would reject it again. */
export type Refusal = Pick<Failure, 'fault' | 'reason'>;

/** Why an entry, or an action, cannot be carried out. */
export type CheckRefusal = Refusal & { readonly entry?: ConfigEntry };

export interface CheckResult {
  readonly refusals: readonly CheckRefusal[];
  /** Units that the change may start, and that neither run nor have failed. */
  readonly idleUnits?: readonly string[];
  /** Resources that are not restored, because what is there now belongs to another one, and why. */
  readonly shared: Readonly<Record<string, string>>;
}

/** The outcome of each step. */
export interface Outcomes {
  /** Why it could not be written. The previous journal on disk still counts. */
  'write-journal': Refusal | undefined;
  'load-config': Config | undefined;
  'fetch-config': Config | Refusal;
  /** `mayCome`: another try may succeed. */
  'fetch-object': (Refusal & { readonly mayCome?: true }) | undefined;
  /** `isOver`: everything is here, or another try would not help. */
  prefetch: { readonly isOver: boolean };
  check: CheckResult;
  'read-before': Originals | Refusal;
  snapshot: Originals | Refusal;
  'run-probes': readonly ProbeResult[];
  'start-probes': void;
  guard: Refusal | undefined;
  'check-command': Refusal | typeof UNNEEDED | undefined;
  /** `neverRan`: the command of an Exec could not be started. */
  apply: (Refusal & { readonly neverRan?: true }) | undefined;
  undo: Refusal | undefined;
  restore: Refusal | undefined;
  act: Refusal | undefined;
  'read-unit': Refusal | undefined;
  'reset-failed': void;
  settle: void;
  /** What is not ready yet, and why. A refusal if something has failed. */
  'await-ready': Refusal | readonly string[];
  'await-others': LeftToOthers;
  compare: readonly Difference[];
  'start-drift-check': void;
  tidy: void;
  'read-status': StatusView | undefined;
  'read-lease': LeaseView | undefined;
  report: void;
  wait: void;
}
export type Outcome = Outcomes[Step['do']];
/** The command of an Exec does not run, because its check says that nothing has to be done. */
export const UNNEEDED = 'unneeded';
/** The outcome of a step that needs NATS, if there is no connection or no answer. */
export const UNREACHABLE = 'unreachable';
export type StepOf<D extends Step['do']> = Extract<Step, { readonly do: D }>;

/**
 * Messages from outside, which are only hints: every decision is based on what is read.
 * Also the results of probes and of drift checks.
 */
export type Notice =
  | { readonly kind: 'lease'; readonly lease: LeaseView }
  | { readonly kind: 'status'; readonly status: StatusView }
  /** `mayLag`: what is read may be older than what was read before, because another server answers. */
  | { readonly kind: 'connected'; readonly mayLag: boolean }
  | { readonly kind: 'probed'; readonly round: number; readonly results: readonly ProbeResult[] }
  /** Without differences, the drift check has failed. `left`: what was deleted and is still there, if that is known. */
  | {
      readonly kind: 'compared';
      readonly round: number;
      readonly differences?: readonly Difference[];
      readonly left?: Left | undefined;
    }
  /** The target answers again and can be used, after a time in which it could not. */
  | { readonly kind: 'answers' }
  /** The target does not answer, or is not ready. */
  | { readonly kind: 'unavailable'; readonly reason: string }
  /** Somebody may have changed something on the target by hand. */
  | { readonly kind: 'changed' }
  | {
      readonly kind: 'self';
      readonly labels: Readonly<Record<string, string>>;
      readonly capabilities: readonly string[];
    };

/** A port for logs, with the shape of pino. */
export interface Log {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export const SILENT: Log = { info: () => undefined, warn: () => undefined, error: () => undefined };
