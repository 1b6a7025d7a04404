import { open, rename } from 'node:fs/promises';
import { dirname } from 'node:path';

/** Replaces a file as a whole and on the disk: who reads sees the old or the new content, also after a power cut. */
export async function writeWhole(path: string, content: string | Buffer, beforeRename?: () => Promise<void>): Promise<void> {
  const temporary = `${path}.tmp`;
  const file = await open(temporary, 'w', 0o600);
  try {
    await file.writeFile(content);
    await file.sync();
  } finally {
    await file.close();
  }
  await beforeRename?.();
  await rename(temporary, path);
  await syncFolder(dirname(path));
}

export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

export const isMissing = (error: unknown): boolean => codeOf(error) === 'ENOENT';
export const codeOf = (error: unknown): string => (error as NodeJS.ErrnoException | undefined)?.code ?? '';
