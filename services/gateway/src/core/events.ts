import type { Digest, Status } from './resource.js';

/**
 * An event to write in addition to the status. The API server keeps events for an hour; the status shows only the
 * present.
 */
export interface EventDraft {
  /** Derived from the content, so that writing it again makes no second event. */
  readonly name: string;
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
}

/** Phases that need no event. */
const UNTOLD: ReadonlySet<unknown> = new Set(['Pending', 'Reviewing']);
const WARNINGS: ReadonlySet<unknown> = new Set([
  'Rejected',
  'Reverting',
  'Reverted',
  'Aborted',
  'Stalled',
  'DeletionFailed',
]);

interface NamedObject {
  readonly name: string;
  readonly uid: string;
}

/** The events for what is new in a status. */
export const eventsOf = (
  object: NamedObject,
  before: Status | undefined,
  now: Status,
  digest: Digest,
): readonly EventDraft[] => [...phaseEvents(object, before, now, digest), ...drainEvents(object, before, now, digest)];

/** A new phase, or the same phase of another change. */
function phaseEvents(
  object: NamedObject,
  before: Status | undefined,
  now: Status,
  digest: Digest,
): readonly EventDraft[] {
  const { phase, change = '', message = '' } = now;
  const isSame =
    before?.['phase'] === phase &&
    (before?.['change'] ?? '') === change &&
    (phase !== 'Rejected' || before?.['message'] === message);
  if (typeof phase !== 'string' || isSame || UNTOLD.has(phase)) return [];
  const { applied, nodes, progress } = now;
  const counts =
    typeof applied === 'number' && typeof nodes === 'number' && phase === 'Ready'
      ? `${applied} of ${nodes} nodes`
      : typeof progress === 'string'
        ? `${progress} nodes`
        : '';
  const words = [String(change), counts, String(message)].filter((part) => part !== '').join(': ');
  return [
    {
      name: nameOf(object, [phase, change, now.observedGeneration, message], digest),
      type: WARNINGS.has(phase) ? 'Warning' : 'Normal',
      reason: phase,
      message: words,
    },
  ];
}

/** Drains that have become blocked. The condition shows the progress. */
function drainEvents(
  object: NamedObject,
  before: Status | undefined,
  now: Status,
  digest: Digest,
): readonly EventDraft[] {
  const of = (status: Status | undefined) =>
    status?.conditions?.find(({ type, reason }) => type === 'Drained' && reason === 'DrainBlocked');
  const blocked = of(now);
  if (blocked === undefined || of(before) !== undefined) return [];
  return [
    {
      name: nameOf(object, ['Drained', blocked.reason, blocked.lastTransitionTime], digest),
      type: 'Warning',
      reason: blocked.reason,
      message: blocked.message,
    },
  ];
}

const nameOf = ({ name, uid }: NamedObject, what: readonly unknown[], digest: Digest): string =>
  `${name}.${digest([uid, ...what].join(' ')).slice(0, 16)}`;
