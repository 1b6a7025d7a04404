import type { Action, FailingProbe, LeaseKind, LeaseView, NodeReport, Verdict } from '#libs/contracts';
import { CONFIRM_SHARE } from '#libs/manifests/lean';

/**
 * What the applier remembers across kill -9 and reboots: one JSON document that is replaced as a whole, with fsync. It
 * says which config the node has, what was in progress, and how to roll it back.
 */
export interface Journal {
  readonly v: 1;
  readonly node: string;
  /** 0 until `status/<node>` was read for the first time. */
  readonly incarnation: number;
  readonly nonce: number;
  /** The number of the last report. It is increased before the report is sent. */
  readonly seq: number;
  /** Hash of the config in force, which is the last confirmed one. */
  readonly inForce: string;
  /** False after a failed rollback: the node does not fully have the config `inForce`. */
  readonly sound: boolean;
  /**
   * The actions that the last rollback could not take. The node is degraded until they are done or, if all else is
   * restored, `failing`.
   */
  readonly outstanding?: PendingActions | undefined;
  readonly lastDealt: LeaseResult | undefined;
  /** The commands that ran when the config in force was applied, as `Exec/<name>`. */
  readonly ran?: readonly string[] | undefined;
  /** The unfinished work. */
  readonly work: Work | undefined;
  /** What existed before Sluice first managed it, by resource. */
  readonly originals: Originals;
  /** What Sluice has deleted and was still there when that was last looked at. */
  readonly leaving?: LeavingResources | undefined;
  /**
   * The hash of the config that this node had confirmed, according to its status, when this journal turned out to be
   * older, or new: what that config put on the node is not an original. Until the next change is applied.
   */
  readonly had?: string | undefined;
  /** The boot in which the links and routes were last created. */
  readonly madeIn?: string | undefined;
  /** The last report: repeated until `status/<node>` shows it. */
  readonly report: OwnReport | undefined;
}

/** A report without its time, which is added each time it is sent. */
export type OwnReport = Omit<NodeReport, 'at'>;

/** Identifies a lease, and where it was read. */
export interface LeaseName {
  readonly lease: string;
  readonly change: string;
  readonly pool: string;
  /** The ledger sequence that its view showed; undefined in journals of earlier releases. */
  readonly ledger?: number | undefined;
}

/** The last lease that was finished, rolled back or refused. It never starts again. */
export interface LeaseResult extends LeaseName {
  readonly verdict: Exclude<Verdict, ''>;
  readonly reason: string;
  /**
   * Set if the lease needed a reboot that it did not allow. The next lease for the same config that allows a reboot
   * continues with it.
   */
  readonly escalated?: (Escalation & { readonly to: string }) | undefined;
  /** The commands that a rollback could not undo. */
  readonly notUndone?: readonly string[];
  /** The lease ended before anything on the node was changed. */
  readonly untouched?: true | undefined;
}

/**
 * Actions that a rollback still has to take. A reboot is done once the boot id differs from `bootId`.
 */
export interface PendingActions {
  readonly actions: readonly Action[];
  readonly bootId: string;
  /**
   * From this time on (by the clock of that boot) the machine reboots instead, without a lease, because the node is
   * degraded.
   */
  readonly restartMs?: number | undefined;
  /** A node that cannot reboot stays degraded because of these actions until then, by the clock of that boot. */
  readonly degradedUntilMs?: number | undefined;
  /**
   * They have failed for that long, and everything else is restored: the node is unhealthy, and they are tried again at
   * growing intervals.
   */
  readonly failing?: readonly FailingProbe[] | undefined;
  /** How often the machine has started before the content was restored, so that it needs one more reboot. */
  readonly startedTooEarly?: number | undefined;
}

/** An action that failed or took too long, so that the machine reboots instead. */
export interface Escalation {
  readonly action: Action;
  readonly reason: string;
}

/** A reboot that was requested on this boot. After `untilMs` it counts as failed. */
export interface RebootRequest {
  readonly from: string;
  readonly untilMs: number;
}

export type Work = ForwardWork | ConfirmationWork | RollbackWork;

interface Intent extends LeaseName {
  readonly kind: LeaseKind;
  readonly from: string;
  readonly to: string;
  readonly actions: readonly Action[];
  readonly applyMs: number;
  /** The boot that the times belong to. They are milliseconds of its CLOCK_BOOTTIME. */
  readonly bootId: string;
  readonly readMs: number;
  /** After this time nothing is confirmed. The rest of the lease is for the rollback. */
  readonly rollBackAtMs: number;
  readonly probes: ProbesBefore;
  /** The commands of `to` that ran, or may have run before a kill, as `Exec/<name>`. Only `undo` can undo them. */
  readonly ran: readonly string[];
  /** In a rollback lease: the commands that ran when `from` was applied, and that `to` does not have. */
  readonly toUndo: readonly string[];
  /** How the node differed from `to` before the change. */
  readonly changed: readonly string[];
  /** Resources of the config in force that the change touches, as they were before it. */
  readonly before?: Originals | undefined;
  readonly scope: Scope;
  /** Units that neither ran nor had failed before the change, which may start them. */
  readonly idleUnits?: readonly string[];
  /** The boot on which the work began. A later boot has started with the new content. */
  readonly begunOn?: string | undefined;
  /** Journaled before the reboot command runs, so that the next process knows why the machine rebooted. */
  readonly reboot?: RebootRequest | undefined;
  readonly escalated?: Escalation | undefined;
  /** The applier has requested the restart of its own unit. The process that goes on is the one that this started. */
  readonly restartsApplier?: true | undefined;
}

