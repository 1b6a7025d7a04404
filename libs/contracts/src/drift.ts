/**
 * Whether a reported difference, `<place>: <how>`, is about this place. Reports cut long texts: such a difference may
 * be about several places.
 */
export const isDriftOf = (difference: string, place: string): boolean =>
  difference.startsWith(`${place}: `) ||
  (difference.endsWith(CUT) && `${place}: `.startsWith(difference.slice(0, -CUT.length)));

/**
 * Whether who corrects this difference overwrites what somebody made. Nothing is overwritten where a unit does not run
 * as it should, the check of an Exec fails, the kernel was not rebooted, or nothing could be read.
 */
export const isOverwritten = (difference: string): boolean => !NOT_MADE.test(difference);
const NOT_MADE = /^Exec\/|: (cannot be read: |the kernel runs without |is \S+ instead of (started|stopped)$)/;

/** Whether a reported difference stands for several that are not listed: they may be about any place. */
export const isRestOfDrift = (difference: string): boolean => /^… and \d+ more$/.test(difference);

/** Stands at the end of a list for so many that a report does not list. */
export const restOfDrift = (count: number): string => `${CUT} and ${count} more`;

/** Stands for the rest of a text that is too long. */
export const CUT = '…';
