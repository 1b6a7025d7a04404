import { statfs } from 'node:fs/promises';

/** The free space of the file system of a folder. Infinity if it does not say how large it is, such as a ramfs. */
export async function freeBytesIn(folder: string): Promise<number> {
  const { bavail, blocks, bsize } = await statfs(folder);
  return blocks === 0 ? Infinity : bavail * bsize;
}
