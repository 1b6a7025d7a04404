import type { SnapshotInfo } from './snapshots.js';
import { assertNever } from './core.js';

/** How a copy comes to its fold before it reads on. */
export type FoldSource =
  /** The newest usable snapshot, where there is one. */
  | 'snapshot'
  /** The whole ledger, because what was folded is void: a snapshot only where the ledger was trimmed. */
  | 'ledger'
  /** What it has, with a new reading of the ledger behind it. */
  | 'reread'
  /** What it has, and the reading goes on. */
  | 'kept';

/** Why a copy decides nothing until a person has put something right; what it looks at to see that they have. */
export type Halt =
  | { readonly cause: 'unreadable-fact'; readonly sequence: number; readonly fold: FoldSource }
  /** The ledger was trimmed, and no snapshot that this release can read reaches over it. */
  | { readonly cause: 'trimmed'; readonly snapshots: readonly SnapshotInfo[] }
  | { readonly cause: 'views-ahead'; readonly view: ViewPosition }
  | { readonly cause: 'input-lost' };

/** A view, or the newest of a bucket where `key` is undefined, and the ledger's sequence that it shows. */
export interface ViewPosition {
  readonly bucket: string;
  readonly key: string | undefined;
  readonly ledger: number;
}

interface Any {
  /** How often this copy was elected: names its terms. */
  readonly term: number;
  /** Why nothing comes of what it decides, though it has not stopped: the same failure again and again. */
  readonly blocked?: string | undefined;
}

/** What one copy of a service is doing about leading. */
export type LeadershipStatus =
  /** It has not read the ledger to its end yet, and would be of no use. */
  | (Any & { readonly phase: 'starting'; readonly fold: FoldSource; readonly elected: boolean })
  | (Any & { readonly phase: 'following' })
  /** Elected: it reads all and puts the views right, and takes no inputs yet. */
  | (Any & { readonly phase: 'taking-over' })
  /** `behind` after the connection was lost: what came meanwhile may not have been heard. */
  | (Any & { readonly phase: 'leading'; readonly behind: boolean })
  | (Any & { readonly phase: 'halted'; readonly reason: string; readonly halt: Halt; readonly elected: boolean })
  | (Any & { readonly phase: 'stopped' });

export type LeadershipEvent =
  | { readonly type: 'elected' | 'deposed' }
  /** The connection was lost or is there again. */
  | { readonly type: 'connection-changed' }
  | { readonly type: 'fold-started' }
  | { readonly type: 'caught-up' }
  | { readonly type: 'took-over' }
  /** What was folded no longer leads on to the ledger. */
  | { readonly type: 'fold-lost' }
  | { readonly type: 'halted'; readonly reason: string; readonly halt: Halt }
  | { readonly type: 'freed' }
  | { readonly type: 'blocked'; readonly reason: string }
  | { readonly type: 'succeeded' }
  | { readonly type: 'stopped' };

export const BEGINNING: LeadershipStatus = { phase: 'starting', fold: 'snapshot', elected: false, term: 0 };

/** What becomes of a status by an event; the same object where nothing does. */
export function transition(status: LeadershipStatus, event: LeadershipEvent): LeadershipStatus {
  const { term, blocked } = status;
  const any = blocked === undefined ? { term } : { term, blocked };
  if (status.phase === 'stopped') return status;
  switch (event.type) {
    case 'elected':
      if (isElected(status)) return status;
      if (status.phase === 'following') return { ...any, phase: 'taking-over', term: term + 1 };
      return { ...(status as LeadershipStatus & { phase: 'starting' | 'halted' }), term: term + 1, elected: true };
    case 'deposed':
      if (!isElected(status)) return status;
      if (status.phase === 'starting' || status.phase === 'halted') return { ...status, elected: false };
      return status.phase === 'leading' && status.behind
        ? { ...any, phase: 'starting', fold: 'kept', elected: false }
        : { ...any, phase: 'following' };
    case 'connection-changed':
      if (status.phase === 'leading') return status.behind ? status : { ...status, behind: true };
      return status.phase === 'following' || status.phase === 'taking-over'
        ? { ...any, phase: 'starting', fold: 'kept', elected: isElected(status) }
        : status;
    case 'fold-started':
      return status.phase === 'starting' ? { ...status, fold: 'kept' } : status;
    case 'caught-up':
      if (status.phase === 'leading') return status.behind ? { ...status, behind: false } : status;
      return status.phase === 'starting' && status.fold === 'kept'
        ? { ...any, phase: status.elected ? 'taking-over' : 'following' }
        : status;
    case 'took-over':
      return status.phase === 'taking-over' ? { ...any, phase: 'leading', behind: false } : status;
    case 'fold-lost':
      return { ...any, phase: 'starting', fold: 'ledger', elected: isElected(status) };
    case 'halted':
      return { ...any, phase: 'halted', reason: event.reason, halt: event.halt, elected: isElected(status) };
    case 'freed':
      return status.phase === 'halted'
        ? { ...any, phase: 'starting', fold: foldAfter(status.halt), elected: status.elected }
        : status;
    case 'blocked':
      return blocked === event.reason ? status : { ...status, blocked: event.reason };
    case 'succeeded':
      return blocked === undefined ? status : { ...status, blocked: undefined };
    case 'stopped':
      return { term, phase: 'stopped' };
    default:
      return assertNever(event);
  }
}

function isElected(status: LeadershipStatus): boolean {
  if (status.phase === 'starting' || status.phase === 'halted') return status.elected;
  return hasTerm(status);
}

/** A mismatch of views or inputs says nothing against what was folded. */
function foldAfter(halt: Halt): FoldSource {
  if (halt.cause === 'unreadable-fact') return halt.fold;
  return halt.cause === 'trimmed' ? 'snapshot' : 'kept';
}

/** Whether it takes over or leads. */
export const hasTerm = ({ phase }: LeadershipStatus): boolean => phase === 'taking-over' || phase === 'leading';

/** The term in which this copy takes inputs; undefined while it takes none. */
export const leadingTerm = (status: LeadershipStatus): number | undefined =>
  status.phase === 'leading' ? status.term : undefined;
