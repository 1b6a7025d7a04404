import { UnreachableError, type Effects, type Handlers, type Program } from '#libs/engine';
import { isConnectionTrouble } from './errors.js';

/**
 * Runs a program to its end. Each effect is carried out by its handler, and errors of a handler are thrown into the
 * program.
 */
export async function carryOut<P, T>(program: Program<Effects<P>, T>, handlers: Handlers<P>): Promise<T> {
  const perform = handlers as unknown as Readonly<Record<string, (effect: Effects<P>) => unknown>>;
  let next = program.next();
  while (next.done !== true) {
    let answer: unknown;
    try {
      answer = await perform[next.value.do]?.(next.value);
    } catch (error) {
      next = program.throw(isConnectionTrouble(error) ? unreachable(error as Error) : error);
      continue;
    }
    next = program.next(answer);
  }
  return next.value;
}

const unreachable = (error: Error): Error =>
  error instanceof UnreachableError ? error : new UnreachableError(error.message, { cause: error });
