/** A point where long work may be interrupted. The caller decides how much to do at a time. */
export interface Pause {
  readonly do: 'pause';
}
export const PAUSE: Pause = { do: 'pause' };

/** Long work whose only effect is a pause now and then. */
export type Steps<T> = Generator<Pause, T, unknown>;

/** An effect of a program: data with a name. The environment carries it out and returns an answer. */
export interface Effect {
  readonly do: string;
}

/**
 * A program as a generator of effects. Production carries them out for real; the simulation carries them out in a
 * seeded world that may stop the program between any two.
 */
export type Program<E extends Effect, T = void> = Generator<E, T, unknown>;

/**
 * A port is an interface with a method for each effect: its argument is the effect, its result the answer. This type
 * turns it into effects as data, and answers by name.
 */
export type Effects<P> = { [K in keyof P & string]: { readonly do: K } & EffectFields<P[K]> }[keyof P & string];
export type Answers<P> = { [K in keyof P]: P[K] extends (args: never) => infer R ? R : never };
type EffectFields<M> = M extends (args: infer A) => unknown ? A : never;

/** One step of a program, with the type of its answer: `const node = yield* ask({ do: 'read-node' })`. */
export const asker = <P>() =>
  function* ask<K extends Effects<P>['do']>(
    effect: Effects<P> & { readonly do: K },
  ): Program<Effects<P>, Answers<P>[K]> {
    return (yield effect) as Answers<P>[K];
  };

/** The handlers of a port: they carry out each effect, at once or later. */
export type Handlers<P> = {
  readonly [K in keyof P & string]: (
    effect: { readonly do: K } & EffectFields<P[K]>,
  ) => Answers<P>[K] | PromiseLike<Answers<P>[K]>;
};

/** Runs a program to its end, synchronously. Effects without a handler get undefined as their answer. */
export function atOnce<E extends Effect, T>(
  program: Program<E, T>,
  handlers: { readonly [K in E['do']]?: (effect: Extract<E, { readonly do: K }>) => unknown } = {},
): T {
  const perform = handlers as unknown as Readonly<Record<string, (effect: E) => unknown>>;
  let next = program.next();
  while (next.done !== true) next = program.next(perform[next.value.do]?.(next.value));
  return next.value;
}

/** Runs a program asynchronously: `carry` carries out an effect, and answers or fails later, or never. */
export function drive<E extends Effect, T>(
  program: Program<E, T>,
  carry: (effect: E, answer: (value?: unknown) => void, fail: (error: Error) => void) => void,
  onEnd: (result: T) => void = () => undefined,
): void {
  const goOn = (next: IteratorResult<E, T>): void => {
    if (next.done === true) return onEnd(next.value);
    carry(
      next.value,
      (answer) => goOn(program.next(answer)),
      (error) => goOn(program.throw(error)),
    );
  };
  goOn(program.next());
}

/** How long to wait before the next try: longer each time, up to `mostMs`, with a random `share` (0 to 1) as jitter. */
export function backOffMs(tries: number, leastMs: number, mostMs: number, share: number): number {
  return (Math.min(mostMs, leastMs * 2 ** tries) * (1 + share)) / 2;
}
