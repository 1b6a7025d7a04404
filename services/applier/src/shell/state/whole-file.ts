import { constants } from 'node:fs';
import { rename, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { withOpen, type OpenFile } from '../open-file.js';
import { withOwn } from './own-file.js';

/** The content of a file, or what writes it. */
export type FileContent = string | Buffer | ((file: OpenFile) => Promise<void>);

/**
 * Replaces a file atomically and durably. A reader sees the old or the new content, also after a power cut. If it
 * fails, the old content stays and no space is used. The error names the file.
 */
export async function writeWhole(
  path: string,
  content: FileContent,
  beforeRename?: () => Promise<void>,
): Promise<void> {
  await writeAll([path], content, beforeRename);
}

/** The same for several files of one folder, which are put in place in the given order. */
export async function writeAllWhole(folder: string, names: readonly string[], content: string): Promise<void> {
  await writeAll(
    names.map((name) => join(folder, name)),
    content,
  );
}

async function writeAll(
  paths: readonly string[],
  content: FileContent,
  beforeRename?: () => Promise<void>,
): Promise<void> {
  const results = await Promise.allSettled(paths.map((path) => writeBeside(path, content)));
  try {
    for (const result of results) if (result.status === 'rejected') throw result.reason;
    await beforeRename?.();
    for (const path of paths) await rename(temporaryOf(path), path).catch((error: unknown) => fail(path, error));
  } catch (error) {
    await Promise.all(paths.map((path) => unlink(temporaryOf(path)).catch(() => undefined)));
    throw error;
  }
  for (const folder of new Set(paths.map((path) => dirname(path)))) await syncFolder(folder);
}

async function writeBeside(path: string, content: FileContent): Promise<void> {
  const write = async (file: OpenFile): Promise<void> => {
    await (typeof content === 'function' ? content(file) : file.write(content));
    await file.sync();
  };
  await withOwn(temporaryOf(path), REPLACE, write, 0o600).catch((error: unknown) => fail(path, error));
}

const REPLACE = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC;
const temporaryOf = (path: string): string => `${path}.tmp`;

export const syncFolder = (path: string): Promise<void> => withOpen(path, 'r', (folder) => folder.sync());

/** Undefined if the file does not exist. */
export async function contentOf(path: string): Promise<Buffer | undefined> {
  try {
    return await withOwn(path, constants.O_RDONLY, (file) => file.read());
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw naming(path, error);
  }
}

/** The same error, with the path in its message: an error on an open file does not name it. */
export function naming(path: string, error: unknown): Error {
  const cause = error as NodeJS.ErrnoException;
  if (cause.message.includes(path)) return cause;
  return Object.assign(new Error(`${path}: ${cause.message}`, { cause }), { code: cause.code });
}

const fail = (path: string, error: unknown): never => {
  throw naming(path, error);
};

export const isMissing = (error: unknown): boolean => codeOf(error) === 'ENOENT';
/** There is no space left on the disk, or in the quota. */
export const isFull = (error: unknown): boolean => ['ENOSPC', 'EDQUOT'].includes(codeOf(error));
export const codeOf = (error: unknown): string => (error as NodeJS.ErrnoException | undefined)?.code ?? '';
