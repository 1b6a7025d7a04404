import { execFile } from 'node:child_process';
import { lastWords, SIGNAL_TURN_MS } from '../../command.js';

/** The network of this applier, and how to call its tools. */
export interface NetworkSettings {
  /** The name of a network namespace. Default: the one of the applier. */
  readonly netns?: string;
  /** The folder of FRR's sockets, if FRR does not use its default. */
  readonly frrSockets?: string;
}

/** The output and exit code of a tool. */
export interface ToolResult {
  readonly code: number;
  readonly out: string;
  readonly error: string;
}

/** One item as iproute2 shows it. */
type Row = Readonly<Record<string, unknown>>;

/** The kernel ends the tool as soon as the process that ran it is gone. */
export const ENDING_WITH_US = ['setpriv', '--pdeathsig', 'KILL'];

const LISTED_MS = 250;
/** Longer than any of them takes, except FRR's reload. */
const TOOL_MS = 15_000;
const MOST_BYTES = 64 * 1024 * 1024;
/** iproute2 may be in a folder that only root's PATH contains. */
const PATH = `${process.env['PATH'] ?? ''}:/usr/sbin:/sbin:/usr/bin:/bin`;

/** Calls iproute2 and similar tools without a shell, inside the namespace if there is one. */
export class NetworkTools {
  private readonly prefix: readonly string[];
  private canBind: Promise<boolean> | undefined;
  private readonly lists = new Map<string, { readonly atMs: number; readonly rows: Promise<readonly Row[]> }>();

  constructor(readonly settings: NetworkSettings) {
    this.prefix = settings.netns === undefined ? [] : ['ip', 'netns', 'exec', settings.netns];
  }

  /** Throws with the output of the tool if it fails. */
  async run(argv: readonly string[], timeoutMs = TOOL_MS): Promise<string> {
    this.lists.clear();
    const { code, out, error } = await this.try(argv, timeoutMs);
    if (code !== 0) throw new Error(`${argv.join(' ')}: ${lastWords(error === '' ? out : error)}`);
    return out;
  }

  try(argv: readonly string[], timeoutMs = TOOL_MS): Promise<ToolResult> {
    const [command = '', ...rest] = [...this.prefix, ...argv];
    return new Promise((resolve) => {
      const options = {
        timeout: timeoutMs,
        killSignal: 'SIGKILL',
        maxBuffer: MOST_BYTES,
        env: { ...process.env, PATH, LC_ALL: 'C' },
      } as const;
      execFile(command, rest, options, (error, out, stderr) => {
        if (error === null) return resolve({ code: 0, out, error: stderr });
        const reason = error.killed === true ? `was killed after ${timeoutMs} ms` : stderr.trim() || error.message;
        const tell = (): void => resolve({ code: typeof error.code === 'number' ? error.code : 1, out, error: reason });
        if (typeof error.signal === 'string' && error.killed !== true) setTimeout(tell, SIGNAL_TURN_MS);
        else tell();
      });
    });
  }

  /**
   * The same for a slow tool, which must not continue next to the process that rolls back after a kill -9 of this
   * process.
   */
  async runLong(argv: readonly string[], timeoutMs: number): Promise<ToolResult> {
    this.lists.clear();
    this.canBind ??= this.try([...ENDING_WITH_US, 'true']).then(({ code }) => code === 0);
    return this.try((await this.canBind) ? [...ENDING_WITH_US, ...argv] : argv, timeoutMs);
  }

  /**
   * What iproute2 shows. With `only`, the items that these arguments select, now. Without it, all items as they were a
   * moment ago, because hundreds of elements are compared with the list of one call.
   */
  rows<R extends object>(args: readonly string[], only?: readonly string[]): Promise<readonly R[]> {
    return (only === undefined ? this.readList(args) : this.list(...args, ...only)) as Promise<readonly R[]>;
  }

  /** What iproute2 lists; nothing if the item does not exist. */
  async list(...args: readonly string[]): Promise<readonly Row[]> {
    const argv = ['ip', '-j', '-N', ...args];
    const { code, out, error } = await this.try(argv);
    if (code !== 0 && NOT_THERE.test(error)) return [];
    if (code !== 0) throw new Error(`${argv.join(' ')}: ${lastWords(error)}`);
    const text = out.trim();
    return text === '' ? [] : (JSON.parse(text) as readonly Row[]);
  }

  private readList(args: readonly string[]): Promise<readonly Row[]> {
    const key = args.join(' ');
    const cached = this.lists.get(key);
    if (cached !== undefined && performance.now() - cached.atMs < LISTED_MS) return cached.rows;
    const rows = this.list(...args);
    this.lists.set(key, { atMs: performance.now(), rows });
    rows.catch(() => this.lists.delete(key));
    return rows;
  }

  /** Removes something; it is fine if it does not exist. */
  async remove(argv: readonly string[]): Promise<void> {
    this.lists.clear();
    const { code, error } = await this.try(argv);
    if (code !== 0 && !NOT_THERE.test(error)) throw new Error(`${argv.join(' ')}: ${lastWords(error)}`);
  }
}

const NOT_THERE = /does not exist|Cannot find device|No such (process|device|file)|Cannot assign requested address/;

/**
 * The group of every interface that Sluice creates. It is set together with the name, so that a kill leaves no
 * interface without it.
 */
export const LINK_GROUP = '211';

/** The protocol number of every route and rule that Sluice creates. The kernel and FRR use others. */
export const PROTOCOL = '211';
