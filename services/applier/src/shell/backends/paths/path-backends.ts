import type { ConfigEntry } from '#libs/contracts';
import type { Json, Original, Originals } from '../../../core/index.js';
import { objectRefOf } from '#libs/manifests/lean';
import { bytesContent, type Content } from '../../content.js';
import { idOf } from '../../host/names.js';
import {
  RefusedError,
  type Backend,
  type BackendFactory,
  type CheckContext,
  type SaveContext,
  type Surroundings,
} from '../../ports.js';
import { DIRECTORY } from './kind-change.js';
import { checkPath } from './path-check.js';
import { PathOriginals } from './path-originals.js';
import { removeLeftovers, ensureFile, putDirectory, putLink } from './path-changes.js';
import { attributesDiffer, isInstead, fileDiffers } from './path-differences.js';
import { pathStateAt, type DesiredAttributes } from './path-state.js';
import { normalized } from './rooted-path.js';

/**
 * Larger content, in bytes, has drifted if a rollback can write the content of the entry: the config has it, or the
 * object was downloaded because the file differs. A change overwrites such drift, so it would be kept only for a
 * rollback. Saving it could take longer than the change has, and any user who owns the file could make it that large.
 */
const LARGEST_DRIFT = 64 * 2 ** 20;

/** The common part of the backends that manage one path. */
abstract class PathBackend implements Backend {
  readonly isIndependent = true;
  protected readonly originals: PathOriginals;

