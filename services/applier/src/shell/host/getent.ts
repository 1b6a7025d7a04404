import { execFile } from 'node:child_process';

/** Why there is no answer: the time was over, this machine has no getent, or it does not know an option. */
export type NoAnswer = 'late' | 'missing' | 'unsupported';

/** The exit code of a `getent` that does not know an option. */
const USAGE = 64;

/**
 * What the name services of the machine answer: empty if they do not know the name. Each question has a process of its
 * own, which is killed when the time is over, because a name service may not answer.
 */
export const getent = (
  args: readonly string[],
  timeoutMs: number,
): Promise<{ readonly lines: readonly string[] } | NoAnswer> =>
  new Promise((resolve) => {
    execFile('getent', [...args], { timeout: timeoutMs, killSignal: 'SIGKILL', env: process.env }, (error, out) => {
      if (error?.code === 'ENOENT') resolve('missing');
      else if (error?.code === USAGE) resolve('unsupported');
      else if (error?.killed === true) resolve('late');
      else resolve({ lines: out.split('\n') });
    });
  });
