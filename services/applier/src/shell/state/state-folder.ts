import { lstatSync, readdirSync } from 'node:fs';
import { link, mkdir, rename, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '#libs/contracts';
import { newJournal, type Journal, type Originals } from '../../core/index.js';
import { parseConfig } from './config-text.js';
import { decodeJournal, encodeJournal, isNewer } from './journal-text.js';
import { lockFolder, StateError } from './lock.js';
import { OriginalStore } from './original-store.js';
import { contentOf, isMissing, writeAllWhole, writeWhole } from './whole-file.js';

/**
 * The state folder of one applier, held by a lock: `journal.json` (and `journal.prev.json`, the one before), configs by
 * hash, contents of originals by digest.
 */
export class StateFolder {
  readonly contents: OriginalStore;
  /** `journal.json` cannot be used, so it must not replace the one before, which can. */
  private damaged = false;

  private constructor(
    readonly path: string,
    private readonly unlock: () => Promise<void>,
  ) {
    this.contents = new OriginalStore(join(path, 'originals'));
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

  async writeJournal(journal: Journal): Promise<void> {
    const path = join(this.path, 'journal.json');
    const text = encodeJournal(journal);
    // Of an unfinished work the copy before, should it ever be needed, must know too. One of the two is whole at every
    // moment.
    if (journal.work !== undefined) await writeAllWhole(this.path, ['journal.json', 'journal.prev.json'], text);
    else await writeWhole(path, text, () => (this.damaged ? Promise.resolve() : this.keepAsPrevious(path)));
    this.damaged = false;
  }

  /**
   * By a second name, so that `journal.json` is there at every moment: a reader finds the old one or the new one.
   */
  private async keepAsPrevious(path: string): Promise<void> {
    const next = join(this.path, 'journal.prev.json.new');
    if (lstatSync(next, { throwIfNoEntry: false }) !== undefined) await ignoreMissing(unlink(next));
    await ignoreMissing(link(path, next));
    await ignoreMissing(rename(next, join(this.path, 'journal.prev.json')));
  }

  /** The config with this hash; undefined when it is not there, or is damaged. */
  async readConfig(hash: string): Promise<Config | undefined> {
    const text = await textOf(this.configPath(hash));
    const config = text === undefined ? 'missing' : parseConfig(text, hash);
    return typeof config === 'string' ? undefined : config;
  }

  async keepConfig(hash: string, text: string): Promise<void> {
    await writeWhole(this.configPath(hash), text);
  }

  async tidy(configs: readonly string[], originals: Originals): Promise<void> {
    const kept = new Set(configs.map((hash) => `${hash}.json`));
    for (const name of readdirSync(join(this.path, 'configs'))) {
      if (!kept.has(name)) await unlink(join(this.path, 'configs', name));
    }
    const digests = Object.values(originals).flatMap(({ was }) =>
      was !== null && typeof was === 'object' && 'digest' in was && typeof was.digest === 'string' ? [was.digest] : [],
    );
    await this.contents.tidy(new Set(digests));
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

const ignoreMissing = (done: Promise<void>): Promise<void> =>
  done.catch((error: unknown) => (isMissing(error) ? undefined : Promise.reject(error)));

async function textOf(path: string): Promise<string | undefined> {
  const content = await contentOf(path);
  return content?.toString('utf8');
}
