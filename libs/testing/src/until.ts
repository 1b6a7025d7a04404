/**
 * How long a condition may take before a test gives up: far longer than it ever takes, as machines are slow at times.
 */
const GIVE_UP_MS = 120_000;
const POLL_MS = 10;

/** Waits until a condition holds and returns what it gave; throws with `what` when it never does. */
export async function until<T>(
  condition: () => T | Promise<T>,
  what = 'the condition',
  giveUpMs = GIVE_UP_MS,
  pollMs = POLL_MS,
): Promise<NonNullable<T>> {
  const untilMs = performance.now() + giveUpMs;
  for (;;) {
    const result = await condition();
    if (result !== undefined && result !== null && result !== false) return result as NonNullable<T>;
    if (performance.now() > untilMs) throw new Error(`${what} did not come true in ${giveUpMs / 1_000} s`);
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
}
