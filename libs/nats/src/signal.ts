import { backOffMs } from '#libs/engine';

/** Wakes one waiter; a signal given while nobody waits is kept. */
export class Signal {
  private given = false;
  private wake: (() => void) | undefined;

  give(): void {
    this.given = true;
    this.wake?.();
  }

  async wait(timeoutMs?: number): Promise<void> {
    if (!this.given) {
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
    this.given = false;
  }
}

/** Resolves after so many milliseconds; the timer alone keeps no process alive. */
export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms).unref());

/** A distance that grows with the number of tries, up to `mostMs`, and is spread so that many do not come at once. */
export const growingMs = (tries: number, leastMs: number, mostMs: number): number =>
  backOffMs(tries, leastMs, mostMs, Math.random());

/** Runs `work` for each item, at most `width` at once. Ends at the first failure, when the others have ended. */
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
