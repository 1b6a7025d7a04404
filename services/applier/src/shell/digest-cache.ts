import { fstatSync, type BigIntStats } from 'node:fs';
import { digestOf } from './content.js';
import { SHORT, type OpenFile } from './open-file.js';

/**
 * A file may be changed again in the same tick of the clock of its file system, and then its times stay the same. The
 * coarsest file systems count in steps of 2 s, so a change has to be older than that.
 */
const TICK_MS = 2_000n;
/** Each change of a file adds one. Nodes have fewer large files. */
const MOST_FILES = 1_000;

/**
 * The sha256 of large files. A file is not read again while its inode, size and times stay the same. `utimes` can put
 * back the time of the last write, but not that of the last change (ctime).
 */
export class DigestCache {
  /** `device:inode` → what was read, oldest first. */
  private readonly files = new Map<string, { readonly version: string; readonly digest: string }>();

  constructor(private readonly nowMs: () => number = Date.now) {}

  /** The sha256 of what a file contains. Short files are always read. */
  async digestOf(file: OpenFile): Promise<string> {
    if (file.size <= SHORT) return digestOf(file);
    const startMs = BigInt(Math.floor(this.nowMs()));
    const stat = statOf(file);
    const key = `${stat.dev}:${stat.ino}`;
    const version = versionOf(stat);
    const cached = this.files.get(key);
    if (cached?.version === version) return cached.digest;
    const digest = await digestOf(file);
    this.files.delete(key);
    if (changedMs(stat) + TICK_MS < startMs && versionOf(statOf(file)) === version) this.keep(key, version, digest);
    return digest;
  }

  private keep(key: string, version: string, digest: string): void {
    this.files.set(key, { version, digest });
    const [oldest] = this.files.keys();
    if (this.files.size > MOST_FILES && oldest !== undefined) this.files.delete(oldest);
  }
}

const statOf = (file: OpenFile): BigIntStats => fstatSync(file.fd, { bigint: true });

const versionOf = ({ size, mtimeNs, ctimeNs }: BigIntStats): string => `${size}:${mtimeNs}:${ctimeNs}`;

const changedMs = ({ mtimeMs, ctimeMs }: BigIntStats): bigint => (mtimeMs > ctimeMs ? mtimeMs : ctimeMs);
