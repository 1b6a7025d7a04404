import { nodeToken, type Config } from '#libs/contracts';
import type { Handlers } from '#libs/engine';
import { carryOut } from '#libs/nats';
import { mkdir, readdir, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import {
  LostTargetError,
  newJournal,
  Ownership,
  type Journal,
  type OwnershipEffect,
  type OwnershipPort,
  type StoredValue,
} from '../../core/index.js';
import { UnreachableError, type Clock, type Storage } from '../ports.js';
import { EMPTY_HASH, parseConfig } from '../state/config-text.js';
import { decodeJournal, encodeJournal } from '../state/journal-text.js';
import { contentOf, writeWhole } from '../state/whole-file.js';

export { CALL_TIMEOUT_MS } from '../../core/index.js';

/** Where the journals of targets are: one value per node. A write names the revision that it replaces. */
export interface JournalBucket {
  read(node: string): Promise<StoredValue | undefined>;
  /**
   * Returns the new revision. Throws an error with the name OvertakenError if the value has another revision, and
   * NotSentError if there is no connection. After any other it is not known whether the value was written.
   */
  write(node: string, text: string, revision: number): Promise<number>;
  /** A config that a copy has used for the node. */
  readConfig(node: string, hash: string): Promise<string | undefined>;
  writeConfig(node: string, hash: string, text: string): Promise<void>;
  /** Deletes all configs of the node but these. */
  tidyConfigs(node: string, kept: readonly string[]): Promise<void>;
}

export interface StorageOptions {
  readonly node: string;
  readonly bucket: JournalBucket;
  /** Identifies this copy, and no earlier run of it. */
  readonly owner: string;
  /** Another copy need not wait for the end of a lease: what this one was doing may be done again. */
  readonly isRepeatable?: boolean | undefined;
  /** For configs. Other targets of this copy share it. */
  readonly folder: string;
  readonly clock: Clock;
  /** Waits. Rejects when the copy stops. */
  readonly sleep: (ms: number) => Promise<void>;
  /** Called once, when another copy has taken over. */
  readonly onLost: () => void;
}

/**
 * The journal of one target, in a bucket, and its configs in a folder. The configs are also kept next to the journal:
 * the merger deletes those of a node that was removed, and another copy may have to roll back to one later.
 */
export class TargetStorage implements Storage {
  private hasKept = false;

  private constructor(
    private readonly options: StorageOptions,
    private readonly ownership: Ownership,
    private readonly configs: string,
  ) {}

  /** Takes the target over. */
  static async claim(options: StorageOptions): Promise<TargetStorage> {
    const { node, owner, folder, isRepeatable } = options;
    const configs = join(folder, 'configs', nodeToken(node));
    await mkdir(configs, { recursive: true, mode: 0o700 });
    const claim = Ownership.claim({ node, owner, codec: CODEC, first: newJournal(node, EMPTY_HASH), isRepeatable });
    return new TargetStorage(options, await carryOut<OwnershipPort, Ownership>(claim, portOf(options)), configs);
  }

  get journal(): Journal {
    return this.ownership.journal;
  }

  /** The lease that is worked on; undefined if the last rollback is tried again. */
  get lease(): string | undefined {
    return this.ownership.work?.lease;
  }

  writeJournal(journal: Journal): Promise<void> {
    return this.carry(this.ownership.write(journal));
  }

  /** Tells the next owner that this copy does nothing any more, so that it need not wait for a deadline. */
  handOver(journal: Journal): Promise<void> {
    return this.carry(this.ownership.handOver(journal));
  }

  /**
   * Call this before each write to the target. Returns how long the write may take. Throws LostTargetError if another
   * copy has taken over, and UnreachableError if that is not known.
   */
  async fence(): Promise<number> {
    const untilMs = await this.carry(this.ownership.fence()).catch((error: Error) => {
      if (error instanceof LostTargetError) throw error;
      const reason = `another copy may have taken over ${this.options.node}, because NATS cannot be read`;
      throw new UnreachableError(`${reason}: ${error.message}`);
    });
    return untilMs - this.options.clock();
  }

  async readConfig(hash: string): Promise<Config | string | undefined> {
    const content = await contentOf(this.configPath(hash));
    return content === undefined ? undefined : parseConfig(content.toString('utf8'), hash);
  }

  async keepConfig(hash: string, text: string): Promise<void> {
    await writeWhole(this.configPath(hash), text);
    const { bucket, node } = this.options;
    // Without it, a lease can begin too: the bucket configs has it for as long as the node is in the fleet.
    await bucket.writeConfig(node, hash, text).catch(() => undefined);
    this.hasKept = true;
  }

  keptConfig(hash: string): Promise<string | undefined> {
    return this.options.bucket.readConfig(this.options.node, hash);
  }

  async tidy(configs: readonly string[]): Promise<readonly string[]> {
    const { bucket, node } = this.options;
    if (this.hasKept)
      // A copy that was paused must not delete what the next owner needs.
      await this.fence()
        .then(() => bucket.tidyConfigs(node, configs))
        .then(
          () => void (this.hasKept = false),
          () => undefined,
        );
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

  private async carry<T>(program: Generator<OwnershipEffect, T, unknown>): Promise<T> {
    const wasLost = this.ownership.isLost;
    try {
      return await carryOut<OwnershipPort, T>(program, portOf(this.options));
    } catch (error) {
      if (!wasLost && error instanceof LostTargetError) this.options.onLost();
      throw error;
    }
  }

  private configPath(hash: string): string {
    return join(this.configs, `${hash}.json`);
  }
}

const CODEC = { encode: encodeJournal, decode: decodeJournal };

const portOf = ({ node, bucket, clock, sleep }: StorageOptions): Handlers<OwnershipPort> => ({
  now: () => clock(),
  'read-value': () => bucket.read(node),
  'write-value': ({ text, revision }) =>
    bucket.write(node, text, revision).catch((error: Error) => {
      if (error.name === 'OvertakenError') return 'overtaken';
      if (error.name === 'NotSentError') return 'not-sent';
      throw error;
    }),
  sleep: ({ ms }) => sleep(ms),
});
