import type { ChildProcess } from 'node:child_process';
import { ROOT } from './folders.js';
import type { PartContext } from './part.js';
import { end, start } from './processes.js';

/** Starts a script that uses only Node.js and the NATS client, for a floor. It ends with the part. */
export function startBare(context: PartContext, script: string, ...args: readonly string[]): ChildProcess {
  const child = start(process.execPath, ['-e', script, ...args], { cwd: ROOT, stdio: 'ignore' });
  context.atEnd(() => end(child, 1_000));
  return child;
}
