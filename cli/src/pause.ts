/** Resolves after a while, or at once when the signal aborts. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener('abort', end);
    if (signal.aborted) end();
  });
}

/** Resolves when the signal aborts, and keeps the process alive until then. */
export async function aborted(signal: AbortSignal): Promise<void> {
  while (!signal.aborted) await pause(3_600_000, signal);
}
