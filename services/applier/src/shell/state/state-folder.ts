import { lstatSync, statSync } from 'node:fs';
import { link, mkdir, rename, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '#libs/contracts';
import { letOthersGoOn } from '../open-file.js';
import { newJournal, type Journal } from '../../core/index.js';
import { parseConfig } from './config-text.js';
import { decodeJournal, encodeJournal, isNewer } from './journal-text.js';
import { removeHang } from './hang-file.js';
import { lockFolder, StateError } from './lock.js';
import { OriginalStore, removeFrom } from './original-store.js';
import { Reserve } from './reserve.js';
import { contentOf, isMissing, writeAllWhole, writeWhole } from './whole-file.js';

const CONFIG_FILE = /^[0-9a-f]{64}\.json(\.tmp)?$/;

const BLOCK_BYTES = 4_096;
/** Unfinished work is written as two copies. Both old copies are still there meanwhile. */
const COPIES = 2;
/** What a rollback restores leaves space for two journals: that it started, and how it ended. */
const JOURNALS_KEPT = 2;
/** More than two, because other programs may take what one journal frees before the next is written. */
const JOURNALS_RESERVED = 4;
/** For writing one restored file next to the one that it replaces. A larger file needs free space besides. */
const MOST_RESTORE_BYTES = 1 << 20;
const RESTORE_MARGIN_BYTES = 4 * BLOCK_BYTES;

/**
 * The state folder of one applier, held by a lock: `journal.json` (and `journal.prev.json`, the one before), configs by
 * hash, contents of originals by digest, and `reserve`, the space that a rollback needs when the disk is full.
 */
export class StateFolder {
  readonly contents: OriginalStore;
  /** `journal.json` cannot be used, so it must not replace the one before, which can. */
  private damaged = false;
  /** The journal has unfinished work. */
  private works = false;
  private journalBytes = BLOCK_BYTES;
  private readonly reserve: Reserve;

  private constructor(
    readonly path: string,
    private readonly unlock: () => Promise<void>,
  ) {
    this.contents = new OriginalStore(join(path, 'originals'));
    this.reserve = new Reserve(path);
  }

  /** Throws StateError when another applier has it. */
  static async open(path: string, isGuard = false): Promise<StateFolder> {
    await mkdir(join(path, 'configs'), { recursive: true, mode: 0o700 });
    return new StateFolder(path, await lockFolder(path, isGuard));
  }

  close(): Promise<void> {
    return this.unlock();
  }

  /**
   * The journal as it stands; a new one when there is none. Throws StateError when what stands there cannot be used.
   */
  async readJournal(
    node: string,
    emptyHash: string,
  ): Promise<{ readonly journal: Journal; readonly fellBack?: string }> {
    const found = await this.findJournal(node, emptyHash);
    this.works = found.journal.work !== undefined;
    this.journalBytes = blocks(encodeJournal(found.journal).length);
    return found;
  }

  private async findJournal(
    node: string,
    emptyHash: string,
  ): Promise<{ readonly journal: Journal; readonly fellBack?: string }> {
    const path = join(this.path, 'journal.json');
    const previous = join(this.path, 'journal.prev.json');
    const [text, before] = await Promise.all([textOf(path), textOf(previous)]);
    if (text === undefined && before === undefined) return { journal: newJournal(node, emptyHash) };
    const decoded = text === undefined ? 'missing' : decodeJournal(text);
    if (typeof decoded !== 'string') return { journal: ownJournal(decoded, node, path) };
    // An older one would know nothing of what the newer applier has begun or taken over since.
    if (text !== undefined && isNewer(text))
      throw new StateError(
        path,
        `${decoded}. If you cannot, put a copy of an older journal in its place, and check what has changed on the node since then`,
      );
    const older = before === undefined ? 'missing' : decodeJournal(before);
    this.damaged = typeof older !== 'string';
    if (typeof older !== 'string')
      return { journal: ownJournal(older, node, previous), fellBack: `${path}: ${decoded}` };
    throw new StateError(
      path,
      `${decoded}, and ${previous} cannot be used either (${older}). Restore a copy of either file. Or move both away: the node then starts from scratch, what is on it now counts as its originals, and it gets its config again`,
    );
  }

  /**
   * Work starts only if the space that its rollback needs is set aside; every later journal may use that space. Throws,
   * with the file's name, when the journal cannot be written: then the one before still counts.
   */
  async writeJournal(journal: Journal): Promise<void> {
    const text = encodeJournal(journal);
    const journalBytes = blocks(Buffer.byteLength(text));
    const begins = journal.work !== undefined && !this.works;
    if (begins) {
      await this.setAside(journalBytes, journal);
      await this.putJournal(journal, text);
    } else await this.reserve.lend(() => this.putJournal(journal, text));
    this.works = journal.work !== undefined;
    this.journalBytes = journalBytes;
  }

  /**
   * Puts one thing back on the node during a rollback. Where the disk is full it may use the space that was set aside,
   * except for what the journal needs.
   */
  rollBackWith<T>(work: () => Promise<T>): Promise<T> {
    return this.reserve.lend(work, JOURNALS_KEPT * COPIES * this.journalBytes);
  }

  /** Throws StateError when the disk has not enough space. */
  private async setAside(journalBytes: number, journal: Journal): Promise<void> {
    const bytes = JOURNALS_RESERVED * COPIES * journalBytes + (await this.restoreBytes(journal));
    try {
      await this.reserve.fill(bytes);
    } catch (error) {
      throw new StateError(
        this.reserve.path,
        `cannot set aside ${Math.ceil(bytes / 1_024)} KiB for a rollback: ${(error as Error).message}. Free some space on this disk`,
      );
    }
  }

  /** For the largest thing that a rollback may have to put back. */
  private async restoreBytes(journal: Journal): Promise<number> {
    let bytes = sizeOf(this.configPath(journal.inForce));
    for (const digest of digestsIn(journal)) {
      await letOthersGoOn();
      bytes = Math.max(bytes, sizeOf(this.contents.pathOf(digest)));
    }
    return blocks(Math.min(MOST_RESTORE_BYTES, bytes)) + RESTORE_MARGIN_BYTES;
  }

  private async putJournal(journal: Journal, text: string): Promise<void> {
    const path = join(this.path, 'journal.json');
    // Of an unfinished work the copy before, should it ever be needed, must know too. One of the two is whole at every
    // moment.
    if (journal.work !== undefined) await writeAllWhole(this.path, ['journal.json', 'journal.prev.json'], text);
    else await writeWhole(path, text, () => (this.damaged ? Promise.resolve() : this.keepAsPrevious(path)));
    this.damaged = false;
  }

  /** By a second name, so that `journal.json` is there at every moment: a reader finds the old one or the new one. */
  private async keepAsPrevious(path: string): Promise<void> {
    const next = join(this.path, 'journal.prev.json.new');
    if (lstatSync(next, { throwIfNoEntry: false }) !== undefined) await ignoreMissing(unlink(next));
    await ignoreMissing(link(path, next));
    await ignoreMissing(rename(next, join(this.path, 'journal.prev.json')));
  }

  /** The config with this hash; undefined when it is not there; a text when it cannot be used, which says why. */
  async readConfig(hash: string): Promise<Config | string | undefined> {
    try {
      const text = await textOf(this.configPath(hash));
      const config = text === undefined ? undefined : parseConfig(text, hash);
      return typeof config === 'string' ? `${this.configPath(hash)}: ${config}` : config;
    } catch (error) {
      return (error as Error).message;
    }
  }

  async keepConfig(hash: string, text: string): Promise<void> {
    await writeWhole(this.configPath(hash), text);
  }

  /**
   * Removes configs and contents that nothing names any more, leaves alone what is not Sluice's, and fills the reserve
   * up. Gives what it could not do, each with the file's name: nothing depends on it.
   */
  async tidy(configs: readonly string[], journal: Journal): Promise<readonly string[]> {
    const kept = new Set(configs.map((hash) => `${hash}.json`));
    const isOver = (name: string): boolean => CONFIG_FILE.test(name) && !kept.has(name);
    const troubles = [
      ...(await removeFrom(join(this.path, 'configs'), isOver)),
      ...(await this.contents.tidy(digestsIn(journal))),
    ];
    await this.setAside(this.journalBytes, journal).catch((error: unknown) => troubles.push((error as Error).message));
    await removeHang(this.path);
    return troubles;
  }

  private configPath(hash: string): string {
    return join(this.path, 'configs', `${hash}.json`);
  }
}

function ownJournal(journal: Journal, node: string, path: string): Journal {
  if (journal.node === node) return journal;
  throw new StateError(
    path,
    `this is the journal of node ${journal.node}, not of ${node}. Give each applier its own --state folder; if the node was renamed, move the file away`,
  );
}

const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0;
const blocks = (bytes: number): number => Math.ceil(bytes / BLOCK_BYTES) * BLOCK_BYTES;

const digestsIn = ({ originals, work }: Journal): ReadonlySet<string> =>
  new Set(
    [...Object.values(originals), ...Object.values(work?.before ?? {})].flatMap(({ was }) =>
      was !== null && typeof was === 'object' && 'digest' in was && typeof was.digest === 'string' ? [was.digest] : [],
    ),
  );

const ignoreMissing = (done: Promise<void>): Promise<void> =>
  done.catch((error: unknown) => (isMissing(error) ? undefined : Promise.reject(error)));

async function textOf(path: string): Promise<string | undefined> {
  const content = await contentOf(path);
  return content?.toString('utf8');
}
