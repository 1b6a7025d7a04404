import { parseDuration } from '#libs/manifests/lean';
import { UsageError } from '../output/exit.js';

/** Whether the text is a duration such as `90s` or `1h30m`. */
export const isDuration = (text: string): boolean => parseDuration(text) !== undefined;

/** The milliseconds of a flag's duration; undefined when the flag is not given. */
export function durationOf<T extends string | undefined>(text: T, flag: string): number | (T & undefined) {
  if (text === undefined) return undefined as T & undefined;
  const ms = parseDuration(text);
  if (ms === undefined)
    throw new UsageError(`${flag}: ${JSON.stringify(text)} is not a duration; use a value like 30s, 10m or 1h30m`);
  return ms;
}

/** The moment that `--since` names: a duration before now, or a time. */
export function parseSince(text: string, now: Date): Date {
  const ms = parseDuration(text);
  const time = ms === undefined ? Date.parse(text) : now.getTime() - ms;
  if (Number.isNaN(time))
    throw new UsageError(
      `--since: ${JSON.stringify(text)} is neither a duration (10m, 1h) nor a time (2026-11-21T10:00:00Z)`,
    );
  return new Date(time);
}
