import { EXIT, UsageError, type ExitCode } from './exit.js';
import { isChangeId, isNodeName } from '#libs/contracts';
import { askedBy, type Session } from './session.js';

/** Refuses what cannot be the id of a change. */
export function changeIdOf(text: string): string {
  if (!isChangeId(text))
    throw new UsageError(
      `${JSON.stringify(text)} is not the id of a change: those are written c1, c2, …; sluice get changes lists them`,
    );
  return text;
}

/** Refuses what cannot be the name of a node. */
export function nodeNameOf(text: string): string {
  if (!isNodeName(text))
    throw new UsageError(
      `${JSON.stringify(text)} is not the name of a node (a-z, 0-9, "-" and ".", as DNS has them): sluice get nodes lists those there are`,
    );
  return text;
}

/** Asks a service for something and prints its answer: JSON, or the words for people. */
export async function ask<T>(
  session: Session,
  subject: string,
  body: object,
  words: (answer: T) => string,
): Promise<ExitCode> {
  const fleet = await session.fleet();
  const answer = await fleet.request<T>(subject, { ...body, by: askedBy(session.io) });
  if (session.isJson) session.io.out(JSON.stringify(answer));
  else session.io.say(words(answer));
  return EXIT.done;
}
