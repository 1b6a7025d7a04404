import { octal } from './path-originals.js';
import { fileAt, putFileUnless, type Found } from './standing.js';

/** In what a file is not the one that is wanted; undefined when it is that. */
export async function fileDiffers(
  root: string,
  path: string,
  wanted: Buffer,
  mode: number,
): Promise<string | undefined> {
  return difference(await fileAt(root, path, ({ size }) => size === wanted.length), wanted, mode);
}

/** Puts the file there that is wanted, if it is not there. */
export function ensureFile(root: string, path: string, wanted: Buffer, mode: number): Promise<void> {
  return putFileUnless(root, path, wanted, mode, (found) => difference(found, wanted, mode) === undefined);
}

function difference({ now, content }: Found, wanted: Buffer, mode: number): string | undefined {
  if (now.state !== 'file') return now.state === 'absent' ? 'missing' : `is a ${now.state}`;
  if (content === undefined || !wanted.equals(content)) return 'content differs';
  return now.mode === mode ? undefined : `mode ${octal(now.mode)} instead of ${octal(mode)}`;
}