  constructor(
    readonly kind: string,
    protected readonly surroundings: Surroundings,
    /** Whether a link at the path itself is followed. */
    protected readonly follow: boolean,
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

  original(key: string, _entry: ConfigEntry, saving: SaveContext): Promise<Original> {
    return this.originals.read(key, saving);
  }

  async snapshot(entry: ConfigEntry, leftMs: () => number): Promise<Originals> {
    const key = this.key(entry);
    if (await this.isLargeDrift(entry, leftMs)) return {};
    // The config in force has the content, unless the content has drifted or must be downloaded: a rollback must not
    // need NATS.
    const isInConfig = objectRefOf(entry) === undefined && (await this.differs(entry)) === undefined;
    return { [key]: await this.originals.snapshot(key, isInConfig, leftMs) };
  }

  /** Whether its content has drifted, and is too large to be kept for a rollback. */
  private async isLargeDrift(entry: ConfigEntry, leftMs: () => number): Promise<boolean> {
    const { root, contents } = this.surroundings;
    const now = await pathStateAt(root, this.title(entry), this.follow);
    if (now.state !== 'file' || now.size <= LARGEST_DRIFT) return false;
    const ref = objectRefOf(entry);
    if (ref === undefined) return true;
    // Without the object on this machine, a rollback would need NATS. Of this size, the file may have its content.
    return now.size !== contents.sizes.of(ref.sha256) && (await contents.has(ref.sha256, leftMs));
  }

  whyShared(key: string, original: Original, checked: CheckContext): Promise<string | undefined> {
    return this.originals.whyShared(key, original, checked);
  }

  restore(key: string, original: Original): Promise<void> {
    return this.originals.restore(key, original);
  }

  differsFromOriginal(key: string, was: Json): Promise<string | undefined> {
    return this.originals.differs(key, was);
  }

  /** The owner, group and mode in the entry. Throws Refused if one is invalid. */
  protected async attributes({ spec }: ConfigEntry): Promise<DesiredAttributes> {
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

/** `File {path, content, mode, owner, group}`: replaced as a whole. A link at the path itself is replaced too. */
class FileBackend extends PathBackend {
  async check(entry: ConfigEntry, checked: CheckContext): Promise<void> {
    const content = this.content(entry);
    const attributes = await this.attributes(entry);
    const { path } = entry.spec;
    if (typeof path === 'string' && path.endsWith('/'))
      throw new RefusedError('content', `path ${path} ends with "/", so it names a directory`);
    const id = `File/${entry.name}`;
    await checkPath(
      this.surroundings,
      { id, path: path as string, wrong: 'directory', desired: attributes, content },
      checked,
    );
  }

  async apply(entry: ConfigEntry): Promise<void> {
    await ensureFile(this.surroundings.root, this.title(entry), this.content(entry), await this.attributes(entry));
  }

  async differs(entry: ConfigEntry): Promise<string | undefined> {
    return fileDiffers(this.surroundings.root, this.title(entry), this.content(entry), await this.attributes(entry));
  }

  private content(entry: ConfigEntry): Content {
    const ref = objectRefOf(entry);
    if (ref !== undefined) return this.surroundings.contents.content(ref.sha256);
    if (entry.spec['contentFrom'] !== undefined)
      throw new RefusedError('content', 'contentFrom needs an object and its sha256');
    return bytesContent(contentOf(entry));
  }
}

/**
 * `Directory {path, mode, owner, group}`: exists with these attributes. A link to a directory is followed. Its content
 * is not managed, and never removed.
 */
class DirectoryBackend extends PathBackend {
  async check(entry: ConfigEntry, checked: CheckContext): Promise<void> {
    const attributes = await this.attributes(entry);
    const path = entry.spec['path'] as string;
    await checkPath(
      this.surroundings,
      { id: `Directory/${entry.name}`, path, wrong: 'file', desired: attributes, follow: true },
      checked,
    );
  }

  async apply(entry: ConfigEntry): Promise<void> {
    if ((await this.differs(entry)) === undefined) return;
    await putDirectory(this.surroundings.root, this.title(entry), await this.attributes(entry), { follow: true });
  }

  async differs(entry: ConfigEntry): Promise<string | undefined> {
    const now = await pathStateAt(this.surroundings.root, this.title(entry), true);
    if (now.state !== 'directory') return isInstead(now);
    return attributesDiffer(now, await this.attributes(entry));
  }
}

/** `Link {path, target}`: a symbolic link. Its target is not managed. */
class LinkBackend extends PathBackend {
  async check(entry: ConfigEntry, checked: CheckContext): Promise<void> {
    targetOf(entry);
    const path = entry.spec['path'] as string;
    await checkPath(this.surroundings, { id: `Link/${entry.name}`, path, wrong: 'directory', desired: {} }, checked);
  }

  async apply(entry: ConfigEntry): Promise<void> {
    const { root } = this.surroundings;
    if ((await this.differs(entry)) === undefined) return removeLeftovers(root, this.title(entry));
    await putLink(root, this.title(entry), targetOf(entry));
  }

  async differs(entry: ConfigEntry): Promise<string | undefined> {
    const now = await pathStateAt(this.surroundings.root, this.title(entry));
    if (now.state !== 'symlink') return isInstead(now);
    const target = targetOf(entry);
    return now.target === target && now.bytes === undefined
      ? undefined
      : `points to ${now.target} instead of ${target}`;
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
  // A later version may support more encodings. This one must not write the encoded text instead.
  if (encoding !== undefined && encoding !== 'base64')
    throw new RefusedError('content', `encoding ${JSON.stringify(encoding)} is unknown`);
  return Buffer.from(content ?? '', encoding ?? 'utf8');
}

function targetOf(entry: ConfigEntry): string {
  const { target } = entry.spec;
  if (typeof target !== 'string' || target === '' || target.includes('\0'))
    throw new RefusedError('content', `target ${JSON.stringify(target)} is not a valid target of a link`);
  return target;
}

function modeOf(mode: unknown): number | undefined {
  if (mode === undefined) return undefined;
  if (typeof mode !== 'string' || !/^[0-7]{3,5}$/.test(mode) || parseInt(mode, 8) > 0o7777)
    throw new RefusedError('content', `mode ${JSON.stringify(mode)} is not octal, such as "0644"`);
  return parseInt(mode, 8);
}