/**
 * What a lease changes. It neither writes nor removes anything else, and cannot fail because of it: the owner of a
 * folder can put something in the way at any time, and could so stop every change of the node. That is drift instead.
 */
export interface Scope {
  /**
   * The resources whose entries differ between the config in force and the new one, and those that have drifted and are
   * repaired. Undefined if all of them count, because the node is degraded. An entry without resources counts by its
   * id.
   */
  readonly touched: readonly string[] | undefined;
  /** Resources that stay as they are although the node differs from the config, or cannot be read there, and why. */
  readonly aside: Readonly<Record<string, string>>;
}

/**
 * Each probe of a change, by name. One that `passed` before the change, one that is `required` because it is new or
 * changed, and one that is `unknown` because its time ran out must pass after it. One that `failed` may fail again.
 */
export type ProbesBefore = Readonly<Record<string, 'passed' | 'required' | 'unknown' | 'failed'>>;

export interface ForwardWork extends Intent {
  readonly phase: 'forward';
}
/** The machine rebooted during a change: it has one new period in which to confirm. */
export interface ConfirmationWork extends Intent {
  readonly phase: 'confirming';
}
export interface RollbackWork extends Intent {
  readonly phase: 'rolling-back';
  readonly failure: Failure;
  /** An escalation during the rollback; `escalated` is the one during the change. */
  readonly rollbackEscalated?: Escalation | undefined;
  /** How many processes have begun to undo a command, as `Exec/<name>`. An undo may end the applier. */
  readonly undosBegun?: Readonly<Record<string, number>> | undefined;
}

/**
 * Whether the work may continue before the journal says so. After a kill, the next process reaches the same result: it
 * continues from what is on disk, finds the same failure or the deadline, and rolls back. This does not apply to the
 * start and the end of work, nor to a reboot, which would be requested again and again.
 */
export const mayBeWrittenLater = (now: Work | undefined, next: Work | undefined): boolean =>
  now !== undefined && next !== undefined && (next.reboot === undefined || next.reboot === now.reboot);

/**
 * Why a change is rolled back. `content`: the config is to blame, and would fail on every node. `unreachable`: the
 * target, for which this applier works from elsewhere, does not answer.
 */
export interface Failure {
  readonly fault: 'content' | 'node' | 'unreachable';
  readonly reason: string;
  /** The probe that failed after the change. */
  readonly probe: string;
  /** The action that would have escalated to a reboot if the lease had allowed one. */
  readonly escalated?: Escalation | undefined;
}

export const failureOf = ({ fault, reason }: Pick<Failure, 'fault' | 'reason'>): Failure => ({
  fault,
  reason,
  probe: '',
});

/** How a lease ends for this reason. */
export const verdictOf = ({ fault }: Pick<Failure, 'fault'>): 'invalid' | 'failed' | 'unreachable' =>
  fault === 'content' ? 'invalid' : fault === 'node' ? 'failed' : 'unreachable';

/** The applier hung under this lease, and its guard killed it. The lease is not continued. */
export interface Hang extends Pick<Failure, 'fault' | 'reason'> {
  readonly lease: string;
}

/** A resource as it was before Sluice. The backend of its kind saves, reads and restores it. */
export interface Original {
  readonly kind: string;
  readonly was: Json;
  /**
   * Resources that were created for this one, such as parent folders. They are removed with it unless a config manages
   * them.
   */
  readonly made: readonly string[];
  /** It is what Sluice had put there, so what was there before is not known. */
  readonly isOwn?: true;
  /** `was` contains only what the entry of the resource does not say. The entry is applied first. */
  readonly entryFirst?: boolean;
  /** The entry that manages it, as `Kind/name`. Only of kinds that other programs carry out. */
  readonly of?: string;
}
/** A resource that no config manages any more, and why it is still there. */
export interface Leaving extends Original {
  readonly how: string;
}
export type LeavingResources = Readonly<Record<string, Leaving>>;
export type Originals = Readonly<Record<string, Original>>;
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/**
 * The journal of an applier without state: everything on the node is original, and the config in force is empty.
 */
export function newJournal(node: string, emptyHash: string): Journal {
  return {
    v: 1,
    node,
    incarnation: 0,
    nonce: 0,
    seq: 0,
    inForce: emptyHash,
    sound: true,
    lastDealt: undefined,
    work: undefined,
    originals: {},
    report: undefined,
  };
}

/** When the rollback begins. */
export const rollBackAt = (readMs: number, applyMs: number): number => readMs + applyMs * CONFIRM_SHARE;

export const nameOf = ({ lease, change, pool, ledger }: LeaseName): LeaseName => ({ lease, change, pool, ledger });

/** The intent to carry out a lease. */
export function forward(
  lease: LeaseView,
  readMs: number,
  bootId: string,
  intent: Pick<Intent, 'probes' | 'toUndo' | 'changed' | 'before' | 'scope' | 'idleUnits' | 'escalated'>,
): ForwardWork {
  return {
    phase: 'forward',
    ...nameOf(lease),
    kind: lease.kind,
    from: lease.from,
    to: lease.hash,
    actions: lease.actions,
    applyMs: lease.applyMs,
    bootId,
    begunOn: bootId,
    readMs,
    rollBackAtMs: rollBackAt(readMs, lease.applyMs),
    ran: [],
    ...intent,
  };
}
