import { rename } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { withOpen, type OpenFile } from '../open-file.js';

/** Replaces a file as a whole and on the disk: who reads sees the old or the new content, also after a power cut. */
export async function writeWhole(
  path: string,
  content: string | Buffer,
  beforeRename?: () => Promise<void>,
): Promise<void> {
  const temporary = await writeBeside(path, content);
  await beforeRename?.();
  await rename(temporary, path);
  await syncFolder(dirname(path));
}

/** The same for several files of one folder, which take their places in the order given. */
export async function writeAllWhole(folder: string, names: readonly string[], content: string): Promise<void> {
  const temporaries = await Promise.all(names.map((name) => writeBeside(join(folder, name), content)));
  for (const [i, name] of names.entries()) await rename(temporaries[i] as string, join(folder, name));
  await syncFolder(folder);
}

async function writeBeside(path: string, content: string | Buffer): Promise<string> {
  const temporary = `${path}.tmp`;
  const write = async (file: OpenFile): Promise<void> => {
    await file.write(content);
    await file.sync();
  };
  await withOpen(temporary, 'w', write, 0o600);
  return temporary;
}

const syncFolder = (path: string): Promise<void> => withOpen(path, 'r', (folder) => folder.sync());

/** Undefined where there is no such file. */
export async function contentOf(path: string): Promise<Buffer | undefined> {
  try {
    return await withOpen(path, 'r', (file) => file.read());
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

export const isMissing = (error: unknown): boolean => codeOf(error) === 'ENOENT';
export const codeOf = (error: unknown): string => (error as NodeJS.ErrnoException | undefined)?.code ?? '';
