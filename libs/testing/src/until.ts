/**
 * How long to wait for a condition before a test fails: far longer than it should take, because machines are slow at
 * times.
 */
const GIVE_UP_MS = 120_000;
const POLL_MS = 10;

/** Waits until a condition holds and returns its value. Throws with `what` if it does not hold in time. */
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
    if (performance.now() > untilMs) throw new Error(`not within ${giveUpMs / 1_000} s: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
}
