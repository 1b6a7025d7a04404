import { EMPTY_CONFIG, type Config, type LeaseView, type StatusView } from '#libs/contracts';
import { draw, type Chance } from './chance.js';
import type { Escalation, Failure, Hang, Journal, Originals } from './journal.js';
import type { Difference, Notice, Kinds, ProbeResult } from './ports.js';

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
  /** The journal could not be written so many times in a row; it is tried again then. */
  readonly disk: { readonly failures: number; readonly retryAtMs: number };
  readonly status: StatusView | undefined;
  readonly statusReadMs: number | undefined;
  readonly statusDueMs: number;
  readonly lease: LeaseView | undefined;
  readonly leaseDueMs: number;
  /** The ledger sequence of the newest pushed lease. A read that began before the push may return an older lease. */
  readonly leasePushed: number;
  /**
   * From this ledger sequence on, leases are granted to this boot of the machine: the scheduler has recorded a report
   * of it. Undefined until then. A machine that comes back with an older disk might take a lease again that its last
   * life has finished, while a late report about that frees the unit.
   */
  readonly leasesFrom: number | undefined;
  /** A lease that was read and may be started. */
  readonly begun: Preparation | undefined;
  readonly progress: Progress;
  /** The machine has finished starting, or its time for that is over. */
  readonly settled: boolean;
  readonly announce: boolean;
  /** Links or routes of the config in force are gone, although the machine did not reboot. */
  readonly forgot: boolean;
  /** Retries of the last report, in this run. */
  readonly sent: Retry;
  /**
   * How often this run started a new incarnation, and when it may do so again. Two appliers with one name must not do
   * this at full speed.
   */
  readonly reborn: Retry;
  /** The lease still looks open, although it was finished and its report was recorded. */
  readonly lost: Retry | undefined;
  readonly mend: Retry;
  readonly drift: Drift;
  readonly untidy: boolean;
  /** The lease for which this run has set a guard. */
  readonly guarded: string | undefined;
  /** The lease in which the run before hung. */
  readonly hang: Hang | undefined;
}

export interface Retry {
  readonly count: number;
  readonly dueMs: number;
}
export interface Drift {
  readonly dueMs: number;
  /** Found by the last check, and not yet reported. */
  readonly found: readonly string[] | undefined;
  readonly reported: readonly string[] | undefined;
}

/** What was gathered for a lease before anything changes. */
export interface Preparation {
  readonly lease: LeaseView;
  readonly readMs: number;
  readonly checked: boolean;
  readonly before: readonly ProbeResult[] | undefined;
  readonly originals: Originals | undefined;
  readonly changed: readonly string[] | undefined;
  /** What the change touches, as it is now. */
  readonly snapshot: Originals | undefined;
  /** Of that, how the node differs from the config in force where the new one is the same. */
  readonly drift: readonly Difference[];
  /** Drift at the places that the new config changes; undefined until it was looked for. */
  readonly overwritten: readonly Difference[] | undefined;
  readonly failure: Failure | undefined;
  readonly trouble: string;
}

/** The progress of one pass over the items. */
export interface Progress {
  readonly done: number;
  readonly acted: number;
  readonly troubles: readonly string[];
  /** An action that failed, and that may be escalated to a reboot. */
  readonly escalating: Escalation | undefined;
  /** The unit of the escalated action was checked. */
  readonly unitRead: boolean;
  /** This pass of a retried rollback found the content as it should be before it touched anything. */
  readonly startedWhole: boolean;
  readonly differences: readonly Difference[] | undefined;
  readonly probes: readonly ProbeResult[] | undefined;
  readonly failure: Failure | undefined;
  readonly passes: number;
  readonly againAtMs: number;
}
export const START: Progress = {
  done: 0,
  acted: 0,
  troubles: [],
  escalating: undefined,
  unitRead: false,
  startedWhole: false,
  differences: undefined,
  probes: undefined,
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
      leasesFrom: journal.report?.bootId === outside.bootId ? 0 : undefined,
      begun: undefined,
      progress: START,
      settled: false,
      announce: true,
      forgot: false,
      sent: { count: 0, dueMs: nowMs },
      reborn: { count: 0, dueMs: nowMs },
      lost: undefined,
      mend: { count: 0, dueMs: nowMs },
      drift: { dueMs: nowMs + value * settings.driftCheckMs, found: undefined, reported: undefined },
      untidy: true,
      guarded: undefined,
      hang: outside.hang,
    },
  };
}

/** How long to wait before answering a lease that still looks open: the view may only lag. */
export const VIEW_LAG_MS = 5_000;

/** Handles a notice, which only changes what is read next. */
export function hear(state: State, heard: Notice, nowMs: number): State {
  const { memory } = state;
  switch (heard.heard) {
    case 'lease':
      if (heard.lease.phase !== 'applying') return ended(state, heard.lease);
      return remember(state, { leaseDueMs: nowMs, leasePushed: Math.max(memory.leasePushed, heard.lease.ledger) });
    case 'status':
      return shown(
        remember(state, { status: newer(memory.status, heard.status), ...laterLost(memory, nowMs + VIEW_LAG_MS) }),
        nowMs,
      );
    case 'connected':
      return remember(state, {
        // Another ledger may have taken the place of the one before.
        status: undefined,
        leaseDueMs: nowMs,
        statusDueMs: nowMs,
        bus: { failures: 0, retryAtMs: nowMs },
        sent: { count: memory.sent.count, dueMs: nowMs },
      });
    case 'self':
      return {
        ...state,
        self: { ...state.self, labels: heard.labels, capabilities: heard.capabilities },
        memory: { ...memory, announce: true },
      };
  }
}

export const remember = (state: State, part: Partial<Memory>): State => ({
  ...state,
  memory: { ...state.memory, ...part },
});
export const progressed = (state: State, part: Partial<Progress>): State =>
  remember(state, { progress: { ...state.memory.progress, ...part } });

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

/** The lease that the applier works on, or prepares. */
export const leaseAtWork = ({ journal, memory }: State): string | undefined =>
  journal.work?.lease ?? memory.begun?.lease.lease;

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

/** After a newer status: if it is the first that shows a report of this boot, leases are read again. */
export function shown(state: State, nowMs: number): State {
  const { journal, memory } = state;
  const isKnown = memory.leasesFrom === undefined && journal.report?.bootId === memory.bootId && isShown(state);
  return isKnown ? remember(state, { leasesFrom: memory.status?.ledger, leaseDueMs: nowMs }) : state;
}

export const newer = (known: StatusView | undefined, found: StatusView | undefined): StatusView | undefined =>
  known !== undefined && (found === undefined || found.ledger < known.ledger) ? known : found;

/** A nonce that differs from the last one and is never 0. */
export const nextNonce = (nonce: number): number => (Math.imul(nonce, 1_664_525) + 1_013_904_223) >>> 0 || 1;

/** A pushed lease that is not in the phase `applying` starts nothing, so it may be used without reading it. */
const ended = (state: State, lease: LeaseView): State =>
  lease.ledger > (state.memory.lease?.ledger ?? 0) ? remember(state, { lease, lost: undefined }) : state;

/** The status shows something new, so the view of the lease may follow in a moment. */
const laterLost = ({ lost, leaseDueMs }: Memory, dueMs: number): Partial<Memory> =>
  lost === undefined || lost.dueMs >= dueMs
    ? {}
    : { lost: { ...lost, dueMs }, leaseDueMs: Math.min(leaseDueMs, dueMs) };
