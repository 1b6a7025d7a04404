import { readFileSync } from 'node:fs';
import { uptime } from 'node:os';

/** CLOCK_BOOTTIME, which goes on while the machine sleeps, and begins anew with each boot. */
export const bootClock = (): number => uptime() * 1_000;

/** Another one after each boot. */
export function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return 'unknown';
  }
}
