import type { ConfigEntry } from '#libs/contracts';
import type { Json, Original, Originals } from '../../../core/index.js';
import { idOf } from '../../host/names.js';
import { RefusedError, type Backend, type BackendFactory, type CheckContext, type Surroundings } from '../../ports.js';
import { checkPath } from './path-check.js';
import { DIRECTORY, PathOriginals } from './path-originals.js';
import {
  attributesDiffer,
  clearTemporary,
  ensureFile,
  fileDiffers,
  pathStateAt,
  putDirectory,
  putLink,
  type AskedAttributes,
} from './path-state.js';
import { normalized } from './rooted-path.js';

/** What manages one path. */
abstract class PathBackend implements Backend {
  protected readonly originals: PathOriginals;

  constructor(
    readonly kind: string,
    protected readonly surroundings: Surroundings,
    /** A link at the path itself is followed. */
    private readonly follow: boolean,
  ) {
    this.originals = new PathOriginals(kind, surroundings, follow);
  }

  abstract check(entry: ConfigEntry, checked: CheckContext): Promise<void>;
  abstract apply(entry: ConfigEntry): Promise<void>;
  abstract differs(entry: ConfigEntry): Promise<string | undefined>;

  resources(entry: ConfigEntry): readonly string[] {
    return [this.key(entry)];
  }

  title(entry: ConfigEntry): string {
    return normalized(entry.spec['path']);
  }

  original(key: string, known: Originals): Promise<Original> {
    return this.originals.read(key, known);
  }

  async snapshot(entry: ConfigEntry): Promise<Originals> {
    const key = this.key(entry);
    const isDrifted = (await this.differs(entry)) !== undefined;
    return { [key]: await this.originals.snapshot(key, !isDrifted) };
  }

  restore(key: string, original: Original): Promise<void> {
    return this.originals.restore(key, original);
  }

  differsFromOriginal(key: string, was: Json): Promise<string | undefined> {
    return this.originals.differs(key, was);
  }

  /** What the entry says of owner, group and mode. Throws Refused when that is none. */
  protected async asked({ spec }: ConfigEntry): Promise<AskedAttributes> {
    const { root } = this.surroundings;
    const mode = modeOf(spec['mode']);
    const uid = await idOf(root, 'passwd', spec['owner']);
    const gid = await idOf(root, 'group', spec['group']);
    return {
      ...(mode === undefined ? {} : { mode }),
      ...(uid === undefined ? {} : { uid }),
      ...(gid === undefined ? {} : { gid }),
      ...(spec['hardLinks'] === 'break' ? { breaksLinks: true } : {}),
    };
  }

  private key(entry: ConfigEntry): string {
    return this.surroundings.aliases.key(entry.spec['path'], this.follow);
  }
}

/** `File {path, content, mode, owner, group}`: replaced as a whole; a link at the path itself is replaced, too. */
class FileBackend extends PathBackend {
  async check(entry: ConfigEntry, checked: CheckContext): Promise<void> {
    const content = contentOf(entry);
    const asked = await this.asked(entry);
    const { path } = entry.spec;
    if (typeof path === 'string' && path.endsWith('/'))
      throw new RefusedError('content', `path ${path} ends with "/", so it names a directory`);
    const id = `File/${entry.name}`;
    await checkPath(this.surroundings, { id, path: path as string, wrong: 'directory', asked, content }, checked);
  }

  async apply(entry: ConfigEntry): Promise<void> {
    await ensureFile(this.surroundings.root, this.title(entry), contentOf(entry), await this.asked(entry));
  }

  async differs(entry: ConfigEntry): Promise<string | undefined> {
    return fileDiffers(this.surroundings.root, this.title(entry), contentOf(entry), await this.asked(entry));
  }
}

/**
 * `Directory {path, mode, owner, group}`: exists, with these; a link to a directory is followed. Its content is not its
 * business, and is never removed with it.
 */
class DirectoryBackend extends PathBackend {
  async check(entry: ConfigEntry, checked: CheckContext): Promise<void> {
    const asked = await this.asked(entry);
    const path = entry.spec['path'] as string;
    await checkPath(
      this.surroundings,
      { id: `Directory/${entry.name}`, path, wrong: 'file', asked, follow: true },
      checked,
    );
  }

  async apply(entry: ConfigEntry): Promise<void> {
    if ((await this.differs(entry)) === undefined) return;
    await putDirectory(this.surroundings.root, this.title(entry), await this.asked(entry), { follow: true });
  }

  async differs(entry: ConfigEntry): Promise<string | undefined> {
    const now = await pathStateAt(this.surroundings.root, this.title(entry), true);
    if (now.state !== 'directory') return now.state === 'absent' ? 'missing' : `is a ${now.state}`;
    return attributesDiffer(now, await this.asked(entry));
  }
}

/** `Link {path, target}`: a symbolic link. What it points to is not its business. */
class LinkBackend extends PathBackend {
  async check(entry: ConfigEntry, checked: CheckContext): Promise<void> {
    targetOf(entry);
    const path = entry.spec['path'] as string;
    await checkPath(this.surroundings, { id: `Link/${entry.name}`, path, wrong: 'directory', asked: {} }, checked);
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
  create: (surroundings) => new LinkBackend('Link', surroundings, false),
};

export const fileBackend: BackendFactory = {
  capabilities: () => ['kind:File'],
  create: (surroundings) => new FileBackend('File', surroundings, false),
};

export const directoryBackend: BackendFactory = {
  capabilities: () => ['kind:Directory'],
  create: (surroundings) => new DirectoryBackend(DIRECTORY, surroundings, true),
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

function modeOf(mode: unknown): number | undefined {
  if (mode === undefined) return undefined;
  if (typeof mode !== 'string' || !/^[0-7]{3,5}$/.test(mode) || parseInt(mode, 8) > 0o7777)
    throw new RefusedError('content', `mode ${JSON.stringify(mode)} is not octal, such as "0644"`);
  return parseInt(mode, 8);
}
