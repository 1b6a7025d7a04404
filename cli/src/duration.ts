import { UsageError } from './exit.js';

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const WHOLE = /^(\d+(\.\d+)?(ms|s|m|h|d))+$/;

/** Whether the text is a duration as in `90s` or `1h30m`. */
export const isDuration = (text: string): boolean => WHOLE.test(text);

/** Milliseconds of a duration; `what` names the flag in the refusal. */
export function parseDuration(text: string, what: string): number {
  if (!isDuration(text))
    throw new UsageError(`${what}: ${JSON.stringify(text)} is not a duration; write it as in 30s, 10m or 1h30m`);
  let sumMs = 0;
  for (const [, amount, , unit] of text.matchAll(/(\d+(\.\d+)?)(ms|s|m|h|d)/g))
    sumMs += Number(amount) * (UNIT_MS[unit as string] ?? 0);
  return sumMs;
}

/** The moment that `--since` names: a duration before now, or a time. */
export function parseSince(text: string, now: Date): Date {
  if (isDuration(text)) return new Date(now.getTime() - parseDuration(text, '--since'));
  const time = Date.parse(text);
  if (Number.isNaN(time))
    throw new UsageError(
      `--since: ${JSON.stringify(text)} is neither a duration (10m, 1h) nor a time (2026-11-21T10:00:00Z)`,
    );
  return new Date(time);
}

/** An age as kubectl writes it: 42s, 5m10s, 3h, 2d4h. */
export function age(since: string, now: Date): string {
  const ms = now.getTime() - Date.parse(since);
  return since === '' || Number.isNaN(ms) ? '' : span(Math.max(0, ms));
}

/** A span of time in its two greatest units. */
export function span(ms: number): string {
  const s = Math.floor(ms / 1_000);
  if (s < 120) return `${s}s`;
  if (s < 600) return two(Math.floor(s / 60), 'm', s % 60, 's');
  if (s < 7_200) return `${Math.floor(s / 60)}m`;
  if (s < 86_400) return two(Math.floor(s / 3_600), 'h', Math.floor((s % 3_600) / 60), 'm');
  return two(Math.floor(s / 86_400), 'd', Math.floor((s % 86_400) / 3_600), 'h');
}

const two = (a: number, unitA: string, b: number, unitB: string): string =>
  `${a}${unitA}${b === 0 ? '' : `${b}${unitB}`}`;
