import type { Action, LeaseKind, LeaseView, NodeReport, Verdict } from '#libs/contracts';

/**
 * What the applier knows across kill -9, reboots and years: one JSON document, replaced as a whole and with fsync. Who
 * reads it can tell what the node has, what was going on, and how to take it back.
 */
export interface Journal {
  readonly v: 1;
  readonly node: string;
  /** 0 until `status/<node>` was read for the first time. */
  readonly incarnation: number;
  readonly nonce: number;
  /** Of the last report that was made; counted before it is sent. */
  readonly seq: number;
  /** Hash of the config in force: the last that was confirmed. */
  readonly inForce: string;
  /** False while a rollback did not succeed: then the node is not what `inForce` says. */
  readonly sound: boolean;
  /** While the node is not sound: what the rollback has not done besides its content. */
  readonly outstanding?: Outstanding | undefined;
  readonly lastDealt: LeaseResult | undefined;
  /** The work that was started and not finished. */
  readonly work: Work | undefined;
  /** What was there before Sluice first managed it, by resource. */
  readonly originals: Originals;
  /** The boot in which what the kernel forgets was last made. */
  readonly madeIn?: string | undefined;
  /** The last report: repeated until `status/<node>` shows it. */
  readonly report: OwnReport | undefined;
}

/** A report without its time, which is added whenever it is sent. */
export type OwnReport = Omit<NodeReport, 'at'>;

/** The lease that was last finished, undone or refused. Never begun again. */
export interface LeaseResult {
  readonly lease: string;
  readonly change: string;
  readonly pool: string;
  readonly verdict: Exclude<Verdict, ''>;
  readonly reason: string;
  /**
   * It failed for want of a restart of the machine, which it had no leave for: what brings that, for the same config,
   * goes on with it.
   */
  readonly escalated?: (Escalation & { readonly to: string }) | undefined;
}

/**
 * Actions that a rollback still has to take on the node; a restart of the machine is done once it runs on another boot
 * than `bootId`.
 */
export interface Outstanding {
  readonly actions: readonly Action[];
  readonly bootId: string;
  /**
   * From then on the machine is restarted in their place, by the clock of that boot: nobody has given leave to it, and
   * the node is degraded: rollback failed.
   */
  readonly restartMs?: number | undefined;
}

/** An action that failed or took too long: the machine is restarted instead. */
export interface Escalation {
  readonly action: Action;
  readonly reason: string;
}

/** A restart of the machine that was asked for on this boot. By `untilMs` it is taken for one that does not come. */
export interface RebootRequest {
  readonly from: string;
  readonly untilMs: number;
}

export type Work = Forward | Confirming | RollingBack;

interface Intent {
  readonly lease: string;
  readonly change: string;
  readonly pool: string;
  readonly kind: LeaseKind;
  readonly from: string;
  readonly to: string;
  readonly actions: readonly Action[];
  readonly applyMs: number;
  /** The boot that the times belong to; they are milliseconds of its CLOCK_BOOTTIME. */
  readonly bootId: string;
  readonly readMs: number;
  /** From here on nothing is confirmed any more. The rest of the lease is for the rollback. */
  readonly rollBackAtMs: number;
  /** Names of the probes that passed before anything was done: only these can make a config known-bad. */
  readonly passedBefore: readonly string[];
  /** What on the node differs from `to`, as found before. */
  readonly changed: readonly string[];
  /** The change may cut the node off: nothing is done before a guard outside this process is set. */
  readonly guarded?: boolean | undefined;
  /** The boot on which the work was begun: what runs on another one was started with what stood there by then. */
  readonly begunOn?: string | undefined;
  /** Journaled before the machine is told, so that the next process knows why it did. */
  readonly reboot?: RebootRequest | undefined;
  readonly escalated?: Escalation | undefined;
}

export interface Forward extends Intent {
  readonly phase: 'forward';
}
/** The machine was restarted on the way forward: one more window to confirm. */
export interface Confirming extends Intent {
  readonly phase: 'confirming';
}
export interface RollingBack extends Intent {
  readonly phase: 'rolling-back';
  readonly failure: Failure;
  /** During the rollback; `escalated` is what happened before. */
  readonly rollbackEscalated?: Escalation | undefined;
}

/** Why a change is rolled back. `content`: it is the config's fault, on every node. */
export interface Failure {
  readonly fault: 'content' | 'node';
  readonly reason: string;
  /** The probe that passed before and failed after. */
  readonly probe: string;
  /** What would have continued with a restart of the machine, had the lease allowed one. */
  readonly escalated?: Escalation | undefined;
}

/** What a resource was before Sluice: made, read and put back by the backend of that kind. */
export interface Original {
  readonly kind: string;
  readonly was: Json;
  /** Resources that did not exist and are made on the way to this one: removed with it unless a config manages them. */
  readonly made: readonly string[];
}
export type Originals = Readonly<Record<string, Original>>;
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/**
 * The journal of an applier without state: what is on the node is original, and the config in force is the empty one.
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

/** Share of a lease after which the rollback begins. */
const FORWARD_SHARE = 2 / 3;
export const rollBackAt = (readMs: number, applyMs: number): number => readMs + applyMs * FORWARD_SHARE;

/** The intent to carry out a lease. */
export function forward(
  lease: LeaseView,
  readMs: number,
  bootId: string,
  found: Pick<Intent, 'passedBefore' | 'changed' | 'guarded' | 'escalated'>,
): Forward {
  return {
    phase: 'forward',
    lease: lease.lease,
    change: lease.change,
    pool: lease.pool,
    kind: lease.kind,
    from: lease.from,
    to: lease.hash,
    actions: lease.actions,
    applyMs: lease.applyMs,
    bootId,
    begunOn: bootId,
    readMs,
    rollBackAtMs: rollBackAt(readMs, lease.applyMs),
    ...found,
  };
}
