import type { Reason } from '#libs/contracts';

/** The exit codes. Scripts rely on them. */
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

/** The codes for people, in help and in the reference. */
export const EXIT_MEANINGS: Readonly<Record<keyof typeof EXIT, string>> = {
  done: 'success',
  unexpected: 'an unexpected error, or sluice doctor found a problem',
  usage: 'the command line or an argument is wrong',
  rejected: 'the change was rejected; nothing was rolled out. Without --wait, only if that is known at once',
  failed: 'the change failed and was rolled back, was aborted, or was superseded by another change',
  unfinished: 'the change did not end in time, or is paused',
  noConnection: 'no NATS server or no service answers, or the server refuses the connection or has no JetStream',
};

/** The arguments or the input make no sense. The message names the place, the reason and what to do. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** A reason, and where in a file it is. */
export interface PlacedReason extends Reason {
  readonly place?: {
    readonly file: string;
    /** Both count from 1. */
    readonly line: number;
    readonly column: number;
    /** The line, and below it a mark. */
    readonly excerpt: readonly string[];
  };
}

/** Refused before anything was published. */
export class RejectedError extends Error {
  override readonly name = 'RejectedError';
  constructor(readonly reasons: readonly PlacedReason[]) {
    super(reasons.map((reason) => reason.message).join('\n'));
  }
}

/** Nothing answers, or it refuses. */
const UNREACHABLE: ReadonlySet<string> = new Set([
  'NoConnectionError',
  'NoJetStreamError',
  'AccessError',
  'KubeUnreachableError',
]);

/** The exit code of an error. */
export function exitCodeOf(error: unknown): ExitCode {
  const { name = '', code } = error as { name?: string; code?: string };
  if (isWithoutSluice(error)) return EXIT.noConnection;
  if (name === 'UsageError' || name === 'SettingsError' || name === 'KubeConfigError') return EXIT.usage;
  if (name === 'RejectedError') return EXIT.rejected;
  if (UNREACHABLE.has(name)) return EXIT.noConnection;
  if (name === 'OpsError' && code === 'bad-request') return EXIT.usage;
  return EXIT.unexpected;
}

/** The message of an error for people. Adds what to do, if the error does not say it. */
export function wordsOf(error: unknown, { isDoctor = false }: { readonly isDoctor?: boolean } = {}): string {
  const { message, name } = error as Error;
  if (isWithoutSluice(error))
    return `the NATS server lacks a stream or bucket of Sluice. If no service has run there yet, start the services (sluice up, or sluice service NAME), or choose another server with --server${isDoctor ? '' : '; otherwise sluice doctor says what is missing'}`;
  return name === 'NoConnectionError' && !isDoctor && !message.includes('sluice up')
    ? `${message}\nRun sluice doctor to find out what is missing.`
    : message;
}

/** The services create their streams when they start. Without one, no service ran there yet, or somebody deleted it. */
const isWithoutSluice = (error: unknown): boolean => /^(stream|bucket) not found/.test((error as Error).message);
