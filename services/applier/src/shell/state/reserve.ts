import { randomBytes } from 'node:crypto';
import { ftruncateSync, lstatSync } from 'node:fs';
import { unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { withOpen } from '../open-file.js';
import { isFull, naming } from './whole-file.js';

/** How much is given back to the disk at a time: what else writes there may take it before this applier does. */
const PART_BYTES = 16_384;

/**
 * Disk space that is set aside in the state folder, as the file `reserve`. A change may fill the disk; its rollback
 * writes into this space. The bytes are random, so that a file system that compresses sets aside as much.
 */
export class Reserve {
  readonly path: string;

  constructor(folder: string) {
    this.path = join(folder, 'reserve');
  }

  /** Sets aside at least that many bytes. Throws when there is not enough space; then it keeps what it could get. */
  async fill(bytes: number): Promise<void> {
    const missing = bytes - this.bytes();
    if (missing <= 0) return;
    try {
      // Without fsync: file systems count the space when it is written. What a power cut takes away is filled again.
      await withOpen(this.path, 'a', (file) => file.write(randomBytes(missing)), 0o600);
    } catch (error) {
      throw naming(this.path, error);
    }
  }

  /**
   * Carries out `work`, which may be repeated. As long as the disk is full, gives back a part of the space and tries
   * again, until only `keptBytes` are left. Throws as `work` does.
   */
  async lend<T>(work: () => Promise<T>, keptBytes = 0): Promise<T> {
    for (;;) {
      try {
        return await work();
      } catch (error) {
        if (!isFull(error) || !(await this.giveBack(keptBytes))) throw error;
      }
    }
  }

  /** False when there is nothing to give back. */
  private async giveBack(keptBytes: number): Promise<boolean> {
    const bytes = this.bytes();
    if (bytes <= keptBytes) return false;
    const left = Math.max(keptBytes, bytes - PART_BYTES);
    if (left === 0) {
      await unlink(this.path);
      return true;
    }
    await withOpen(this.path, 'r+', async (file) => {
      ftruncateSync(file.fd, left);
      // Some file systems free the space only with this.
      await file.sync();
    });
    return true;
  }

  private bytes(): number {
    return lstatSync(this.path, { throwIfNoEntry: false })?.size ?? 0;
  }
}
