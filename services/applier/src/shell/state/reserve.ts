import { randomBytes } from 'node:crypto';
import { constants, lstatSync } from 'node:fs';
import { unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { OpenFile } from '../open-file.js';
import { freeBytesIn } from './free-space.js';
import { withOwn } from './own-file.js';
import { isFull, naming } from './whole-file.js';

const APPEND = constants.O_WRONLY | constants.O_CREAT | constants.O_APPEND;
/** How much space is freed at a time, because other programs may take it before this applier does. */
const PART_BYTES = 16_384;
/** How much is written at a time. */
const PIECE_BYTES = 1 << 20;

/**
 * Disk space that is set aside in the state folder, as the file `reserve`. A change may fill the disk; its rollback
 * writes into this space. The bytes are random, so that a file system with compression sets aside as much.
 */
export class Reserve {
  readonly path: string;

  constructor(folder: string) {
    this.path = join(folder, 'reserve');
  }

  /** Throws if the disk has not enough space to set aside this many bytes. */
  async requireSpace(bytes: number): Promise<void> {
    const missing = bytes - this.bytes();
    const freeBytes = await freeBytesIn(dirname(this.path));
    if (missing > freeBytes) throw new Error(`${missing} bytes are missing, but only ${freeBytes} bytes are free`);
  }

  /** Sets aside at least this many bytes. Throws if there is not enough space, and keeps what it could get. */
  async fill(bytes: number): Promise<void> {
    const missing = bytes - this.bytes();
    if (missing <= 0) return;
    // Without fsync: file systems count the space when it is written. What is lost in a power cut is filled again.
    const write = async (file: OpenFile): Promise<void> => {
      for (let left = missing; left > 0; left -= PIECE_BYTES)
        await file.append(randomBytes(Math.min(left, PIECE_BYTES)));
    };
    try {
      await withOwn(this.path, APPEND, write, 0o600);
    } catch (error) {
      throw naming(this.path, error);
    }
  }

  /** Frees what is more than this many bytes. */
  async trim(bytes: number): Promise<void> {
    if (this.bytes() > bytes) await this.shrink(bytes);
  }

  /**
   * Carries out `work`, which may be repeated. While the disk is full, frees a part of the space and tries again, until
   * only `keptBytes` are left. Throws like `work`.
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

  /** False if there is nothing to free. */
  private async giveBack(keptBytes: number): Promise<boolean> {
    const bytes = this.bytes();
    if (bytes <= keptBytes) return false;
    const left = Math.max(keptBytes, bytes - PART_BYTES);
    if (left === 0) {
      await unlink(this.path);
      return true;
    }
    await this.shrink(left);
    return true;
  }

  private async shrink(bytes: number): Promise<void> {
    await withOwn(this.path, constants.O_RDWR, async (file) => {
      file.truncate(bytes);
      // Some file systems free the space only with this call.
      await file.sync();
    });
  }

  private bytes(): number {
    return lstatSync(this.path, { throwIfNoEntry: false })?.size ?? 0;
  }
}
