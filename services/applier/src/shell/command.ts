import { spawn } from 'node:child_process';

/** The result of a command; `output` is the end of its output. */
export interface CommandResult {
  /** False: there is no such program, or it may not be run. */
  readonly started: boolean;
  readonly passed: boolean;
  readonly reason: string;
  readonly output: string;
}

export interface CommandLimits {
  /** Where it runs. */
  readonly root: string;
  readonly timeoutMs: number;
  /** Ends it before. */
  readonly ending: AbortSignal;
}

const OUTPUT_END = 8_000;
/** Of it, that much goes into a reason. */
const REASON_END = 500;

/** Time to read the last output; a process that the command left running may hold its output open forever. */
const LAST_WORDS_MS = 500;

/**
 * What ends a command by a signal mostly ends this process with it: a service manager that stops the unit, a machine
 * that goes down. The command's end may be heard first, and says nothing then: for that long nobody is told of it.
 */
export const SIGNAL_TURN_MS = 1_000;

/** Runs a command without a shell, in a process group of its own that is killed as a whole when the time is over. */
export function runCommand(
  argv: readonly string[],
  { root, timeoutMs, ending }: CommandLimits,
): Promise<CommandResult> {
  const [command = '', ...rest] = argv;
  return new Promise((resolve) => {
    let output = '';
    let timedOut = false;
    const child = spawn(command, rest, { cwd: root, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
    const timer = setTimeout(
      () => {
        timedOut = true;
        killGroup(child.pid);
      },
      Math.max(1, timeoutMs),
    );
    const kill = (): void => killGroup(child.pid);
    ending.addEventListener('abort', kill, { once: true });
    const keep = (chunk: Buffer): void => {
      output = (output + chunk.toString('utf8')).slice(-OUTPUT_END);
    };
    child.stdout.on('data', keep);
    child.stderr.on('data', keep);
    const end = (passed: boolean, how: string, started = true): void => {
      clearTimeout(timer);
      ending.removeEventListener('abort', kill);
      child.stdout.destroy();
      child.stderr.destroy();
      const said = output.trim().slice(-REASON_END);
      resolve({ started, passed, output, reason: passed ? '' : `${command} ${how}${said === '' ? '' : `: ${said}`}` });
    };
    child.on('error', (error) => end(false, `could not be run (${error.message})`, false));
    child.on('exit', (code, signal) => {
      clearTimeout(timer);
      const over = (): void => {
        if (timedOut) end(false, `was killed after ${Math.round(timeoutMs)} ms`);
        else end(code === 0, signal === null ? `ended with ${code}` : `was ended by ${signal}`);
      };
      if (signal !== null && !timedOut && !ending.aborted) return void setTimeout(over, SIGNAL_TURN_MS);
      // The end may be heard before what was said.
      const last = setTimeout(over, LAST_WORDS_MS);
      child.once('close', () => {
        clearTimeout(last);
        over();
      });
    });
  });
}

function killGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // it ended in the meantime
  }
}
