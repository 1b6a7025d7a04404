/** No deadline is longer: timers and the wire's 32-bit numbers end at some 24 and 49 days. */
export const MAX_DURATION_MS = 7 * 24 * 3_600_000;

/** The milliseconds of a duration such as `5s`, `2m`, `1h30m` or `500ms`; undefined when it is not one, is zero, or too long. */
export function durationMs(text: string): number | undefined {
  const match = DURATION.exec(text);
  if (match === null) return undefined;
  const [, hours, minutes, seconds, milliseconds] = match;
  const sum =
    Number(hours ?? 0) * 3_600_000 +
    Number(minutes ?? 0) * 60_000 +
    Number(seconds ?? 0) * 1_000 +
    Number(milliseconds ?? 0);
  return sum > 0 && sum <= MAX_DURATION_MS ? sum : undefined;
}

/** A duration as people write it: `1h30m`. */
export function durationText(ms: number): string {
  const whole = [
    ['h', 3_600_000],
    ['m', 60_000],
    ['s', 1_000],
    ['ms', 1],
  ] as const;
  let rest = Math.round(ms);
  let text = '';
  for (const [unit, size] of whole) {
    if (rest >= size) text += `${Math.floor(rest / size)}${unit}`;
    rest %= size;
  }
  return text === '' ? '0s' : text;
}

const DURATION = /^(?:(\d{1,9})h)?(?:(\d{1,9})m)?(?:(\d{1,9})s)?(?:(\d{1,9})ms)?$/;
