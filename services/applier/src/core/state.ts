import {
  EMPTY_CONFIG,
  REMOTE_APPLIER,
  type Action,
  type Config,
  type FailingProbe,
  type LeaseView,
  type StatusView,
} from '#libs/contracts';
import { draw, type Chance } from './chance.js';
import { newHealth, type Health } from './health.js';
import {
  failureOf,
  type Escalation,
  type Failure,
  type Hang,
  type Journal,
  type Originals,
  type Scope,
} from './journal.js';
import type { Difference, Kinds, Left, LeftToOthers, ProbeResult } from './ports.js';

/** The state of an applier: its journal, which is on disk, and its memory, which is lost at kill -9. */
export interface State {
  readonly settings: Settings;
  readonly self: Self;
  readonly journal: Journal;
  readonly memory: Memory;
}

export interface Settings {
  readonly kinds: Kinds;
  /** Hash of the empty config. */
  readonly emptyHash: string;
  /** How often the lease is read in addition to pushes. The status is read five times less often. */
  readonly readEveryMs: number;
  readonly driftCheckMs: number;
  /** How long one step of a rollback may take. Default: 30 seconds. */
  readonly rollbackStepMs?: number | undefined;
  /** It acts in place of an applier that is gone: it only rolls back, because it could not check the change. */
  readonly isGuard: boolean;
  /** The unit that this process runs in: restarting it ends the process. Undefined if systemd has not started it. */
  readonly ownUnit?: string | undefined;
}

/** What an announcement says about the node. */
export interface Self {
  readonly labels: Readonly<Record<string, string>>;
  readonly capabilities: readonly string[];
  readonly version: string;
  readonly fresh: boolean;
}

export interface Memory {
  readonly bootId: string;
  /** For the next incarnation. */
  readonly nonce: number;
  readonly chance: Chance;
  /** Configs that are loaded while they are needed, and hashes that the state folder does not have. */
  readonly configs: ReadonlyMap<string, Config>;
  readonly absent: ReadonlySet<string>;
  readonly bus: { readonly failures: number; readonly retryAtMs: number };
  /** How many times in a row the journal could not be written, and when to try again. */
  readonly disk: { readonly failures: number; readonly retryAtMs: number };
  readonly status: StatusView | undefined;
  readonly statusReadMs: number | undefined;
  readonly statusDueMs: number;
  readonly lease: LeaseView | undefined;
  readonly leaseDueMs: number;
  /** The ledger sequence of the newest pushed lease. A read that began before the push may return an older lease. */
  readonly leasePushed: number;
  /**
   * The status shows a report that this run has sent since it connected. What a server shows that lacks it may be as
   * old as the server's last contact with the others, so no lease is started before.
   */
  readonly isCurrent: boolean;
  /** How often in a row the lease that was read is older than the one that was pushed, or that the status knows. */
  readonly staleReads: number;
  /**
   * From this ledger sequence on, leases are granted to this boot of the machine, because the scheduler has recorded a
   * report of it. Undefined until then. A machine that starts with an older disk might otherwise start a lease again
   * that it has already finished, while a late report about that frees the unit.
   */
  readonly leasesFrom: number | undefined;
  /** A lease that was read and may be started. */
  readonly preparation: Preparation | undefined;
  /** The lease for which objects were downloaded while its node is drained, and when to continue with that. */
  readonly prefetch: { readonly lease: string; readonly dueMs: number } | undefined;
  readonly progress: Progress;
  /** The machine has finished starting, or the time for that is over. */
  readonly settled: boolean;
  readonly announce: boolean;
  /**
   * Why the target cannot be used, as far as this run knows; undefined if it can. Until this run has asked the target,
   * it is what the last report said.
   */
  readonly unavailable: string | undefined;
  /** Links or routes of the config in force are gone, although the machine did not reboot. */
  readonly forgot: boolean;
  /** Retries of the last report, in this run. */
  readonly reportRetry: Retry;
  /**
   * How often this run started a new incarnation, and when it may do so again. Two appliers with the same name must not
   * do this at full speed.
   */
  readonly reborn: Retry;
  /** The lease still looks open, although it was finished and its report was recorded. */
  readonly viewRetry: Retry | undefined;
  readonly repair: Retry;
  readonly drift: Drift;
  readonly health: Health;
  readonly untidy: boolean;
  /** When to tidy up again: what is kept for a while must not stay. */
  readonly tidyDueMs: number;
  /** The lease for which this run has set a guard. */
  readonly guarded: string | undefined;
  /** The lease in which the previous run hung. */
  readonly hang: Hang | undefined;
}

export interface Retry {
  readonly count: number;
  readonly dueMs: number;
}
export interface Drift {
  /** Each lease begins a new round: what an earlier check found says nothing any more. */
  readonly round: number;
  readonly isRunning: boolean;
  /** Infinity while it runs, unless something was changed by hand since it began. */
  readonly dueMs: number;
  /** Found by the last check, and not yet reported. */
  readonly latest: readonly string[] | undefined;
  readonly reported: readonly string[] | undefined;
  /** What was deleted and was still there at the last check; undefined until that was looked at. */
  readonly left: Left | undefined;
}

