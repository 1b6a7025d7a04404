import { spawn, type ChildProcess } from 'node:child_process';
import { stripVTControlCharacters } from 'node:util';

/** The result of a command; `output` is the end of its output. */
export interface CommandResult {
  /** False: the program does not exist, or must not be run. */
  readonly started: boolean;
  readonly passed: boolean;
  readonly reason: string;
  readonly output: string;
  /** It was killed because the time was over. */
  readonly timedOut: boolean;
}

export interface CommandLimits {
  /** The working directory. */
  readonly root: string;
  readonly timeoutMs: number;
  /** Ends the command early. */
  readonly ending: AbortSignal;
}

/** A signal for both. */
export const either = (one: AbortSignal, other: AbortSignal | undefined): AbortSignal =>
  other === undefined ? one : AbortSignal.any([one, other]);

/** What stays of the output. */
const OUTPUT_END = 8_000;
/** How much of the output goes into a reason. */
const REASON_END = 500;

/** Time to read the last output. A process that the command left running may hold its output open forever. */
const LAST_WORDS_MS = 500;

/**
 * A signal that ends a command usually ends this process too: a service manager stops the unit, or the machine shuts
 * down. This process may see the command end first, which proves nothing, so it waits this long before it returns the
 * result.
 */
export const SIGNAL_TURN_MS = 1_000;

/** Runs a command without a shell, in a separate process group that is killed as a whole when the time is over. */
export function runCommand(
  argv: readonly string[],
  { root, timeoutMs, ending }: CommandLimits,
): Promise<CommandResult> {
  const [command = ''] = argv;
  return new Promise((resolve) => {
    let output = '';
    let timedOut = false;
    const notRun = ({ message }: Error): void =>
      resolve({
        started: false,
        passed: false,
        output: '',
        timedOut: false,
        reason: `${command} could not be run (${message})`,
      });
    const child = started(argv, root, notRun);
    if (child === undefined) return;
    const timer = setTimeout(
      () => {
        timedOut = true;
        killGroup(child.pid);
      },
      Math.max(1, timeoutMs),
    );
    const kill = (): void => killGroup(child.pid);
    ending.addEventListener('abort', kill, { once: true });
    if (ending.aborted) kill();
    const keep = (chunk: string): void => {
      output = (output + chunk).slice(-OUTPUT_END);
    };
    child.stdout?.setEncoding('utf8').on('data', keep);
    child.stderr?.setEncoding('utf8').on('data', keep);
    const end = (passed: boolean, how: string, started = true): void => {
      clearTimeout(timer);
      ending.removeEventListener('abort', kill);
      child.stdout?.destroy();
      child.stderr?.destroy();
      const reported = lastWords(output);
      resolve({
        started,
        passed,
        output,
        timedOut,
        reason: passed ? '' : `${command} ${how}${reported === '' ? '' : `: ${reported}`}`,
      });
    };
    child.on('error', (error) => end(false, `could not be run (${error.message})`, false));
    child.on('exit', (code, signal) => {
      clearTimeout(timer);
      const over = (): void => {
        if (timedOut) end(false, `was killed after ${Math.round(timeoutMs)} ms`);
        else end(code === 0, signal === null ? `ended with ${code}` : `was ended by ${signal}`);
      };
      if (signal !== null && !timedOut && !ending.aborted) return void setTimeout(over, SIGNAL_TURN_MS);
      // The exit may arrive before the output.
      const last = setTimeout(over, LAST_WORDS_MS);
      child.once('close', () => {
        clearTimeout(last);
        over();
      });
    });
  });
}

/** The end of the output, for a reason: its lines in one, without colours. */
export const lastWords = (output: string): string =>
  stripVTControlCharacters(output)
    .split(/[\r\n]+/)
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .join('; ')
    .slice(-REASON_END);

/** Node.js throws some errors, and reports others as an event. If there are too many open files, there is no output. */
function started(
  [command = '', ...rest]: readonly string[],
  cwd: string,
  notRun: (error: Error) => void,
): ChildProcess | undefined {
  try {
    return spawn(command, rest, { cwd, detached: true, stdio: ['ignore', 'pipe', 'pipe'], env: withoutSettings() });
  } catch (error) {
    notRun(error as Error);
    return undefined;
  }
}

/** The environment without the settings of the applier: a command of a fragment must not get its credentials. */
const withoutSettings = (): NodeJS.ProcessEnv =>
  Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(NATS|SLUICE)_/.test(name)));

function killGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // it has already ended
  }
}
