import { execFile } from 'node:child_process';
import { SIGNAL_TURN_MS } from '../../command.js';

/** Where the network of this applier is, and how its tools are called. */
export interface NetworkSettings {
  /** A network namespace by name; without it, the one that the applier is in. */
  readonly netns?: string;
  /** The folder of FRR's sockets, where FRR does not use its own. */
  readonly frrSockets?: string;
}

/** What a tool said and how it ended. */
export interface ToolResult {
  readonly code: number;
  readonly out: string;
  readonly error: string;
}

/** What iproute2 shows of one thing. */
type Row = Readonly<Record<string, unknown>>;

/** The kernel ends what is run so as soon as the process that ran it is gone. */
export const ENDING_WITH_US = ['setpriv', '--pdeathsig', 'KILL'];

const LISTED_MS = 250;
/** Longer than any of them takes, FRR's reload aside. */
const TOOL_MS = 15_000;
const MOST_BYTES = 64 * 1024 * 1024;
/** iproute2 lives where only root's PATH leads. */
const PATH = `${process.env['PATH'] ?? ''}:/usr/sbin:/sbin:/usr/bin:/bin`;

/** Calls iproute2 and its kin without a shell, inside the namespace if there is one. */
export class NetworkTools {
  private readonly prefix: readonly string[];
  private canBind: Promise<boolean> | undefined;
  private readonly lists = new Map<string, { readonly atMs: number; readonly rows: Promise<readonly Row[]> }>();

  constructor(readonly settings: NetworkSettings) {
    this.prefix = settings.netns === undefined ? [] : ['ip', 'netns', 'exec', settings.netns];
  }

  /** Throws with what the tool said when it fails. */
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
      execFile(command, rest, options, (error, out, said) => {
        if (error === null) return resolve({ code: 0, out, error: said });
        const reason = error.killed === true ? `was killed after ${timeoutMs} ms` : said.trim() || error.message;
        const tell = (): void => resolve({ code: typeof error.code === 'number' ? error.code : 1, out, error: reason });
        if (typeof error.signal === 'string' && error.killed !== true) setTimeout(tell, SIGNAL_TURN_MS);
        else tell();
      });
    });
  }

  /**
   * The same for what takes its time: it must not go on next to the process that rolls back after a kill -9 of this
   * process.
   */
  async runLong(argv: readonly string[], timeoutMs: number): Promise<ToolResult> {
    this.lists.clear();
    this.canBind ??= this.try([...ENDING_WITH_US, 'true']).then(({ code }) => code === 0);
    return this.try((await this.canBind) ? [...ENDING_WITH_US, ...argv] : argv, timeoutMs);
  }

  /**
   * What iproute2 shows. With `only`, of what these words select, now. Without, of everything as it was a moment ago:
   * hundreds of elements are compared with what one call lists.
   */
  rows<R extends object>(args: readonly string[], only?: readonly string[]): Promise<readonly R[]> {
    return (only === undefined ? this.listed(args) : this.list(...args, ...only)) as Promise<readonly R[]>;
  }

  /** What iproute2 lists; nothing if what is asked about does not exist. */
  async list(...args: readonly string[]): Promise<readonly Row[]> {
    const argv = ['ip', '-j', '-N', ...args];
    const { code, out, error } = await this.try(argv);
    if (code !== 0 && NOT_THERE.test(error)) return [];
    if (code !== 0) throw new Error(`${argv.join(' ')}: ${lastWords(error)}`);
    const text = out.trim();
    return text === '' ? [] : (JSON.parse(text) as readonly Row[]);
  }

  private listed(args: readonly string[]): Promise<readonly Row[]> {
    const key = args.join(' ');
    const known = this.lists.get(key);
    if (known !== undefined && performance.now() - known.atMs < LISTED_MS) return known.rows;
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

const lastWords = (text: string): string => text.trim().split('\n').slice(-5).join('; ');

/** The group of every interface that Sluice makes: given with its name, so that no kill leaves one without. */
export const LINK_GROUP = '211';

/** The protocol number of every route and rule that Sluice makes; the kernel and FRR use others. */
export const PROTOCOL = '211';
