/** A place where long work may be interrupted: the caller decides how much is done at a time. */
export interface Pause {
  readonly do: 'pause';
}
export const PAUSE: Pause = { do: 'pause' };

/** Long work that asks for nothing but a pause now and then. */
export type Steps<T> = Generator<Pause, T, unknown>;

/** What a program asks of its world: data with a name, which the world carries out and answers. */
export interface Effect {
  readonly do: string;
}

/**
 * A decision that learns and acts on its way, as a generator of effects: production carries them out for real, the
 * simulation in a seeded world that may stop it between any two.
 */
export type Program<E extends Effect, T = void> = Generator<E, T, unknown>;

/**
 * A port is an interface: a method for each effect, from what is asked to what the world answers. These are its effects
 * as data, and the answers by their names.
 */
export type Effects<P> = { [K in keyof P & string]: { readonly do: K } & Asked<P[K]> }[keyof P & string];
export type Answers<P> = { [K in keyof P]: P[K] extends (asked: never) => infer R ? R : never };
type Asked<M> = M extends (asked: infer A) => unknown ? A : never;

/** One step of a program, with the type of its answer: `const node = yield* ask({ do: 'read-node' })`. */
export const asker = <P>() =>
  function* ask<K extends Effects<P>['do']>(
    effect: Effects<P> & { readonly do: K },
  ): Program<Effects<P>, Answers<P>[K]> {
    return (yield effect) as Answers<P>[K];
  };

/** What a world provides for a port: something that carries out each effect, at once or later. */
export type Handlers<P> = {
  readonly [K in keyof P & string]: (
    effect: { readonly do: K } & Asked<P[K]>,
  ) => Answers<P>[K] | PromiseLike<Answers<P>[K]>;
};

/** Runs a program to its end where nothing takes time; what no handler answers is answered with nothing. */
export function atOnce<E extends Effect, T>(
  program: Program<E, T>,
  handlers: { readonly [K in E['do']]?: (effect: Extract<E, { readonly do: K }>) => unknown } = {},
): T {
  const perform = handlers as unknown as Readonly<Record<string, (effect: E) => unknown>>;
  let next = program.next();
  while (next.done !== true) next = program.next(perform[next.value.do]?.(next.value));
  return next.value;
}

/** Runs a program where things take time: `carry` carries out an effect, and answers when it likes or never. */
export function drive<E extends Effect, T>(
  program: Program<E, T>,
  carry: (effect: E, answer: (known?: unknown) => void) => void,
  onEnd: (result: T) => void = () => undefined,
): void {
  const goOn = (known?: unknown): void => {
    const next = program.next(known);
    if (next.done === true) onEnd(next.value);
    else carry(next.value, goOn);
  };
  goOn();
}
