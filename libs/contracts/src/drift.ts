import { oneLine } from './one-line.js';

/**
 * Whether a reported difference, `<place>: <how>`, is about this place. Reports cut long texts: such a difference may
 * be about several places.
 */
export function isDriftOf(difference: string, place: string): boolean {
  const start = `${oneLine(place)}: `;
  return (
    difference.startsWith(start) || (difference.endsWith(CUT) && start.startsWith(difference.slice(0, -CUT.length)))
  );
}

/**
 * Whether correcting this difference overwrites a manual change. It does not if a unit does not run as it should, the
 * check of an Exec fails, the kernel was not rebooted, or nothing could be read.
 */
export const isOverwritten = (difference: string): boolean => !NOT_MADE.test(difference.split(REFUSED)[0] ?? '');
const NOT_MADE = /^Exec\/|: (cannot be read: |the kernel runs without |is \S+ instead of (started|stopped)$)/;

/** A difference that the node refuses to correct, because of what is in the way there. */
export const refusedDrift = (difference: string, reason: string): string => `${difference}${REFUSED}${reason}`;

/** Whether the node refuses to correct this difference. Then neither a change nor a repair overwrites it. */
export const isRefusedDrift = (difference: string): boolean => difference.includes(REFUSED);
const REFUSED = ', and cannot be corrected: ';

/** The drift that a lease corrects. */
export const correctedDrift = (differences: readonly string[]): readonly string[] =>
  differences.filter((difference) => !isRefusedDrift(difference));

/** What a pool does about drift. */
export type DriftSetting = 'report' | 'overwrite' | 'repair';

/**
 * Whether a node gets no config but that of a rollback, because it would overwrite drift. A degraded node differs
 * because its rollback failed, and any lease may repair that.
 */
export const isDriftKept = (
  setting: DriftSetting,
  { differences, restored }: { readonly differences: readonly string[]; readonly restored: boolean },
): boolean => setting === 'report' && restored && differences.some(isOverwritten);

/** What happens next to the drift of a node whose pool has this setting. */
export function driftOutlook(setting: DriftSetting, differences: readonly string[]): string {
  const refused = differences.filter(isRefusedDrift);
  if (refused.length === 0) return outlookOf(setting, differences);
  const what =
    refused.length === differences.length ? 'the node cannot correct it' : 'the node cannot correct all of it';
  const rest = setting === 'report' ? differences : correctedDrift(differences);
  const outlook = rest.length === 0 ? [] : [outlookOf(setting, rest)];
  return [...outlook, `${what}: undo it on the node`].join('; ');
}

function outlookOf(setting: DriftSetting, differences: readonly string[]): string {
  switch (setting) {
    case 'overwrite':
      return 'the next change of the node overwrites it';
    case 'repair':
      return 'it is repaired within the budget of the pool';
    case 'report':
      if (!differences.some(isOverwritten)) return 'it is only reported';
      return correctedDrift(differences).length === 0
        ? 'changes are deferred until it is undone'
        : 'changes are deferred until it is undone, or the pool has drift: overwrite';
  }
}

/** Whether this place could not be compared, for example because its file system does not answer. */
export const isUnread = (difference: string): boolean => difference.includes(': cannot be read: ');

/** Whether a reported difference stands for several that are not listed, which may be about any place. */
export const isRestOfDrift = (difference: string): boolean => /^… and \d+ more$/.test(difference);

/** Ends a list. Stands for the differences that a report does not list. */
export const restOfDrift = (count: number): string => `${CUT} and ${count} more`;

/** Stands for the rest of a text that is too long. */
export const CUT = '…';