/** What was gathered for a lease before anything changes. */
export interface Preparation {
  readonly lease: LeaseView;
  readonly readMs: number;
  /** Undefined until the config was checked. */
  readonly scope: Scope | undefined;
  /** Units that neither run nor have failed, and that the change may start. */
  readonly idleUnits: readonly string[];
  /** How many entries with an object have their content on this machine. */
  readonly fetched: number;
  /** The probes that have run. */
  readonly before: readonly ProbeResult[];
  readonly originals: Originals | undefined;
  /** The config `had` of the journal; empty if it does not exist any more. */
  readonly had: Config | undefined;
  readonly changed: readonly string[] | undefined;
  /** What the change touches, as it is now. */
  readonly snapshot: Originals | undefined;
  /** What differs from the config in force, is the same in the new one, and is repaired. */
  readonly drift: readonly Difference[];
  /** Drift at the places that the new config changes; undefined until it was checked. */
  readonly overwritten: readonly Difference[] | undefined;
  readonly failure: Failure | undefined;
  /** What it waits for, as a reason; empty if nothing failed. */
  readonly trouble: string;
}

/** An action that fails, as a report says it. */
export interface FailingAction extends FailingProbe {
  readonly action: Action;
  /** The target does not answer, so it is unknown whether the action fails. */
  readonly unreachable: boolean;
}

/** The progress of one pass over the items. */
export interface Progress {
  /** How many entries with an object were looked at by a pass that retries a rollback. */
  readonly fetched: number;
  readonly done: number;
  readonly acted: number;
  readonly troubles: readonly string[];
  /** The actions among these troubles. */
  readonly failing: readonly FailingAction[];
  /** An action that failed, and that may be escalated to a reboot. */
  readonly escalating: Escalation | undefined;
  /** The unit of the escalated action was checked. */
  readonly unitRead: boolean;
  /** The service manager has forgotten the failures of units that did not run before the change. */
  readonly unitsReset: boolean;
  /** This pass of a retried rollback found the content to be correct before it changed anything. */
  readonly startedWhole: boolean;
  /** What was not ready when it was last looked at; undefined if that was not done yet. */
  readonly waitsFor: { readonly what: readonly string[]; readonly atMs: number } | undefined;
  /** What another program had not done when that was last looked at, and how long it is waited for. */
  readonly leftToOthers: (LeftToOthers & { readonly untilMs: number }) | undefined;
  readonly differences: readonly Difference[] | undefined;
  readonly probes: readonly ProbeResult[] | undefined;
  /** The probes that may fail after the change. */
  readonly others: readonly ProbeResult[] | undefined;
  /** Commands that were undone, and why not where that failed. */
  readonly undone: ReadonlyMap<string, string | undefined>;
  /** The commands whose undo this process has begun, according to the journal. */
  readonly undoing: ReadonlySet<string>;
  /** This process has noted in the journal that it requests the restart of its own unit. */
  readonly restarting: boolean;
  /** The command that this process has noted in the journal, and that it runs next. */
  readonly noted: string | undefined;
  /** A command that was noted and could not be started, so it has changed nothing. */
  readonly neverRan: string | undefined;
  /** The command that is needed, as its check has just said. */
  readonly needed: string | undefined;
  readonly failure: Failure | undefined;
  readonly passes: number;
  readonly againAtMs: number;
}
export const START: Progress = {
  fetched: 0,
  done: 0,
  acted: 0,
  troubles: [],
  failing: [],
  escalating: undefined,
  unitRead: false,
  unitsReset: false,
  startedWhole: false,
  waitsFor: undefined,
  leftToOthers: undefined,
  differences: undefined,
  probes: undefined,
  others: undefined,
  undone: new Map(),
  undoing: new Set(),
  restarting: false,
  noted: undefined,
  neverRan: undefined,
  needed: undefined,
  failure: undefined,
  passes: 0,
  againAtMs: 0,
};

/** Values from outside that an applier starts with. */
export interface Environment {
  readonly bootId: string;
  readonly nowMs: number;
  /** A random number below 2^32. */
  readonly random: number;
  readonly hang?: Hang | undefined;
}

