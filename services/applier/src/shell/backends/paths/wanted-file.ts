import { octal } from './path-originals.js';
import { fileAt } from './standing.js';

/** In what a file is not the one that is wanted; undefined when it is that. */
export async function fileDiffers(root: string, path: string, wanted: Buffer, mode: number): Promise<string | undefined> {
  const { now, content } = await fileAt(root, path, ({ size }) => size === wanted.length);
  if (now.state !== 'file') return now.state === 'absent' ? 'missing' : `is a ${now.state}`;
  if (content === undefined || !wanted.equals(content)) return 'content differs';
  return now.mode === mode ? undefined : `mode ${octal(now.mode)} instead of ${octal(mode)}`;
}
