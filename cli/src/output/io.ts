import { createColors } from 'picocolors';
import { MOST_INPUT_BYTES, textOf, tooLarge } from '../input/bounded-file.js';

export type Colours = ReturnType<typeof createColors>;

/** Where a command reads and writes. Data goes out, words for people go to `say`. */
export interface Io {
  /** Data, to stdout; a line end is added. */
  out(text: string): void;
  /** Words, to stderr; a line end is added. */
  say(text: string): void;
  /** Without a line end: what a live screen draws with. */
  write(text: string, stream: 'out' | 'err'): void;
  stdin(): Promise<string>;
  readonly colours: Colours;
  /** Whether a person looks at stdout. */
  readonly isTerminal: boolean;
  /** Whether a person looks at stderr: what `id=$(sluice apply --wait)` leaves to them. */
  readonly isErrTerminal: boolean;
  readonly columns: number;
  readonly rows: number;
  readonly env: NodeJS.ProcessEnv;
  /** Aborted by Ctrl-C or SIGTERM, once somebody listens to it. */
  readonly interrupted: AbortSignal;
  readonly now: () => Date;
}

/** This process's own streams. */
export function processIo(): Io {
  const env = process.env;
  const isTerminal = process.stdout.isTTY === true;
  const abort = new AbortController();
  let listens = false;
  process.stdout.on('error', endQuietly);
  process.stderr.on('error', endQuietly);
  return {
    out: (text) => void process.stdout.write(`${text}\n`),
    say: (text) => void process.stderr.write(`${text}\n`),
    write: (text, stream) => void (stream === 'out' ? process.stdout : process.stderr).write(text),
    stdin: readStdin,
    // Data and words are coloured alike: a log of either must not get escape sequences.
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

/** `sluice events | head -1` closes the pipe, which is no failure. */
function endQuietly(error: NodeJS.ErrnoException): void {
  if (error.code === 'EPIPE') process.exit(0);
  throw error;
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
