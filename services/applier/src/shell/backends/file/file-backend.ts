import type { ConfigEntry } from '#libs/contracts';
import type { Json, Original, Originals } from '../../../core/index.js';
import { Refused, type Backend, type BackendFactory, type Checked, type Surroundings } from '../../ports.js';
import { checkPath, modeOf, pathKey, PathOriginals } from '../paths/path-originals.js';
import { normalized } from '../paths/rooted-path.js';
import { ensureFile, fileDiffers } from '../paths/wanted-file.js';

const DEFAULT_MODE = 0o644;

/** `File {path, content, mode}`: replaced as a whole; a link at the path itself is replaced, not followed. */
class FileBackend implements Backend {
  readonly kind = 'File';
  private readonly originals: PathOriginals;

  constructor(private readonly surroundings: Surroundings) {
    this.originals = new PathOriginals(this.kind, surroundings);
  }

  resources(entry: ConfigEntry): readonly string[] {
    return [pathKey(entry.spec['path'])];
  }

  title(entry: ConfigEntry): string {
    return normalized(entry.spec['path']);
  }

  async check(entry: ConfigEntry, checked: Checked): Promise<void> {
    contentOf(entry);
    modeOf(entry, DEFAULT_MODE);
    const { path } = entry.spec;
    if (typeof path === 'string' && path.endsWith('/'))
      throw new Refused('content', `path ${path} is one of a directory`);
    await checkPath(this.surroundings.root, entry, checked, 'directory', 'is a directory');
  }

  original(key: string, known: Originals): Promise<Original> {
    return this.originals.read(key, known);
  }

  putBack(key: string, original: Original): Promise<void> {
    return this.originals.putBack(key, original);
  }

  differsFromOriginal(key: string, was: Json): Promise<string | undefined> {
    return this.originals.differs(key, was);
  }

  async apply(entry: ConfigEntry): Promise<void> {
    await ensureFile(this.surroundings.root, this.title(entry), contentOf(entry), modeOf(entry, DEFAULT_MODE));
  }

  async differs(entry: ConfigEntry): Promise<string | undefined> {
    return fileDiffers(this.surroundings.root, this.title(entry), contentOf(entry), modeOf(entry, DEFAULT_MODE));
  }
}

export const fileBackend: BackendFactory = {
  kind: 'File',
  capabilities: () => ['kind:File'],
  create: (surroundings) => new FileBackend(surroundings),
};

function contentOf(entry: ConfigEntry): Buffer {
  const { content } = entry.spec;
  if (content !== undefined && typeof content !== 'string') throw new Refused('content', 'content is not a text');
  return Buffer.from(content ?? '', 'utf8');
}
