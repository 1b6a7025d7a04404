import { lstatSync, statSync } from 'node:fs';
import { link, mkdir, rename, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '#libs/contracts';
import { letOthersGoOn } from '../open-file.js';
import { newJournal, type Journal, type Original } from '../../core/index.js';
import { parseConfig } from './config-text.js';
import { decodeJournal, encodeJournal, isNewer } from './journal-text.js';
import { removeHang } from './hang-file.js';
import type { Storage } from '../ports.js';
import { lockFolder } from './lock.js';
import { OriginalStore, removeFrom } from './original-store.js';
import { CONFIGS, ORIGINALS, refuseOtherFiles } from './own-file.js';
import { makePrivate } from './private-folder.js';
import { Reserve } from './reserve.js';
import { StateError } from './state-error.js';
import { contentOf, isMissing, writeAllWhole, writeWhole } from './whole-file.js';

const CONFIG_FILE = /^[0-9a-f]{64}\.json(\.tmp)?$/;

const BLOCK_BYTES = 4_096;
/** Unfinished work is written as two copies. Both old copies exist until then. */
const COPIES = 2;
/** A rollback needs space for two journals: that it started, and how it ended. */
const JOURNALS_KEPT = 2;
/** More than two, because other programs may take the space of one journal before the next is written. */
const JOURNALS_RESERVED = 4;
/** For one file that a rollback restores. A larger one needs free space in addition. */
const MOST_RESTORE_BYTES = 1 << 20;
const RESTORE_MARGIN_BYTES = 4 * BLOCK_BYTES;

/**
 * The state folder of one applier, held by a lock: `journal.json` (and `journal.prev.json`, the one before), configs by
 * hash, contents of originals by digest, and `reserve`, the space that a rollback needs when the disk is full.
 */
export class StateFolder implements Storage {
  readonly contents: OriginalStore;
  /** `journal.json` cannot be used, so it must not replace the previous journal, which can. */
  private damaged = false;
  /** The journal as it was last read or written. */
  private last: Journal | undefined;
  private journalBytes = BLOCK_BYTES;
  private readonly reserve: Reserve;

  private constructor(
    readonly path: string,
    private readonly unlock: () => Promise<void>,
  ) {
    this.contents = new OriginalStore(join(path, ORIGINALS));
    this.reserve = new Reserve(path);
  }

  /** Throws StateError if another applier holds it, another user could write to it, or its files are no files. */
  static async open(path: string, isGuard = false): Promise<StateFolder> {
    try {
      // A guard finishes what an applier has begun, whatever is wrong with files that it does not need.
      if (!isGuard) {
        await makePrivate(path);
        refuseOtherFiles(path);
      }
      await mkdir(join(path, CONFIGS), { recursive: true, mode: 0o700 });
      return new StateFolder(path, await lockFolder(path, isGuard));
    } catch (error) {
      throw error instanceof StateError ? error : new StateError(path, whyUnusable(error as NodeJS.ErrnoException));
    }
  }

  close(): Promise<void> {
    return this.unlock();
  }

  /** The current journal; a new one if there is none. Throws StateError if the existing one cannot be used. */
  async readJournal(
    node: string,
    emptyHash: string,
  ): Promise<{ readonly journal: Journal; readonly fellBack?: string }> {
    const loaded = await this.findJournal(node, emptyHash);
    this.last = loaded.journal;
    this.journalBytes = blocks(encodeJournal(loaded.journal).length);
    return loaded;
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
    // An older applier would not know what the newer one has started or saved since.
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
   * Work starts only if the space for its rollback is set aside. Every later journal may use that space. Throws, with
   * the file's name, if the journal cannot be written. Then the previous one still counts.
   */
  async writeJournal(journal: Journal): Promise<void> {
    const text = encodeJournal(journal);
    const journalBytes = blocks(Buffer.byteLength(text));
    const begins = journal.work !== undefined && this.last?.work === undefined;
    if (begins) {
      await this.setAside(await this.rollbackBytes(journalBytes, journal), true);
      await this.putJournal(journal, text);
    } else await this.reserve.lend(() => this.putJournal(journal, text));
    this.last = journal;
    this.journalBytes = journalBytes;
  }

  /**
   * Restores one item during a rollback. On a full disk, it may use the space that was set aside, except for what the
   * journal needs.
   */
  rollBackWith<T>(work: () => Promise<T>): Promise<T> {
    return this.reserve.lend(work, JOURNALS_KEPT * COPIES * this.journalBytes);
  }

  /** Throws StateError if the disk has not enough space. A change that cannot start takes none of it. */
  private async setAside(bytes: number, begins: boolean): Promise<void> {
    const setAside = async (): Promise<void> => {
      if (begins) await this.reserve.requireSpace(bytes);
      await this.reserve.fill(bytes);
    };
    try {
      await setAside().catch(async (error: unknown) => {
        if (!(await this.contents.giveUpKept())) throw error;
        await setAside();
      });
    } catch (error) {
      throw new StateError(
        this.reserve.path,
        `cannot set aside ${Math.ceil(bytes / 1_024)} KiB for a rollback: ${(error as Error).message}. Free some space on this disk`,
      );
    }
  }

  /**
   * The space for journals, and for all that a rollback may have to write back: contents that are in the config in
   * force, contents of saved originals, and one block of metadata for each item. What the change writes and the
   * rollback removes is not deducted, because the change may end anywhere.
   */
  private async rollbackBytes(journalBytes: number, journal: Journal): Promise<number> {
    let bytes = JOURNALS_RESERVED * COPIES * journalBytes + RESTORE_MARGIN_BYTES;
    bytes += blocks(sizeOf(this.configPath(journal.inForce))) + (journal.work?.changed.length ?? 0) * BLOCK_BYTES;
    for (const original of this.restoredBy(journal)) {
      await letOthersGoOn();
      const digest = digestOf(original);
      if (digest !== undefined) bytes += blocks(Math.min(MOST_RESTORE_BYTES, sizeOf(this.contents.pathOf(digest))));
    }
    return bytes;
  }

  /** The originals of a change that starts. The others are only restored once a config does not manage them. */
  private restoredBy({ originals, work }: Journal): readonly Original[] {
    if (work === undefined) return [];
    const before = this.last?.sound === true ? this.last.originals : {};
    const added = Object.entries(originals).filter(([key]) => before[key] === undefined);
    return [...added.map(([, original]) => original), ...Object.values(work.before ?? {})];
  }

  private async putJournal(journal: Journal, text: string): Promise<void> {
    const path = join(this.path, 'journal.json');
    // If work is unfinished, the previous copy must contain it too, in case it is needed. At every moment, one of the
    // two is complete.
    if (journal.work !== undefined) await writeAllWhole(this.path, ['journal.json', 'journal.prev.json'], text);
    else await writeWhole(path, text, () => (this.damaged ? Promise.resolve() : this.keepAsPrevious(path)));
    this.damaged = false;
  }

  /** Through a second name, so that `journal.json` always exists: a reader finds the old or the new one. */
  private async keepAsPrevious(path: string): Promise<void> {
    const next = join(this.path, 'journal.prev.json.new');
    if (lstatSync(next, { throwIfNoEntry: false }) !== undefined) await ignoreMissing(unlink(next));
    await ignoreMissing(link(path, next));
    await ignoreMissing(rename(next, join(this.path, 'journal.prev.json')));
  }

  /** The config with this hash; undefined if it does not exist; a text that says why, if it cannot be used. */
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
   * Removes configs and contents that nothing refers to any more, leaves foreign files alone, and refills the reserve.
   * Returns what failed, with the names of the files. No step depends on it.
   */
  async tidy(configs: readonly string[], journal: Journal): Promise<readonly string[]> {
    const names = new Set(configs.map((hash) => `${hash}.json`));
    const isOver = (name: string): boolean => CONFIG_FILE.test(name) && !names.has(name);
    const troubles = [
      ...(await removeFrom(join(this.path, CONFIGS), isOver)),
      ...(await this.contents.tidy(digestsIn(journal), mayTryAgain(journal))),
    ];
    const bytes = await this.rollbackBytes(this.journalBytes, journal);
    await this.setAside(bytes, false).catch((error: unknown) => troubles.push((error as Error).message));
    // A degraded node may still need it.
    if (journal.sound) await this.reserve.trim(bytes);
    await removeHang(this.path);
    return troubles;
  }

  private configPath(hash: string): string {
    return join(this.path, CONFIGS, `${hash}.json`);
  }
}

const WAYS_OUT: Readonly<Record<string, string>> = {
  EEXIST: 'this is not a folder: move it away, or name another folder with --state',
  ENOTDIR: 'something on the way to this folder is not a folder: name another folder with --state',
  ENOSPC: 'the disk is full: free some space on it',
  EDQUOT: 'the quota of the applier is used up: free some space on this disk',
  EROFS: 'the file system is read-only: make it writable, or name another folder with --state',
};

function whyUnusable({ code = '', message }: NodeJS.ErrnoException): string {
  const wayOut = WAYS_OUT[code] ?? 'the applier needs a folder that it can write to; name one with --state';
  return `${wayOut} (${message})`;
}

function ownJournal(journal: Journal, node: string, path: string): Journal {
  if (journal.node === node) return journal;
  throw new StateError(
    path,
    `this is the journal of node ${journal.node}, not of ${node}. Give each applier its own --state folder; if the node was renamed, move the file away`,
  );
}

/** Whether the next lease may need what the last one has downloaded. */
const mayTryAgain = ({ lastDealt }: Journal): boolean =>
  lastDealt !== undefined && lastDealt.verdict !== 'applied' && lastDealt.verdict !== 'invalid';

const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0;
const blocks = (bytes: number): number => Math.ceil(bytes / BLOCK_BYTES) * BLOCK_BYTES;

const digestsIn = ({ originals, work }: Journal): ReadonlySet<string> =>
  new Set([...Object.values(originals), ...Object.values(work?.before ?? {})].flatMap((one) => digestOf(one) ?? []));

/** The sha256 of the content that was saved with an original. */
const digestOf = ({ was }: Original): string | undefined =>
  was !== null && typeof was === 'object' && 'digest' in was && typeof was.digest === 'string' ? was.digest : undefined;

const ignoreMissing = (done: Promise<void>): Promise<void> =>
  done.catch((error: unknown) => (isMissing(error) ? undefined : Promise.reject(error)));

async function textOf(path: string): Promise<string | undefined> {
  const content = await contentOf(path);
  return content?.toString('utf8');
}
