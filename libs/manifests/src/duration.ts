/** The longest deadline: timers and the wire's 32-bit numbers end at about 24 and 49 days. */
export const MAX_DURATION_MS = 7 * 24 * 3_600_000;

const UNIT_MS: Readonly<Record<string, number>> = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1_000, ms: 1 };
const SUM = /^(\d+(\.\d+)?(ms|[smhd]))+$/;
/** The form in manifests: whole amounts, from hours down, each unit once. */
const MANIFEST_FORM = /^(\d{1,9}h)?(\d{1,9}m)?(\d{1,9}s)?(\d{1,9}ms)?$/;

/**
 * The milliseconds of any sum of amounts, as on a command line: `90s`, `1h30m`, `1.5h`, `2d`; undefined if it is
 * invalid.
 */
export function parseDuration(text: string): number | undefined {
  if (!SUM.test(text)) return undefined;
  return [...text.matchAll(/([\d.]+)(ms|[smhd])/g)].reduce(
    (sum, [, amount, unit]) => sum + Number(amount) * (UNIT_MS[unit as string] as number),
    0,
  );
}

/**
 * The milliseconds of a duration in a manifest, such as `5s` or `1h30m`; undefined if it is invalid, zero, or too long.
 */
export function durationMs(text: string): number | undefined {
  const ms = MANIFEST_FORM.test(text) ? parseDuration(text) : undefined;
  return ms !== undefined && ms > 0 && ms <= MAX_DURATION_MS ? ms : undefined;
}

/** A duration as people write it, to the millisecond: `1h30m`. */
export function durationText(ms: number): string {
  let rest = Math.round(ms);
  let text = '';
  for (const unit of ['h', 'm', 's', 'ms']) {
    const size = UNIT_MS[unit] as number;
    if (rest >= size) text += `${Math.floor(rest / size)}${unit}`;
    rest %= size;
  }
  return text === '' ? '0s' : text;
}

/** The approximate duration, as kubectl writes ages: `42s`, `5m10s`, `3h`, `2d4h`. */
export function roughDuration(ms: number): string {
  const s = Math.floor(ms / 1_000);
  if (s < 120) return `${s}s`;
  if (s < 600) return two(Math.floor(s / 60), 'm', s % 60, 's');
  if (s < 7_200) return `${Math.floor(s / 60)}m`;
  if (s < 86_400) return two(Math.floor(s / 3_600), 'h', Math.floor((s % 3_600) / 60), 'm');
  return two(Math.floor(s / 86_400), 'd', Math.floor((s % 86_400) / 3_600), 'h');
}

const two = (a: number, unitA: string, b: number, unitB: string): string =>
  `${a}${unitA}${b === 0 ? '' : `${b}${unitB}`}`;

/** How long one attempt of a probe may take if it does not say. */
export const PROBE_TIMEOUT_MS = 5_000;

/** The share of `applyTimeout` after which a node rolls back what it has not confirmed. */
export const CONFIRM_SHARE = 2 / 3;
