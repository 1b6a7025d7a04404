import type { ReportKind, Verdict } from '#libs/contracts';
import { boundedList, boundedReason } from './bounded.js';
import type { Dealt, Journal, Originals, Owed, OwnReport } from './journal.js';
import { nextBirth, type State } from './state.js';

/** What a report of one kind adds. */
type Extra = Partial<Pick<OwnReport, 'durationMs' | 'changed' | 'probe' | 'what'>>;

/** How a lease was dealt with, and what is on the node since. */
export interface Ending extends Dealt {
  readonly inForce: string;
  readonly sound: boolean;
  readonly originals: Originals;
  readonly extra: Extra;
  /** What the way back did not do beside the content. */
  readonly owed?: Owed;
}

const KIND_OF: Readonly<Record<Exclude<Verdict, ''>, ReportKind>> = {
  applied: 'applied',
  invalid: 'invalid',
  failed: 'failed',
  refused: 'announced',
};

/** The journal once a lease was dealt with: one write that ends the work and makes its report. */
export function deal(state: State, ending: Ending): Journal {
  const { lease, change, pool, verdict, reason, inForce, sound, originals, escalated } = ending;
  const journal: Journal = {
    ...state.journal,
    inForce,
    sound,
    originals,
    owed: ending.owed,
    madeIn: state.memory.bootId,
    work: undefined,
    lastDealt: { lease, change, pool, verdict, reason, ...(escalated === undefined ? {} : { escalated }) },
  };
  return withReport(state, journal, KIND_OF[verdict], ending.extra);
}

/** The journal with an announcement to send. */
export const announce = (state: State): Journal => withReport(state, state.journal, 'announced', {});
/** The journal with a report of what differs from the config in force; nothing does any more if the list is empty. */
export const drifted = (state: State, what: readonly string[]): Journal =>
  withReport(state, state.journal, 'drifted', { what });
/** The journal once the way back succeeded after all. */
export const mended = (state: State, originals: Originals): Journal =>
  withReport(
    state,
    { ...state.journal, originals, sound: true, owed: undefined, madeIn: state.memory.bootId },
    'announced',
    {},
  );

/** The journal once what the kernel had forgotten was made again; `wrong` if it could not be. */
export function remade(state: State, wrong: boolean): Journal {
  const journal: Journal = { ...state.journal, madeIn: state.memory.bootId };
  return wrong ? withReport(state, { ...journal, sound: false }, 'announced', {}) : journal;
}

/** The journal under an incarnation above every one that was seen. */
export function reborn(state: State): Journal {
  const { journal, memory } = state;
  const incarnation = Math.max(memory.status?.incarnation ?? 0, journal.incarnation) + 1;
  const birth = memory.birth === journal.birth ? nextBirth(memory.birth) : memory.birth;
  return withReport(state, { ...journal, incarnation, birth, seq: 0 }, 'announced', {});
}

function withReport(state: State, journal: Journal, kind: ReportKind, extra: Extra): Journal {
  const { self, memory } = state;
  const seq = journal.seq + 1;
  const dealt = journal.lastDealt;
  const announced = kind === 'announced';
  const report: OwnReport = {
    kind,
    v: 1,
    node: journal.node,
    incarnation: journal.incarnation,
    birth: journal.birth,
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
    what: boundedList(extra.what ?? []),
  };
  return { ...journal, seq, report };
}
