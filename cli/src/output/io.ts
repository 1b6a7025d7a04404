import { writeSync } from 'node:fs';
import { createColors } from 'picocolors';
import { MOST_INPUT_BYTES, textOf, tooLarge } from '../input/bounded-file.js';
import { EXIT } from './exit.js';

export type Colours = ReturnType<typeof createColors>;

/** The streams of a command. Data goes to `out`, messages for people to `say`. */
export interface Io {
  /** Data, to stdout. A newline is added. */
  out(text: string): void;
  /** Messages, to stderr. A newline is added. */
  say(text: string): void;
  /** Without a newline, to draw a live screen. */
  write(text: string, stream: 'out' | 'err'): void;
  stdin(): Promise<string>;
  readonly colours: Colours;
  /** Whether stdout is a terminal. */
  readonly isTerminal: boolean;
  /** Whether stderr is a terminal. With `id=$(sluice apply --wait)`, only stderr is. */
  readonly isErrTerminal: boolean;
  readonly columns: number;
  readonly rows: number;
  readonly env: NodeJS.ProcessEnv;
  /** Aborted by Ctrl-C or SIGTERM, once there is a listener. */
  readonly interrupted: AbortSignal;
  readonly now: () => Date;
}

/** The streams of this process. */
export function processIo(): Io {
  const env = process.env;
  const isTerminal = process.stdout.isTTY === true;
  const abort = new AbortController();
  let listens = false;
  process.stdout.on('error', endOnError);
  process.stderr.on('error', endOnError);
  return {
    out: (text) => void process.stdout.write(`${text}\n`),
    say: (text) => void process.stderr.write(`${text}\n`),
    write: (text, stream) => void (stream === 'out' ? process.stdout : process.stderr).write(text),
    stdin: readStdin,
    // Both are coloured under the same condition, because neither log must contain escape sequences.
    colours: createColors(hasColours(env, isTerminal && process.stderr.isTTY === true)),
    isTerminal,
    isErrTerminal: process.stderr.isTTY === true,
    get columns() {
      return process.stdout.columns || process.stderr.columns || 120;
    },
    get rows() {
      return process.stdout.rows || process.stderr.rows || 40;
    },
    env,
    get interrupted() {
      if (!listens) {
        listens = true;
        for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => abort.abort(signal));
      }
      return abort.signal;
    },
    now: () => new Date(),
  };
}

function hasColours(env: NodeJS.ProcessEnv, isTerminal: boolean): boolean {
  return isTerminal && (env['NO_COLOR'] ?? '') === '' && env['TERM'] !== 'dumb';
}

/** `sluice events | head -1` closes the pipe, which is not a failure. A full disk is one. */
function endOnError(error: NodeJS.ErrnoException): void {
  if (error.code === 'EPIPE') process.exit(EXIT.done);
  try {
    writeSync(2, `error: the output cannot be written: ${error.message}\n`);
  } catch {
    // Neither can the messages. The exit code is all that is left.
  }
  process.exit(EXIT.unexpected);
}

async function readStdin(): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of process.stdin) {
    chunks.push(chunk as Buffer);
    bytes += (chunk as Buffer).length;
    if (bytes > MOST_INPUT_BYTES) throw tooLarge('stdin');
  }
  return textOf(Buffer.concat(chunks), 'stdin');
}
