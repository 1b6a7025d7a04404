import {
  CUT,
  MOST_INCARNATION_JUMP,
  oneLine,
  restOfDrift,
  type Action,
  type FailingProbe,
  type ReportKind,
  type Verdict,
} from '#libs/contracts';
import {
  nameOf,
  type LeaseResult,
  type Journal,
  type LeavingResources,
  type Originals,
  type PendingActions,
  type OwnReport,
} from './journal.js';
import { leavingIn, leftoversOf } from './leaving.js';
import { nextNonce, type State } from './state.js';

/** The extra fields of a report. */
type Extra = Partial<Pick<OwnReport, 'durationMs' | 'changed' | 'probe' | 'differences' | 'failingProbes'>>;

/** How a lease ended, and what is on the node now. */
export interface LeaseEnd extends LeaseResult {
  readonly inForce: string;
  readonly sound: boolean;
  readonly originals: Originals;
  readonly extra: Extra;
  /** The kind of the report, if it says more than how the lease ended. */
  readonly kind?: ReportKind | undefined;
  /** The commands that ran, if the config was applied. */
  readonly ran?: readonly string[];
  /** The actions that the rollback could not take, or that have failed for long. */
  readonly outstanding?: PendingActions | undefined;
}

const KIND_OF: Readonly<Record<Exclude<Verdict, ''>, ReportKind>> = {
  applied: 'applied',
  invalid: 'invalid',
  failed: 'failed',
  unreachable: 'unreachable',
  refused: 'announced',
};

/** The journal after a lease: one write ends the work and creates the report. */
export function journalAfterLease(state: State, ending: LeaseEnd): Journal {
  const { verdict, reason, inForce, sound, originals, escalated, notUndone = [], untouched } = ending;
  const journal: Journal = {
    ...state.journal,
    inForce,
    sound,
    originals,
    ran: ending.ran ?? state.journal.ran,
    outstanding: ending.outstanding,
    had: verdict === 'applied' ? undefined : state.journal.had,
    madeIn: state.memory.bootId,
    work: undefined,
    lastDealt: {
      ...nameOf(ending),
      verdict,
      reason,
      ...(escalated === undefined ? {} : { escalated }),
      ...(notUndone.length === 0 ? {} : { notUndone }),
      ...(untouched === undefined ? {} : { untouched }),
    },
  };
  return withReport(state, journal, ending.kind ?? KIND_OF[verdict], ending.extra);
}

/** The journal with an announcement to send. */
export const announce = (state: State): Journal => withReport(state, state.journal, 'announced', {});
/** The journal with a report of drift from the config in force; an empty list reports that the drift is gone. */
export const drifted = (state: State, differences: readonly string[]): Journal =>
  withReport(state, state.journal, 'drifted', { differences });
/** The journal with a report of the probes of the config in force that fail; an empty list reports that all pass. */
export const probed = (state: State, failingProbes: readonly FailingProbe[]): Journal =>
  withReport(state, state.journal, 'probed', { failingProbes });
/** The journal after a retried rollback has succeeded, or all of it but actions that keep failing. */
export const repaired = (state: State, originals: Originals, outstanding?: PendingActions): Journal =>
  withReport(
    state,
    { ...state.journal, originals, sound: true, outstanding, madeIn: state.memory.bootId },
    'announced',
    {},
  );

/** The journal after lost links and routes were recreated; `wrong` if that failed. */
export function remade(state: State, wrong: boolean): Journal {
  const journal: Journal = { ...state.journal, madeIn: state.memory.bootId };
  return wrong ? withReport(state, { ...journal, sound: false }, 'announced', {}) : journal;
}

/** The journal after everything was lost: it is applied again, and then these actions are taken. */
export const lost = (
  { journal, memory: { bootId } }: State,
  actions: readonly Action[],
  until: Pick<PendingActions, 'degradedUntilMs'>,
): Journal => ({ ...journal, sound: false, madeIn: bootId, outstanding: { actions, bootId, ...until } });

/** Whether the services would refuse this incarnation: the node was removed, or the ledger is another. */
export const isTooHigh = ({ journal, memory }: State): boolean =>
  journal.incarnation > (memory.status?.incarnation ?? 0) + MOST_INCARNATION_JUMP;

/** The journal with an incarnation above every known one. */
export function reborn(state: State): Journal {
  const { journal, memory } = state;
  const lastIncarnation = memory.status?.incarnation ?? 0;
  const incarnation = (isTooHigh(state) ? lastIncarnation : Math.max(lastIncarnation, journal.incarnation)) + 1;
  const nonce = memory.nonce === journal.nonce ? nextNonce(memory.nonce) : memory.nonce;
  return withReport(state, { ...journal, incarnation, nonce, seq: 0, ...hadIn(state) }, 'announced', {});
}

