import type { Reason } from '#libs/contracts';

/** What scripts may rely on. */
export const EXIT = {
  done: 0,
  unexpected: 1,
  usage: 2,
  rejected: 3,
  failed: 4,
  unfinished: 5,
  noConnection: 6,
} as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** What was asked for cannot be meant. The message names the place, the reason and the way out. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** Refused before anything was published. */
export class RejectedError extends Error {
  override readonly name = 'RejectedError';
  constructor(readonly reasons: readonly Reason[]) {
    super(reasons.map((reason) => reason.message).join('\n'));
  }
}

/** The exit code that an error comes to. */
export function exitCodeOf(error: unknown): ExitCode {
  const { name, code } = error as { name?: string; code?: string };
  if (isWithoutSluice(error)) return EXIT.noConnection;
  if (name === 'UsageError' || name === 'KubeConfigError') return EXIT.usage;
  if (name === 'RejectedError') return EXIT.rejected;
  if (name === 'NoConnectionError' || name === 'KubeUnreachableError') return EXIT.noConnection;
  if (name === 'OpsError' && code === 'bad-request') return EXIT.usage;
  return EXIT.unexpected;
}

/** What an error says to people, with the way out where the error itself does not know it. */
export function wordsOf(error: unknown): string {
  const { message, name } = error as Error;
  if (isWithoutSluice(error))
    return 'the server answers, and has no Sluice on it: its streams are missing. Start the services (sluice up, or sluice service NAME), or name another server with --server';
  return name === 'NoConnectionError' && !message.includes('sluice up')
    ? `${message}\nsluice doctor says what is missing, and what to do about it.`
    : message;
}

/** The services make their streams when they start: without one, none ever ran there. */
const isWithoutSluice = (error: unknown): boolean => /^(stream|bucket) not found/.test((error as Error).message);
