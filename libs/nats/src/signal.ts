import { backOffMs } from '#libs/engine';

/** Wakes one waiter. A signal without a waiter is kept. */
export class Signal {
  private isGiven = false;
  private wake: (() => void) | undefined;

  give(): void {
    this.isGiven = true;
    this.wake?.();
  }

  async wait(timeoutMs?: number): Promise<void> {
    if (!this.isGiven) {
      await new Promise<void>((resolve) => {
        const timer =
          timeoutMs === undefined ? undefined : setTimeout(resolve, Math.min(Math.max(timeoutMs, 0), 2 ** 31 - 1));
        this.wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
      this.wake = undefined;
    }
    this.isGiven = false;
  }
}

/** Resolves after this many milliseconds. The timer alone does not keep a process running. */
export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms).unref());

/** A pause that grows with the number of tries, up to `mostMs`, with jitter, so that many do not retry at once. */
export const growingMs = (tries: number, leastMs: number, mostMs: number): number =>
  backOffMs(tries, leastMs, mostMs, Math.random());

/** Runs `work` for each item, at most `width` at once. Fails at the first failure, once the others have ended. */
export async function pipelined<T>(items: Iterable<T>, width: number, work: (item: T) => Promise<void>): Promise<void> {
  const source = items[Symbol.iterator]();
  let failure: { readonly error: unknown } | undefined;
  const lane = async (): Promise<void> => {
    for (let next = source.next(); next.done !== true && failure === undefined; next = source.next()) {
      await work(next.value).catch((error: unknown) => (failure ??= { error }));
    }
  };
  await Promise.all(Array.from({ length: width }, lane));
  if (failure !== undefined) throw failure.error;
}
