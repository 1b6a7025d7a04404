import type { Action, Config, ConfigEntry, LeaseView, StatusView } from '#libs/contracts';
import type { Failure, Journal, Original, Originals, OwnReport } from './journal.js';

/** What the core has to know of kinds. Pure. */
export interface Kinds {
  /** Kinds that make something on the node, in the order in which they are applied. */
  readonly order: readonly string[];
  /** What carries a config out: its entries, or what several of them come to together. */
  entries(config: Config): readonly ConfigEntry[];
  /** Kinds whose things the kernel forgets when the machine is restarted. */
  readonly forgotten: readonly string[];
  /**
   * Whether the way from one config to another may cut the node off: then it goes under a guard, and the probes of the
   * control plane are run too.
   */
  mayCutOff(from: Config, to: Config): boolean;
  /**
   * Probes of what a node must reach to be told anything, whatever its config says; and the same before a change, when
   * nobody has to wait for what is not reached anyway.
   */
  readonly controlPlane: readonly ConfigEntry[];
  readonly controlPlaneBefore: readonly ConfigEntry[];
  /**
   * What an entry manages, such as `path:/etc/motd`; nothing for what cannot be undone (Exec). Two entries never share
   * one.
   */
  resources(entry: ConfigEntry): readonly string[];
}

/** One piece of the way to a config; rollbacks are made of the same pieces. */
export type Item =
  | { readonly do: 'apply'; readonly entry: ConfigEntry }
  /** No config manages it any more: what was there before is restored. */
  | { readonly do: 'restore'; readonly key: string; readonly original: Original };

export const itemStep = (item: Item, untilMs: number): Step => (item.do === 'apply' ? { ...item, untilMs } : item);

/**
 * What is to be done next, one at a time. Each may be repeated, and the process may be killed between any two or in the
 * middle of one: what counts is the journal as it stands on disk.
 */
export type Step =
  | { readonly do: 'write-journal'; readonly journal: Journal }
  /** From the state folder. */
  | { readonly do: 'load-config'; readonly hash: string }
  /** From the bus, checked against its hash and kept in the state folder. */
  | { readonly do: 'fetch-config'; readonly hash: string }
  /** Whether this node can and may carry the config out: looks, and changes nothing. */
  | {
      readonly do: 'check';
      readonly config: Config;
      readonly entries: readonly ConfigEntry[];
      readonly actions: readonly Action[];
      readonly taken: readonly string[];
    }
  /** Keeps the originals of these entries' resources, `known` ones excepted; contents go to the state folder. */
  | { readonly do: 'read-before'; readonly entries: readonly ConfigEntry[]; readonly known: Originals }
  | { readonly do: 'run-probes'; readonly probes: readonly ConfigEntry[]; readonly untilMs: number }
  /** Another process rolls back at that time, unless this one has confirmed or rolled back by then. */
  | { readonly do: 'guard'; readonly lease: string; readonly atMs: number }
  | { readonly do: 'apply'; readonly entry: ConfigEntry; readonly untilMs: number }
  | { readonly do: 'restore'; readonly key: string; readonly original: Original }
  /**
   * After these items were gone: what they say of a unit holds for its restart too. A restart of the machine only
   * begins with it.
   */
  | { readonly do: 'act'; readonly action: Action; readonly items: readonly Item[]; readonly untilMs: number }
  /** Whether a unit, whose restart or reload had failed, runs after all. */
  | { readonly do: 'read-unit'; readonly unit: string; readonly untilMs: number }
  /**
   * Until all is up that comes up with the machine, at most until then: what is wrong before may only not be there yet.
   */
  | { readonly do: 'settle'; readonly untilMs: number }
  /** Reads back: how the node differs from what these items make of it. */
  | { readonly do: 'compare'; readonly items: readonly Item[] }
  /** Forgets configs and contents that nothing names any more. */
  | { readonly do: 'tidy'; readonly configs: readonly string[]; readonly originals: Originals }
  | { readonly do: 'read-status' }
  | { readonly do: 'read-lease' }
  | { readonly do: 'report'; readonly report: OwnReport }
  /** Nothing to do until then, or until something is heard. */
  | { readonly do: 'wait'; readonly untilMs: number };

export interface Difference {
  /** As people name it: a path, or `Exec/name`. */
  readonly what: string;
  readonly how: string;
  /** Nobody took it away: what keeps it was restarted since it was made, and knows nothing of it. */
  readonly forgotten?: boolean;
}
export interface ProbeResult {
  readonly name: string;
  readonly passed: boolean;
  readonly reason: string;
}
/** Why something was not done. `content`: the node refuses what the config says, and would again. */
export type Refusal = Pick<Failure, 'fault' | 'reason'>;

/** The outcome of each step. */
export interface Outcomes {
  'write-journal': void;
  'load-config': Config | undefined;
  'fetch-config': Config | Refusal;
  check: readonly Refusal[];
  'read-before': Originals | Refusal;
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
/** Instead of an outcome, of a step that needs the bus: there is no connection or no answer. */
export const UNREACHABLE = 'unreachable';
export type StepOf<D extends Step['do']> = Extract<Step, { readonly do: D }>;

/** What the applier is told from outside. Hints: what decides is read from the stream's leader. */
export type Notice =
  | { readonly heard: 'lease'; readonly lease: LeaseView }
  | { readonly heard: 'status'; readonly status: StatusView }
  | { readonly heard: 'connected' }
  | {
      readonly heard: 'self';
      readonly labels: Readonly<Record<string, string>>;
      readonly capabilities: readonly string[];
    };

/** A port for people's logs, as pino has it. */
export interface Log {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export const SILENT: Log = { info: () => undefined, warn: () => undefined, error: () => undefined };
