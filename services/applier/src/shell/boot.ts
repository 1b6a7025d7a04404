import { readFileSync } from 'node:fs';
import { uptime } from 'node:os';

/** How long the cheap clock, which stands still while the machine sleeps, is trusted. */
const TRUSTED_MS = 5;
let read = { monotonicMs: -TRUSTED_MS - 1, bootMs: 0 };

/** CLOCK_BOOTTIME in milliseconds, which goes on while the machine sleeps, and starts over with each boot. */
export function bootClock(): number {
  const monotonicMs = performance.now();
  const sinceReadMs = monotonicMs - read.monotonicMs;
  if (sinceReadMs <= TRUSTED_MS) return read.bootMs + sinceReadMs;
  // The kernel is asked seldom, for that costs as much as deciding a step; it says hundredths of a second, and no clock
  // may roll back.
  read = { monotonicMs, bootMs: Math.max(uptime() * 1_000, read.bootMs + sinceReadMs) };
  return read.bootMs;
}

/** Another one after each boot. */
export function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return 'unknown';
  }
}
