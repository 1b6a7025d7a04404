import { nodeToken, type Config } from '#libs/contracts';
import { mkdir, readdir, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { newJournal, type Journal, type Work } from '../../core/index.js';
import type { Clock, Storage } from '../ports.js';
import { EMPTY_HASH, parseConfig } from '../state/config-text.js';
import { decodeJournal, encodeJournal } from '../state/journal-text.js';
import { contentOf, writeWhole } from '../state/whole-file.js';

/** Where the journals of targets are: one value per node. A write names the revision that it replaces. */
export interface JournalBucket {
  read(node: string): Promise<{ readonly text: string; readonly revision: number } | undefined>;
  /** Returns the new revision. Throws an error with the name OvertakenError if the value has another revision. */
  write(node: string, text: string, revision: number): Promise<number>;
}

/** Another copy has taken over the target. This one must stop. */
export class LostTargetError extends Error {
  override readonly name = 'LostTargetError';
}

export interface StorageOptions {
  readonly node: string;
  readonly bucket: JournalBucket;
  /** Identifies this copy, and no earlier run of it. */
  readonly owner: string;
  /** For configs. Other targets of this copy share it. */
  readonly folder: string;
  readonly clock: Clock;
  /** Waits. Rejects when the copy stops. */
  readonly sleep: (ms: number) => Promise<void>;
  /** Called once, when another copy has taken over. */
  readonly onLost: () => void;
}

/** The clocks of two copies differ by less, and no call to a target takes longer. */
const CLOCKS_DIFFER_MS = 2_000;
export const CALL_TIMEOUT_MS = 10_000;
/** How often to look whether a copy that may still work on a lease has finished it. */
const LOOK_MS = 2_000;

/**
 * The journal of one target, in a bucket. Its owner is in the value, and each write is a compare-and-set: a copy that
 * lost the target can neither begin nor confirm anything.
 */
export class TargetStorage implements Storage {
  private isLost = false;
  /** What the journal says, or will say once it can be written. */
  private latest: Journal;

  private constructor(
    private readonly options: StorageOptions,
    private revision: number,
    readonly journal: Journal,
    private readonly configs: string,
  ) {
    this.latest = journal;
  }

  /**
   * Takes the target over. If its journal has unfinished work of a copy that did not hand it over, waits until the
   * deadline of that lease: without a connection to NATS, that copy may still be working on it. A call that it began
   * before may arrive later, and has ended one call timeout after that.
   */
  static async claim(options: StorageOptions): Promise<TargetStorage> {
    const { node, bucket, owner, folder, clock, sleep } = options;
    const configs = join(folder, 'configs', nodeToken(node));
    await mkdir(configs, { recursive: true, mode: 0o700 });
    for (;;) {
      const stored = await bucket.read(node);
      const { journal, owner: other } =
        stored === undefined || stored.text === '' ? unowned(node) : decode(stored.text);
      const waitMs = other === '' || other === owner ? undefined : untilOver(journal, clock());
      if (waitMs !== undefined && waitMs > 0) {
        await sleep(Math.min(waitMs, LOOK_MS));
        continue;
      }
      try {
        const revision = await bucket.write(node, encode(journal, owner), stored?.revision ?? 0);
        if (waitMs !== undefined) await sleep(CALL_TIMEOUT_MS);
        return new TargetStorage(options, revision, journal, configs);
      } catch (error) {
        if (!isOvertaken(error)) throw error;
        await sleep(LOOK_MS);
      }
    }
  }

  async writeJournal(journal: Journal): Promise<void> {
    this.latest = journal;
    await this.put(encode(journal, this.options.owner), journal);
  }

  /** Tells the next owner that this copy does nothing any more, so that it need not wait for a deadline. */
  async handOver(journal: Journal): Promise<void> {
    if (!this.isLost) await this.put(encode(journal, ''), journal);
  }

  /**
   * Call this before each write to the target. Until the deadline of its lease, no other copy takes over. After that,
   * or without a lease, one may have done so. Throws LostTargetError then, and if the bucket cannot be read.
   */
  async fence(): Promise<void> {
    const { node, bucket, owner, clock } = this.options;
    const { work } = this.latest;
    if (this.isLost) throw lost(node);
    if (work !== undefined && clock() < deadlineMs(work)) return;
    const stored = await bucket.read(node);
    if (stored === undefined || ownerOf(stored.text) !== owner) throw this.losing();
  }

  async readConfig(hash: string): Promise<Config | string | undefined> {
    const content = await contentOf(this.configPath(hash));
    return content === undefined ? undefined : parseConfig(content.toString('utf8'), hash);
  }

  async keepConfig(hash: string, text: string): Promise<void> {
    await writeWhole(this.configPath(hash), text);
  }

  async tidy(configs: readonly string[]): Promise<readonly string[]> {
    const kept = new Set(configs.map((hash) => `${hash}.json`));
    try {
      const names = (await readdir(this.configs)).filter((name) => !kept.has(name));
      await Promise.all(names.map((name) => unlink(join(this.configs, name))));
      return [];
    } catch (error) {
      return [(error as Error).message];
    }
  }

  rollBackWith<T>(work: () => Promise<T>): Promise<T> {
    return work();
  }

  /** A lost answer leaves open whether the value was written, so a refusal may be due to a write of this copy. */
  private async put(text: string, { node }: Journal): Promise<void> {
    const { bucket, owner } = this.options;
    if (this.isLost) throw lost(node);
    try {
      this.revision = await bucket.write(node, text, this.revision);
      return;
    } catch (error) {
      if (!isOvertaken(error)) throw error;
    }
    const stored = await bucket.read(node);
    if (stored !== undefined && stored.text !== '' && ownerOf(stored.text) === owner) {
      try {
        this.revision = await bucket.write(node, text, stored.revision);
        return;
      } catch (error) {
        if (!isOvertaken(error)) throw error;
      }
    }
    throw this.losing();
  }

  private losing(): Error {
    this.isLost = true;
    this.options.onLost();
    return lost(this.options.node);
  }

  private configPath(hash: string): string {
    return join(this.configs, `${hash}.json`);
  }
}

const lost = (node: string): Error => new LostTargetError(`another copy of the applier has taken over ${node}`);

const isOvertaken = (error: unknown): boolean => (error as Error).name === 'OvertakenError';

/** How long the owner of this journal may still work on its lease; undefined if it changes nothing on the target. */
function untilOver({ work, sound }: Journal, nowMs: number): number | undefined {
  if (work === undefined) return sound ? undefined : 0;
  return deadlineMs(work) + CLOCKS_DIFFER_MS - nowMs;
}

const deadlineMs = ({ readMs, applyMs }: Work): number => readMs + applyMs;

interface Owned {
  readonly journal: Journal;
  /** Empty if its owner has handed it over. */
  readonly owner: string;
}

const unowned = (node: string): Owned => ({ journal: newJournal(node, EMPTY_HASH), owner: '' });

/** The first line names the owner. The rest is a journal as in a state folder. */
const encode = (journal: Journal, owner: string): string => `${owner}\n${encodeJournal(journal)}`;

const ownerOf = (text: string): string => text.slice(0, text.indexOf('\n'));

function decode(text: string): Owned {
  const journal = decodeJournal(text.slice(text.indexOf('\n') + 1));
  if (typeof journal === 'string')
    throw new Error(
      `the journal in the bucket journals cannot be used: ${journal}. Delete the key: the target then gets its config again, and what it has now counts as its originals`,
    );
  return { journal, owner: ownerOf(text) };
}
