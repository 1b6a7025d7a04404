import { readFileSync } from 'node:fs';
import { uptime } from 'node:os';

/** How long to use the cheap clock, which stops while the machine sleeps. */
const TRUSTED_MS = 5;
let read = { monotonicMs: -TRUSTED_MS - 1, bootMs: 0 };

/** CLOCK_BOOTTIME in milliseconds. It continues while the machine sleeps, and starts over with each boot. */
export function bootClock(): number {
  const monotonicMs = performance.now();
  const sinceReadMs = monotonicMs - read.monotonicMs;
  if (sinceReadMs <= TRUSTED_MS) return read.bootMs + sinceReadMs;
  // Reading it from the kernel costs as much as deciding a step, so it is read rarely. It has a resolution of 10 ms,
  // and the clock must not go backwards.
  read = { monotonicMs, bootMs: Math.max(uptime() * 1_000, read.bootMs + sinceReadMs) };
  return read.bootMs;
}

/** Different after each boot. */
export function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return 'unknown';
  }
}
