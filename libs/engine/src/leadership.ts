import type { SnapshotInfo } from './snapshots.js';
import { assertNever } from './core.js';

/** How a copy gets its fold before it continues to read. */
export type FoldSource =
  /** From the newest usable snapshot, if there is one. */
  | 'snapshot'
  /** From the whole ledger, because the fold is invalid. A snapshot is used only if the ledger was trimmed. */
  | 'ledger'
  /** Keeps its fold, and starts to read the ledger again after it. */
  | 'reread'
  /** Keeps its fold, and continues to read. */
  | 'kept';

/** Why a copy has stopped deciding, and what it checks to see whether a person has fixed the cause. */
export type Halt =
  | { readonly cause: 'unreadable-fact'; readonly sequence: number; readonly fold: FoldSource }
  /** The ledger was trimmed, and this release can read no snapshot that covers the deleted facts. */
  | { readonly cause: 'trimmed'; readonly snapshots: readonly SnapshotInfo[] }
  | { readonly cause: 'views-ahead'; readonly view: ViewPosition }
  | { readonly cause: 'input-lost' };

/** The ledger sequence that a view shows. Without `key`: the newest value of the bucket. */
export interface ViewPosition {
  readonly bucket: string;
  readonly key: string | undefined;
  readonly ledger: number;
}

interface AnyStatus {
  /** How often this copy was elected; identifies its terms. */
  readonly term: number;
  /** Why its decisions keep failing, although it has not stopped. */
  readonly blocked?: string | undefined;
}

/** The leadership of one copy of a service. */
export type LeadershipStatus =
  /** It has not read the ledger to its end yet, so it cannot lead. */
  | (AnyStatus & { readonly phase: 'starting'; readonly fold: FoldSource; readonly elected: boolean })
  | (AnyStatus & { readonly phase: 'following' })
  /** Elected: it reads the ledger and corrects the views, and takes no inputs yet. */
  | (AnyStatus & { readonly phase: 'taking-over' })
  /** `behind`: the connection was lost, so messages may have been missed. */
  | (AnyStatus & { readonly phase: 'leading'; readonly behind: boolean })
  | (AnyStatus & { readonly phase: 'halted'; readonly reason: string; readonly halt: Halt; readonly elected: boolean })
  | (AnyStatus & { readonly phase: 'stopped' });

export type LeadershipEvent =
  | { readonly type: 'elected' | 'deposed' }
  /** The connection was lost or is there again. */
  | { readonly type: 'connection-changed' }
  | { readonly type: 'fold-started' }
  | { readonly type: 'caught-up' }
  | { readonly type: 'took-over' }
  /** The fold no longer matches the ledger. */
  | { readonly type: 'fold-lost' }
  | { readonly type: 'halted'; readonly reason: string; readonly halt: Halt }
  | { readonly type: 'freed' }
  | { readonly type: 'blocked'; readonly reason: string }
  | { readonly type: 'succeeded' }
  | { readonly type: 'stopped' };

export const BEGINNING: LeadershipStatus = { phase: 'starting', fold: 'snapshot', elected: false, term: 0 };

/** The status after an event; the same object if nothing changes. */
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

/** If only views or inputs do not match, the fold is still valid. */
function foldAfter(halt: Halt): FoldSource {
  if (halt.cause === 'unreadable-fact') return halt.fold;
  return halt.cause === 'trimmed' ? 'snapshot' : 'kept';
}

/** Whether the copy is taking over or leads. */
export const hasTerm = ({ phase }: LeadershipStatus): boolean => phase === 'taking-over' || phase === 'leading';

/** The term in which this copy takes inputs; undefined if it takes none. */
export const leadingTerm = (status: LeadershipStatus): number | undefined =>
  status.phase === 'leading' ? status.term : undefined;
