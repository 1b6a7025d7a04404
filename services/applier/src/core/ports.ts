import type { Action, Config, ConfigEntry, LeaseView, StatusView } from '#libs/contracts';
import type { Failure, Journal, Original, Originals, OwnReport, Work } from './journal.js';

/** What the core needs to know about kinds. Pure. */
export interface Kinds {
  /** The kinds that change the node, in the order in which they are applied. */
  readonly order: readonly string[];
  /** The entries to apply for a config: its own, or entries that several of them are merged into. */
  entries(config: Config): readonly ConfigEntry[];
  /** The kinds that the kernel loses at a reboot. */
  readonly forgotten: readonly string[];
  /** The kinds whose resources have more to them than their entries say, such as the owner of a file. */
  readonly snapshots: readonly string[];
  /**
   * Whether the change from one config to another may cut the node off. If so, the probes of the control plane run too.
   */
  mayCutOff(from: Config, to: Config): boolean;
  /** Probes of what a node must reach to get leases, whatever its config says. */
  readonly controlPlane: readonly ConfigEntry[];
  /** The ones to check before a change. The others passed: the node could not have a lease otherwise. */
  readonly controlPlaneBefore: readonly ConfigEntry[];
  /**
   * The resources that an entry manages, such as `path:/etc/motd`; none for an Exec, which cannot be undone. No two
   * entries may share one.
   */
  resources(entry: ConfigEntry): readonly string[];
}

/** One item of a change. Rollbacks consist of the same items. */
export type Item =
  | { readonly do: 'apply'; readonly entry: ConfigEntry }
  /** No config manages the resource any more, so its original is restored. */
  | { readonly do: 'restore'; readonly key: string; readonly original: Original };

export const guardStep = ({ lease, applyMs }: Pick<Work, 'lease' | 'applyMs'>, atMs: number): Step => ({
  do: 'guard',
  lease,
  atMs,
  applyMs,
});
export const itemStep = (item: Item, untilMs: number): Step => (item.do === 'apply' ? { ...item, untilMs } : item);
/** The same during a rollback: on a disk that is full, it may use the space that was set aside for it. */
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
  | { readonly do: 'fetch-config'; readonly hash: string; readonly mustKeep: boolean }
  /** Checks whether this node can apply the config. Changes nothing. */
  | {
      readonly do: 'check';
      readonly config: Config;
      readonly entries: readonly ConfigEntry[];
      readonly actions: readonly Action[];
      readonly taken: readonly string[];
    }
  /** Saves the originals of the resources of these entries, except `known` ones. Contents go to the state folder. */
  | { readonly do: 'read-before'; readonly entries: readonly ConfigEntry[]; readonly known: Originals }
  /** Reads the resources of these entries as they are before the lease, with what the entries do not say. */
  | { readonly do: 'snapshot'; readonly entries: readonly ConfigEntry[] }
  | { readonly do: 'run-probes'; readonly probes: readonly ConfigEntry[]; readonly untilMs: number }
  /** Makes sure that another process rolls back if this one hangs, or is gone at this time and has not confirmed. */
  | { readonly do: 'guard'; readonly lease: string; readonly atMs: number; readonly applyMs: number }
  | { readonly do: 'apply'; readonly entry: ConfigEntry; readonly untilMs: number; readonly isRollback?: true }
  | { readonly do: 'restore'; readonly key: string; readonly original: Original; readonly isRollback?: true }
  /**
   * Takes an action after these items were applied. What they say about a unit also applies to its restart. A reboot is
   * only started by this step.
   */
  | { readonly do: 'act'; readonly action: Action; readonly items: readonly Item[]; readonly untilMs: number }
  /** Checks whether a unit runs whose restart or reload failed before. */
  | { readonly do: 'read-unit'; readonly unit: string; readonly untilMs: number }
  /**
   * Waits until the machine has finished starting, but not longer than this: until then something may only be late.
   */
  | { readonly do: 'settle'; readonly untilMs: number }
  /** Reads back how the node differs from these items. */
  | { readonly do: 'compare'; readonly items: readonly Item[] }
  /** Deletes configs and contents that nothing refers to any more. Nothing depends on it. */
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
  /** It is gone because the daemon that holds it has restarted, not because somebody removed it. */
  readonly forgotten?: boolean;
}
export interface ProbeResult {
  readonly name: string;
  readonly passed: boolean;
  readonly reason: string;
  /** The time was over before a single try had its whole timeout. So nobody knows whether the probe fails. */
  readonly isCutShort?: true;
}
/** Why something was not done. `content`: the node rejects the config, and would reject it again. */
export type Refusal = Pick<Failure, 'fault' | 'reason'>;

/** The outcome of each step. */
export interface Outcomes {
  /** Why it could not be written: then the one before still counts on the disk. */
  'write-journal': Refusal | undefined;
  'load-config': Config | undefined;
  'fetch-config': Config | Refusal;
  check: readonly Refusal[];
  'read-before': Originals | Refusal;
  snapshot: Originals | Refusal;
  'run-probes': readonly ProbeResult[];
  guard: Refusal | undefined;
  apply: Refusal | undefined;
  restore: Refusal | undefined;
  act: Refusal | undefined;
  'read-unit': Refusal | undefined;
  settle: void;
  compare: readonly Difference[];
  tidy: void;
  'read-status': StatusView | undefined;
  'read-lease': LeaseView | undefined;
  report: void;
  wait: void;
}
export type Outcome = Outcomes[Step['do']];
/** The outcome of a step that needs NATS, if there is no connection or no answer. */
export const UNREACHABLE = 'unreachable';
export type StepOf<D extends Step['do']> = Extract<Step, { readonly do: D }>;

/** Messages from outside. They are only hints: everything that decides is read from the leader of the stream. */
export type Notice =
  | { readonly heard: 'lease'; readonly lease: LeaseView }
  | { readonly heard: 'status'; readonly status: StatusView }
  | { readonly heard: 'connected' }
  | {
      readonly heard: 'self';
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
