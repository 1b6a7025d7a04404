import { Refused } from './ports.js';

const DURATION = /^(?:(\d{1,9})h)?(?:(\d{1,9})m)?(?:(\d{1,9})s)?(?:(\d{1,9})ms)?$/;

/** Milliseconds of a duration such as `5s` or `1m30s`. Throws Refused when it is none. */
export function durationMs(value: unknown, otherwiseMs: number): number {
  if (value === undefined) return otherwiseMs;
  const match = typeof value === 'string' ? DURATION.exec(value) : null;
  const [hours, minutes, seconds, ms] = (match ?? []).slice(1).map((text) => Number(text ?? 0));
  const sum = (hours ?? 0) * 3_600_000 + (minutes ?? 0) * 60_000 + (seconds ?? 0) * 1_000 + (ms ?? 0);
  if (sum <= 0) throw new Refused('content', `${JSON.stringify(value)} is not a duration such as 5s`);
  return sum;
}
