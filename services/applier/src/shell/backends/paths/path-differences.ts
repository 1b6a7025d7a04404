import type { Content } from '../../content.js';
import {
  type DesiredAttributes,
  fileAt,
  type FileRead,
  type LookOptions,
  type Owner,
  type PathState,
} from './path-state.js';

/** How a file differs from the desired one. Undefined if it does not. */
export async function fileDiffers(
  root: string,
  path: string,
  content: Content,
  desired: DesiredAttributes,
): Promise<string | undefined> {
  return difference(await fileAt(root, path, comparing(content)), desired);
}

/** Reads whether a file has this content. */
export const comparing = (content: Content): LookOptions<boolean> => ({
  wants: ({ size }) => content.size === undefined || content.size === size,
  reads: (file) => content.isIn(file),
});

export function difference(
  { now, content: isSame }: FileRead<boolean>,
  desired: DesiredAttributes,
): string | undefined {
  if (now.state !== 'file') return isInstead(now);
  if (isSame !== true) return 'content differs';
  return attributesDiffer(now, desired);
}

/** What is at a path instead of what should be there, as text for people. */
export function isInstead({ state }: Pick<PathState, 'state'>): string {
  switch (state) {
    case 'absent':
      return 'missing';
    case 'other':
      return 'is neither a file, a directory nor a symbolic link';
    case 'symlink':
      return 'is a symbolic link';
    case 'file':
    case 'directory':
      return `is a ${state}`;
  }
}

/** How a file or directory differs from the desired attributes. */
export function attributesDiffer(
  now: Owner & { readonly mode: number },
  { mode = now.mode, uid = now.uid, gid = now.gid }: DesiredAttributes,
): string | undefined {
  if (now.mode !== mode) return `mode ${octal(now.mode)} instead of ${octal(mode)}`;
  if (now.uid !== uid) return `owner ${now.uid} instead of ${uid}`;
  return now.gid === gid ? undefined : `group ${now.gid} instead of ${gid}`;
}

export const octal = (mode: number): string => mode.toString(8).padStart(4, '0');