/** The state of an applier when it starts from a journal. */
export function start(settings: Settings, self: Self, journal: Journal, outside: Environment): State {
  const { value, next } = draw(outside.random);
  const { nowMs } = outside;
  return {
    settings,
    self,
    journal,
    memory: {
      bootId: outside.bootId,
      nonce: nextNonce(outside.random),
      chance: next,
      configs: new Map(),
      absent: new Set(),
      bus: { failures: 0, retryAtMs: nowMs },
      disk: { failures: 0, retryAtMs: nowMs },
      status: undefined,
      statusReadMs: undefined,
      statusDueMs: nowMs,
      lease: undefined,
      leaseDueMs: nowMs,
      leasePushed: 0,
      isCurrent: false,
      staleReads: 0,
      leasesFrom: journal.report?.bootId === outside.bootId ? 0 : undefined,
      preparation: undefined,
      prefetch: undefined,
      progress: START,
      settled: false,
      announce: true,
      unavailable: journal.report?.unavailable,
      forgot: false,
      reportRetry: { count: 0, dueMs: nowMs },
      reborn: { count: 0, dueMs: nowMs },
      viewRetry: undefined,
      repair: { count: 0, dueMs: nowMs },
      drift: uncheckedDrift(0, nowMs + value * settings.driftCheckMs),
      health: newHealth(0, journal.inForce === settings.emptyHash ? EMPTY_CONFIG : undefined, () => nowMs),
      untidy: true,
      tidyDueMs: Infinity,
      guarded: undefined,
      hang: outside.hang,
    },
  };
}

/** No drift check runs or has run since the last lease. */
export const uncheckedDrift = (round: number, dueMs: number): Drift => ({
  round,
  isRunning: false,
  dueMs,
  latest: undefined,
  reported: undefined,
  left: undefined,
});

/** How long to wait before answering a lease that still looks open: the view may only lag. */
export const VIEW_LAG_MS = 5_000;

export const remember = (state: State, part: Partial<Memory>): State => ({
  ...state,
  memory: { ...state.memory, ...part },
});
export const progressed = (state: State, part: Partial<Progress>): State =>
  remember(state, { progress: { ...state.memory.progress, ...part } });

/** Adds to what was gathered for a lease, if one is prepared. */
export function withPreparation(state: State, part: Partial<Preparation>): State {
  const { preparation } = state.memory;
  return preparation === undefined ? state : remember(state, { preparation: { ...preparation, ...part } });
}

/**
 * Whether links or routes may be gone: the machine, or a daemon that holds a part of the network, has restarted, and
 * the config in force may have such parts.
 */
export const hasForgotten = ({ journal, memory, settings: { kinds, emptyHash } }: State): boolean =>
  journal.work === undefined &&
  journal.sound &&
  kinds.forgotten.length > 0 &&
  journal.inForce !== emptyHash &&
  (journal.madeIn !== memory.bootId || memory.forgot);
/** Whether this node can reboot. */
export const canReboot = (state: State): boolean => state.self.capabilities.includes('action:reboot');

/**
 * The failure if the time of a lease is over and nothing else has failed. An applier that runs elsewhere may have been
 * paused, or its target answers slowly: that says nothing about the change.
 */
export const lateFailure = ({ self }: State, reason: string): Failure =>
  self.capabilities.includes(REMOTE_APPLIER)
    ? failureOf({ fault: 'unreachable', reason: `${reason}; ${MORE_TIME}` })
    : failureOf({ fault: 'node', reason });

const MORE_TIME = 'if this target always takes that long, give its pool a longer applyTimeout';

/** The lease that the applier works on, or prepares. */
export const leaseAtWork = ({ journal, memory }: State): string | undefined =>
  journal.work?.lease ?? memory.preparation?.lease.lease;

/** The failure of a lease in which the applier hung. */
export const hangIn = ({ memory: { hang } }: State, lease: string): Failure | undefined =>
  hang?.lease === lease ? { fault: hang.fault, reason: hang.reason, probe: '' } : undefined;

/** The config with this hash, if it is loaded. */
export const inHand = (state: State, hash: string): Config | undefined =>
  hash === state.settings.emptyHash ? EMPTY_CONFIG : state.memory.configs.get(hash);

/** Whether `status/<node>` shows the last report. */
export function isShown(state: State): boolean {
  const { journal } = state;
  const { status } = state.memory;
  return (
    status !== undefined &&
    status.incarnation === journal.incarnation &&
    status.nonce === journal.nonce &&
    status.seq >= journal.seq
  );
}

/** After a newer status: if it is the first that shows a report of this boot or run, leases are read again. */
export function noteStatus(state: State, nowMs: number): State {
  const { journal, memory } = state;
  if (!isShown(state)) return state;
  const isKnown = memory.leasesFrom === undefined && journal.report?.bootId === memory.bootId;
  const isCurrent = !memory.announce;
  if (!isKnown && isCurrent === memory.isCurrent) return state;
  const leasesFrom = isKnown ? memory.status?.ledger : memory.leasesFrom;
  return remember(state, { leasesFrom, isCurrent: memory.isCurrent || isCurrent, leaseDueMs: nowMs });
}

/** The ledger sequence that the newest lease has at least, as far as this node knows. */
export const leaseKnown = ({ memory }: State): number => Math.max(memory.leasePushed, memory.status?.leaseLedger ?? 0);

export const newer = (before: StatusView | undefined, found: StatusView | undefined): StatusView | undefined =>
  before !== undefined && (found === undefined || found.ledger < before.ledger) ? before : found;

/** A nonce that differs from the last one and is never 0. */
export const nextNonce = (nonce: number): number => (Math.imul(nonce, 1_664_525) + 1_013_904_223) >>> 0 || 1;
