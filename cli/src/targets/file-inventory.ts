import { statSync, type Stats } from 'node:fs';
import { stat } from 'node:fs/promises';
import { isDeepStrictEqual } from 'node:util';
import type { Logger } from '#libs/process';
import type { Target, Timing } from '../../../services/applier/src/shell/targets/index.js';
import { UsageError } from '../output/exit.js';
import type { FileListing } from './inventory-file.js';
import type { Inventory, InventoryProblem } from './inventory.js';

export interface FileInventoryOptions<T> {
  /** What the targets are, such as `functions`. Copies share them if their files have the same name, or none. */
  readonly kind: string;
  readonly file: string;
  /**
   * Reads it. Throws UsageError, which names the place. Calls `uses` with each other file that its entries refer to,
   * before it reads that file.
   */
  readonly read: (file: string, uses: (path: string) => void) => FileListing<T>;
  readonly target: (entry: T, timing: Timing) => Target;
  readonly log: Logger;
  /** How often to look whether a file has changed. */
  readonly lookMs?: number;
}

const LOOK_MS = 2_000;
/** How many of the files that entries refer to are looked at each time. A thousand would cost one percent of a core. */
const LOOKED_AT_ONCE = 100;

/** An inventory that is a file. Throws UsageError if the file is wrong now. Later, the last good one stays. */
export function fileInventory<T>(options: FileInventoryOptions<T>): Inventory {
  const { kind, file } = options;
  const { name } = options.read(file, () => undefined);
  const read: typeof options.read = (path, uses) => {
    const listing = options.read(path, uses);
    if (listing.name === name) return listing;
    throw new UsageError(
      `--inventory ${file}: name was ${name ?? 'absent'} when this applier started, and is ${listing.name ?? 'absent'} now: restart it`,
    );
  };
  return {
    name: () => Promise.resolve(name === undefined ? kind : `${kind}-${name}`),
    start: (timing, onChange) => {
      const reading = new FileReading({ ...options, read }, (entries, problems) =>
        onChange({ targets: entries.map((entry) => options.target(entry, timing)), problems }),
      );
      reading.begin();
      return () => reading.stop();
    },
  };
}

class FileReading<T> {
  /** What each file looked like just before it was read. Files that could not be read may be repaired. */
  private readonly seen = new Map<string, string>();
  private last: readonly T[] | undefined;
  private isWrong = false;
  /** The place of the file to look at next, after that of the inventory itself. */
  private next = 0;
  private timer: NodeJS.Timeout | undefined;
  private isStopped = false;

  constructor(
    private readonly options: FileInventoryOptions<T>,
    private readonly onChange: (entries: readonly T[], problems: readonly InventoryProblem[]) => void,
  ) {}

  begin(): void {
    this.read();
    this.later();
  }

  stop(): void {
    this.isStopped = true;
    clearTimeout(this.timer);
  }

  private read(): void {
    const { file, read, log } = this.options;
    const before = new Map(this.seen);
    const see = (path: string): void => void this.seen.set(path, looksOf(statSync(path, { throwIfNoEntry: false })));
    this.seen.clear();
    see(file);
    try {
      const { entries } = read(file, see);
      if (isDeepStrictEqual(entries, this.last) && !this.isWrong) return;
      this.isWrong = false;
      this.last = entries;
      this.onChange(entries, []);
    } catch (error) {
      // It ended at the first file that is wrong. The others are still in use.
      for (const [path, looks] of before) if (!this.seen.has(path)) this.seen.set(path, looks);
      const { message } = error as Error;
      log.error({ error: message }, 'the inventory cannot be used; continuing with the last one');
      this.isWrong = true;
      const [reason = ''] = message.split('\n');
      const todo = 'correct the file: it is read again when it changes, and until then the last good one is used';
      // Before the first good list, there is nothing to go on with.
      if (this.last !== undefined) this.onChange(this.last, [{ object: 'what is new in the inventory', reason, todo }]);
    }
  }

  private later(): void {
    if (!this.isStopped) this.timer = setTimeout(() => void this.look(), this.options.lookMs ?? LOOK_MS).unref();
  }

  private due(): readonly string[] {
    const [own = this.options.file, ...others] = this.seen.keys();
    const due = others.slice(this.next, this.next + LOOKED_AT_ONCE);
    this.next += LOOKED_AT_ONCE;
    if (this.next >= others.length) this.next = 0;
    return [own, ...due];
  }

  private async look(): Promise<void> {
    for (const path of this.due()) {
      const before = this.seen.get(path);
      const now = await stat(path).catch(() => undefined);
      if (this.isStopped) return;
      if (looksOf(now) === before) continue;
      this.read();
      break;
    }
    this.later();
  }
}

/** Differs after each change. A rename, as tools write files, changes the inode. */
const looksOf = (stats: Stats | undefined): string =>
  stats === undefined ? 'none' : `${stats.dev} ${stats.ino} ${stats.size} ${stats.mtimeMs} ${stats.ctimeMs}`;
