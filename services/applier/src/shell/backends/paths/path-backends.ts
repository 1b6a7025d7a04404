import type { ConfigEntry } from '#libs/contracts';
import type { Json, Original, Originals } from '../../../core/index.js';
import { RefusedError, type Backend, type BackendFactory, type CheckContext, type Surroundings } from '../../ports.js';
import { checkPath, modeOf, pathKey, PathOriginals } from './path-originals.js';
import { clearTemporary, ensureFile, fileDiffers, octal, pathStateAt, putDirectory, putLink } from './path-state.js';
import { normalized } from './rooted-path.js';

const FILE_MODE = 0o644;
const DIRECTORY_MODE = 0o755;

/** What manages one path. */
abstract class PathBackend implements Backend {
  private readonly originals: PathOriginals;

  constructor(
    readonly kind: string,
    protected readonly surroundings: Surroundings,
  ) {
    this.originals = new PathOriginals(kind, surroundings);
  }

  abstract check(entry: ConfigEntry, checked: CheckContext): Promise<void>;
  abstract apply(entry: ConfigEntry): Promise<void>;
  abstract differs(entry: ConfigEntry): Promise<string | undefined>;

  resources(entry: ConfigEntry): readonly string[] {
    return [pathKey(entry.spec['path'])];
  }

  title(entry: ConfigEntry): string {
    return normalized(entry.spec['path']);
  }

  original(key: string, known: Originals): Promise<Original> {
    return this.originals.read(key, known);
  }

  restore(key: string, original: Original): Promise<void> {
    return this.originals.restore(key, original);
  }

  differsFromOriginal(key: string, was: Json): Promise<string | undefined> {
    return this.originals.differs(key, was);
  }
}

/** `File {path, content, mode}`: replaced as a whole; a link at the path itself is replaced, not followed. */
class FileBackend extends PathBackend {
  async check(entry: ConfigEntry, checked: CheckContext): Promise<void> {
    contentOf(entry);
    modeOf(entry, FILE_MODE);
    const { path } = entry.spec;
    if (typeof path === 'string' && path.endsWith('/'))
      throw new RefusedError('content', `path ${path} ends with "/", so it names a directory`);
    await checkPath(this.surroundings.root, entry, checked, 'directory', 'is a directory');
  }

  async apply(entry: ConfigEntry): Promise<void> {
    await ensureFile(this.surroundings.root, this.title(entry), contentOf(entry), modeOf(entry, FILE_MODE));
  }

  async differs(entry: ConfigEntry): Promise<string | undefined> {
    return fileDiffers(this.surroundings.root, this.title(entry), contentOf(entry), modeOf(entry, FILE_MODE));
  }
}

/** `Directory {path, mode}`: exists, with that mode. Its content is not its business, and is never removed with it. */
class DirectoryBackend extends PathBackend {
  async check(entry: ConfigEntry, checked: CheckContext): Promise<void> {
    modeOf(entry, DIRECTORY_MODE);
    await checkPath(this.surroundings.root, entry, checked, 'file', 'is a file');
  }

  async apply(entry: ConfigEntry): Promise<void> {
    if ((await this.differs(entry)) === undefined) return;
    await putDirectory(this.surroundings.root, this.title(entry), modeOf(entry, DIRECTORY_MODE));
  }

  async differs(entry: ConfigEntry): Promise<string | undefined> {
    const now = await pathStateAt(this.surroundings.root, this.title(entry));
    if (now.state !== 'directory') return now.state === 'absent' ? 'missing' : `is a ${now.state}`;
    const mode = modeOf(entry, DIRECTORY_MODE);
    return now.mode === mode ? undefined : `mode ${octal(now.mode)} instead of ${octal(mode)}`;
  }
}

/** `Link {path, target}`: a symbolic link. What it points to is not its business. */
class LinkBackend extends PathBackend {
  async check(entry: ConfigEntry, checked: CheckContext): Promise<void> {
    targetOf(entry);
    await checkPath(this.surroundings.root, entry, checked, 'directory', 'is a directory');
  }

  async apply(entry: ConfigEntry): Promise<void> {
    const { root } = this.surroundings;
    if ((await this.differs(entry)) === undefined) return clearTemporary(root, this.title(entry));
    await putLink(root, this.title(entry), targetOf(entry));
  }

  async differs(entry: ConfigEntry): Promise<string | undefined> {
    const now = await pathStateAt(this.surroundings.root, this.title(entry));
    if (now.state !== 'symlink') return now.state === 'absent' ? 'missing' : `is a ${now.state}`;
    const target = targetOf(entry);
    return now.target === target ? undefined : `points to ${now.target} instead of ${target}`;
  }
}

export const linkBackend: BackendFactory = {
  capabilities: () => ['kind:Link'],
  create: (surroundings) => new LinkBackend('Link', surroundings),
};

export const fileBackend: BackendFactory = {
  capabilities: () => ['kind:File'],
  create: (surroundings) => new FileBackend('File', surroundings),
};

export const directoryBackend: BackendFactory = {
  capabilities: () => ['kind:Directory'],
  create: (surroundings) => new DirectoryBackend('Directory', surroundings),
};

function contentOf(entry: ConfigEntry): Buffer {
  const { content, encoding } = entry.spec;
  if (content !== undefined && typeof content !== 'string') throw new RefusedError('content', 'content must be text');
  // A later version may know more encodings: this one must not write the text instead.
  if (encoding !== undefined && encoding !== 'base64')
    throw new RefusedError('content', `encoding ${JSON.stringify(encoding)} is unknown`);
  return Buffer.from(content ?? '', encoding ?? 'utf8');
}

function targetOf(entry: ConfigEntry): string {
  const { target } = entry.spec;
  if (typeof target !== 'string' || target === '' || target.includes('\0'))
    throw new RefusedError('content', `target ${JSON.stringify(target)} is nothing that a link can point to`);
  return target;
}
