import { setTimeout } from 'node:timers/promises';

/** Resolves after a while, or at once when the signal aborts. */
export const pause = (ms: number, signal: AbortSignal): Promise<void> =>
  setTimeout(ms, undefined, { signal }).catch(() => undefined);

/** Resolves when the signal aborts, and keeps the process alive until then. */
export async function aborted(signal: AbortSignal): Promise<void> {
  while (!signal.aborted) await pause(3_600_000, signal);
}
