import { durationText, MAX_DURATION_MS, parseDuration } from '#libs/manifests/lean';
import { UsageError } from '../output/exit.js';

/**
 * The milliseconds of a flag's duration, up to the longest one that a timer can wait; undefined if the flag is not
 * given.
 */
export function durationOf<T extends string | undefined>(text: T, flag: string, leastMs = 0): number | (T & undefined) {
  if (text === undefined) return undefined as T & undefined;
  const ms = parseDuration(text);
  if (ms === undefined)
    throw new UsageError(`${flag}: ${JSON.stringify(text)} is not a duration; use a value like 30s, 10m or 1h30m`);
  if (ms < leastMs || ms > MAX_DURATION_MS)
    throw new UsageError(`${flag}: ${text} is too ${ms < leastMs ? 'short' : 'long'}: ${rangeText(leastMs)}`);
  return ms;
}

const rangeText = (leastMs: number): string =>
  `use ${leastMs === 0 ? 'at most' : `${durationText(leastMs)} to`} ${durationText(MAX_DURATION_MS)}`;

/** The time that `--since` names: a duration before now, or a time. */
export function parseSince(text: string, now: Date): Date {
  const ms = parseDuration(text);
  const time = new Date(ms === undefined ? text : now.getTime() - ms);
  if (Number.isNaN(time.getTime()))
    throw new UsageError(
      `--since: ${JSON.stringify(text)} is neither a duration (10m, 1h) nor a time (2026-11-21T10:00:00Z)`,
    );
  return time;
}