/** What the node has confirmed and this journal does not know: its state folder is an older copy, or was lost. */
function hadIn({ journal, memory: { status }, settings }: State): Pick<Journal, 'had'> {
  if (status === undefined || status.incarnation < journal.incarnation) return {};
  const { hash } = status;
  return hash === '' || hash === journal.inForce || hash === settings.emptyHash ? {} : { had: hash };
}

/**
 * The first report after a boot leaves out these numbers. The disk may be an old copy that does not know the last
 * reports of the previous boot. If one of them arrives late, it counts as older.
 */
const SEQS_PER_BOOT = 1_000;

function withReport(state: State, journal: Journal, kind: ReportKind, extra: Extra): Journal {
  const { self, memory } = state;
  const leaving = leavingIn(state, journal);
  const isFirst = journal.report !== undefined && journal.report.bootId !== memory.bootId;
  const seq = journal.seq + (isFirst ? SEQS_PER_BOOT : 1);
  const dealt = journal.lastDealt;
  const announced = kind === 'announced';
  const report: OwnReport = {
    kind,
    v: 1,
    node: journal.node,
    incarnation: journal.incarnation,
    nonce: journal.nonce,
    seq,
    bootId: memory.bootId,
    hash: journal.inForce,
    lease: dealt?.lease ?? '',
    verdict: dealt?.verdict ?? '',
    reason: boundedReason(dealt?.reason ?? ''),
    restored: journal.sound,
    change: dealt?.change ?? '',
    pool: dealt?.pool ?? '',
    labels: announced ? { ...self.labels } : {},
    capabilities: announced ? [...self.capabilities] : [],
    fresh: announced && self.fresh && dealt === undefined,
    version: announced ? self.version : '',
    durationMs: 0,
    probe: '',
    step: '',
    needsRestart: dealt?.escalated !== undefined,
    ...extra,
    changed: boundedList(extra.changed ?? []),
    differences: boundedList(extra.differences ?? []),
    failingProbes: boundedProbes(extra.failingProbes ?? []),
    notUndone: boundedList(dealt?.notUndone ?? []),
    leftovers: boundedLeftovers(leaving),
    ...(dealt?.untouched === undefined ? {} : { untouched: dealt.untouched }),
    ...(memory.unavailable === undefined ? {} : { unavailable: memory.unavailable }),
  };
  return { ...journal, seq, report, leaving: Object.keys(leaving).length === 0 ? undefined : leaving };
}

/** Whether the target can be used, or what is left on it, differs from what the last report says. */
export function isUntold(state: State): boolean {
  const { report } = state.journal;
  if (report === undefined) return false;
  const leftovers = boundedLeftovers(leavingIn(state, state.journal));
  return (
    report.unavailable !== state.memory.unavailable ||
    JSON.stringify(report.leftovers ?? []) !== JSON.stringify(leftovers)
  );
}

/** A report must fit into a message and stay readable: texts are on one line, and longer parts are marked as cut. */
const MOST_ITEMS = 100;
/** Every report has them. */
const MOST_LEFTOVERS = 20;
const MOST_ITEM_CHARS = 256;
const MOST_REASON_CHARS = 4_096;

function cut(text: string, most: number): string {
  const line = oneLine(text);
  return line.length <= most ? line : `${oneLine(line.slice(0, most - 1))}${CUT}`;
}

/** A reason of at most 4,096 characters. */
export const boundedReason = (reason: string): string => cut(reason, MOST_REASON_CHARS);

/** Why a target cannot be used, in at most 256 characters. An absent reason would say that it can. */
export const boundedUnavailable = (reason: string): string => cut(reason, MOST_ITEM_CHARS) || 'it does not answer';

/** At most 100 items of at most 256 characters. The last item says how many more there are. */
export function boundedList(items: readonly string[], most = MOST_ITEMS): readonly string[] {
  if (items.length <= most) return items.map((item) => cut(item, MOST_ITEM_CHARS));
  const shown = items.slice(0, most - 1).map((item) => cut(item, MOST_ITEM_CHARS));
  return [...shown, restOfDrift(items.length - shown.length)];
}

const boundedLeftovers = (leaving: LeavingResources): readonly string[] =>
  boundedList(leftoversOf(leaving), MOST_LEFTOVERS);

/** At most 100 probes, with reasons of at most 256 characters. */
export const boundedProbes = (probes: readonly FailingProbe[]): readonly FailingProbe[] =>
  probes.slice(0, MOST_ITEMS).map(({ probe, reason }) => ({ probe, reason: cut(reason, MOST_ITEM_CHARS) }));
