import { join } from 'node:path';
import type { FoundPath as Answered } from '#libs/contracts';
import { respond } from './file-systems.js';
import { octal } from './path-differences.js';
import { pathStateAt, type PathState } from './path-state.js';

/** What exists at a path. */
type FoundPath = Omit<Answered, 'refused'>;

/** Less than a tool waits for the answer. */
const ANSWER_MS = 1_500;
/** How many paths one process tries, because the length of its arguments is limited. */
const BATCH = 100;

/** What exists at these paths, as text. Paths where nothing exists are left out. */
export async function findPaths(root: string, paths: readonly string[]): Promise<readonly FoundPath[]> {
  const found: FoundPath[] = [];
  const isAnswered = await Promise.all(
    Array.from({ length: Math.ceil(paths.length / BATCH) }, (_, i) =>
      respond(['--', ...paths.slice(i * BATCH, (i + 1) * BATCH).map((path) => join(root, path))], ANSWER_MS),
    ),
  );
  for (const [i, path] of paths.entries()) {
    const here = isAnswered[Math.floor(i / BATCH)] === true ? await findPath(root, path) : NO_ANSWER;
    if (here !== undefined) found.push({ path, ...here });
  }
  return found;
}

const NO_ANSWER = {
  state: 'unreachable',
  what: 'it was not read: its file system, or that of another path of the change, does not answer',
} as const;

async function findPath(root: string, path: string): Promise<Omit<FoundPath, 'path'> | undefined> {
  try {
    const now = await pathStateAt(root, path);
    return now.state === 'absent' ? undefined : { state: now.state, what: wordsOf(now) };
  } catch (error) {
    return { state: 'unreachable', what: (error as Error).message };
  }
}

function wordsOf(now: Exclude<PathState, { readonly state: 'absent' }>): string {
  switch (now.state) {
    case 'file':
      return `a file of ${now.size} bytes (mode ${octal(now.mode)}, owner ${now.uid}:${now.gid})`;
    case 'directory':
      return 'a directory';
    case 'symlink':
      return `a symbolic link to ${now.target}`;
    case 'other':
      return 'neither a file, a directory nor a symbolic link';
  }
}
