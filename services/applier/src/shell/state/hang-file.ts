import { unlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { Hang } from '../../core/index.js';
import { readOwn } from './own-file.js';
import { writeWhole } from './whole-file.js';

const NAME = 'hang.json';

/** A guard's note for the next process that continues with the journal. */
export const writeHang = (stateDir: string, hang: Hang): Promise<void> =>
  writeWhole(join(stateDir, NAME), JSON.stringify(hang));

/** Undefined if it does not exist or cannot be read. Then the change only ends later. */
export function readHang(stateDir: string): Hang | undefined {
  try {
    const hang = JSON.parse(readOwn(join(stateDir, NAME))) as Partial<Hang> | null;
    const { lease, reason, fault } = hang ?? {};
    if (typeof lease !== 'string' || typeof reason !== 'string') return undefined;
    return { lease, reason, fault: fault === 'content' ? 'content' : 'node' };
  } catch {
    return undefined;
  }
}

export const removeHang = (stateDir: string): Promise<void> => unlink(join(stateDir, NAME)).catch(() => undefined);
