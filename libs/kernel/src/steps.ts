/** Long work that can be interrupted after each step: whoever drives it decides how much of it is done at a time. */
export type Steps<T> = Generator<void, T, void>;

/** Drives work to its end. */
export function atOnce<T>(steps: Steps<T>): T {
  for (;;) {
    const next = steps.next();
    if (next.done === true) return next.value;
  }
}
