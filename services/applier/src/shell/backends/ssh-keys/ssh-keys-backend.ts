import { join } from 'node:path';
import type { ConfigEntry } from '#libs/contracts';
import type { Json, Original } from '../../../core/index.js';
import { mayWrite } from '../../host/host.js';
import {
  RefusedError,
  type Backend,
  type BackendFactory,
  type CheckContext,
  type SaveContext,
  type Surroundings,
} from '../../ports.js';
import { blocksOf, isHalf, mended, withBlock, withoutBlocks } from '../marked-block.js';
import { normalized } from '../paths/rooted-path.js';
import { removeLeftovers, putDirectory, putFile, remove } from '../paths/path-changes.js';
import { isInstead } from '../paths/path-differences.js';
import { fileAt, pathStateAt, type DesiredAttributes } from '../paths/path-state.js';
import { folderOfUser, homesOf, isInPasswd, pathsIn, userOf, type SshPaths, type SshUser } from './ssh-user.js';

const PREFIX = 'ssh-keys:';
/** In bytes. It is read as a whole, and its user can make it larger than the memory. */
const LONGEST = 16 * 2 ** 20;
const USER = /^[a-z_][a-z0-9_.-]{0,30}\$?$/;

/** What did not exist before Sluice. It is removed again unless others added something to it. */
interface SshKeysOriginal {
  readonly madeFile: boolean;
  readonly madeFolder: boolean;
  /** The home of the user, if /etc/passwd had it then. */
  readonly localHome?: string;
}

/** `SshKeys {user, keys}`: marked lines in the user's authorized_keys. All other lines stay unchanged. */
class SshKeysBackend implements Backend {
  readonly kind = 'SshKeys';
  readonly isIndependent = true;

  private readonly root: string;

  constructor(surroundings: Surroundings) {
    this.root = surroundings.root;
  }

  resources(entry: ConfigEntry): readonly string[] {
    return [`${PREFIX}${String(entry.spec['user'])}/${entry.name}`];
  }

  folderOf(key: string): Promise<string | undefined> {
    return folderOfUser(this.root, userOfKey(key));
  }

  title(entry: ConfigEntry): string {
    return `SshKeys/${entry.name}`;
  }

  async check(entry: ConfigEntry, { config }: CheckContext): Promise<void> {
    keysOf(entry);
    const user = await this.user(entry);
    const file = config.fragments.find(
      ({ kind, spec }) =>
        ['File', 'Directory', 'Link'].includes(kind) && normalized(spec['path']) === normalized(user.file),
    );
    if (file !== undefined) throw new RefusedError('content', `${file.kind}/${file.name} also manages ${user.file}`);
    const now = await pathStateAt(this.root, user.file);
    if (now.state === 'file' && now.links > 1)
      throw new RefusedError(
        'node',
        `${user.file} has ${now.links} hard links, and the others would keep the old content: replace it with a copy that has none`,
      );
    requireMarks(mended((await this.text(user)) ?? '', this.title(entry), keysOf(entry)), this.title(entry), user);
  }

  async original(key: string, _entry: ConfigEntry, { originals }: SaveContext): Promise<Original> {
    const name = nameOfKey(key);
    const user = await userOf(this.root, userOfKey(key));
    const file = await pathStateAt(this.root, user.file);
    const folder = await pathStateAt(this.root, user.folder);
    // The file that another fragment for this user created is removed with the last of them.
    const others = Object.entries(originals)
      .filter(([other]) => other.startsWith(`${PREFIX}${user.name}/`))
      .map(([, { was }]) => was as unknown as SshKeysOriginal);
    const was: SshKeysOriginal = {
      madeFile: file.state === 'absent' || others.some(({ madeFile }) => madeFile),
      madeFolder: folder.state === 'absent' || others.some(({ madeFolder }) => madeFolder),
      ...((await isInPasswd(this.root, user.name)) === true ? { localHome: user.home } : {}),
    };
    if (blocksOf((await this.text(user)) ?? '', name).length > 0)
      throw new RefusedError('node', `${user.file} already has keys of ${name} that this applier did not write`);
    return { kind: this.kind, was: { ...was }, made: [] };
  }

  async whyShared(key: string, { was }: Original): Promise<undefined> {
    const place = await this.placeOf(key, was as unknown as SshKeysOriginal);
    requireMarks((await this.text(place)) ?? '', nameOfKey(key), place);
    return undefined;
  }

  async restore(key: string, original: Original): Promise<void> {
    const was = original.was as unknown as SshKeysOriginal;
    const { folder, file } = await this.placeOf(key, was);
    const text = await this.text({ file });
    requireMarks(text ?? '', nameOfKey(key), { file });
    await removeLeftovers(this.root, file);
    if (text !== undefined) {
      const rest = withoutBlocks(text, nameOfKey(key));
      if (rest === '' && was.madeFile) await remove(this.root, file);
      else if (rest !== text) await this.write(file, rest);
    }
    if (was.madeFolder) await remove(this.root, folder);
  }

  async differsFromOriginal(key: string, was: Json): Promise<string | undefined> {
    const { file } = await this.placeOf(key, was as unknown as SshKeysOriginal);
    const text = (await this.text({ file })) ?? '';
    return blocksOf(text, nameOfKey(key)).length === 0 && !isHalf(text, nameOfKey(key))
      ? undefined
      : `its keys are still in ${file}`;
  }

  /**
   * Where keys that were added are now. If the user was removed from /etc/passwd, they can only be in the home that it
   * had: where that is gone, nothing is left of them. Any other user may still exist, and the keys with it.
   */
  private async placeOf(key: string, { localHome }: SshKeysOriginal): Promise<SshPaths> {
    const user = userOfKey(key);
    try {
      return await userOf(this.root, user);
    } catch (error) {
      if (localHome !== undefined && (await isInPasswd(this.root, user)) === false) return pathsIn(localHome);
      const name = nameOfKey(key);
      const wayOut = `create it until ${name} is deleted, or make the name service that has it answer`;
      throw new RefusedError('node', `${name} cannot be deleted: ${(error as Error).message}: ${wayOut}`);
    }
  }

  async apply(entry: ConfigEntry): Promise<void> {
    const user = await this.user(entry);
    await removeLeftovers(this.root, user.file);
    if ((await this.differs(entry)) === undefined) return;
    if ((await pathStateAt(this.root, user.folder)).state === 'absent')
      await putDirectory(this.root, user.folder, { mode: 0o700, uid: user.uid, gid: user.gid });
    const now = await this.text(user);
    const text = now === undefined ? undefined : mended(now, this.title(entry), keysOf(entry));
    requireMarks(text ?? '', this.title(entry), user);
    // A new file must belong to the user alone, or sshd ignores it.
    const attributes = text === undefined ? { mode: 0o600, uid: user.uid, gid: user.gid } : {};
    await this.write(user.file, withBlock(text ?? '', this.title(entry), keysOf(entry)), attributes);
  }

  async differs(entry: ConfigEntry): Promise<string | undefined> {
    const user = await this.user(entry);
    const text = (await this.text(user)) ?? '';
    const [block, ...more] = blocksOf(text, this.title(entry));
    if (isHalf(text, this.title(entry))) return `a mark of its keys is missing in ${user.file}`;
    if (block === undefined) return `its keys are missing in ${user.file}`;
    // An old copy would keep a key that was removed.
    if (more.length > 0) return `its keys are ${more.length + 1} times in ${user.file}`;
    const keys = keysOf(entry);
    return block.length === keys.length && block.every((line, i) => line === keys[i])
      ? undefined
      : `other keys in ${user.file}`;
  }

  /** The content of the file; undefined if it does not exist. */
  private async text({ file }: Pick<SshPaths, 'file'>): Promise<string | undefined> {
    const { now, content } = await fileAt(this.root, file, { wants: ({ size }) => size <= LONGEST });
    if (now.state === 'absent') return undefined;
    if (now.state !== 'file') throw new RefusedError('node', `${file} ${isInstead(now)}`);
    if (content === undefined)
      throw new RefusedError(
        'node',
        `${file} has ${now.size} bytes, and at most ${LONGEST} are read: remove what does not belong there`,
      );
    // Byte for byte, because the lines of others need not be UTF-8.
    return content.toString('latin1');
  }

  /** Keeps the mode and owner of an existing file. */
  private async write(file: string, text: string, attributes: DesiredAttributes = {}): Promise<void> {
    await putFile(this.root, file, Buffer.from(text, 'latin1'), attributes);
  }

  private user({ spec }: ConfigEntry): Promise<SshUser> {
    const { user } = spec;
    if (typeof user !== 'string' || !USER.test(user))
      throw new RefusedError('content', `user ${JSON.stringify(user)} is not a valid user name`);
    return userOf(this.root, user);
  }
}

/** Available if there are users whose homes can be written. */
export const sshKeysBackend: BackendFactory = {
  capabilities: ({ root }) => (homesOf(root).some((home) => mayWrite(join(root, home))) ? ['kind:SshKeys'] : []),
  create: (surroundings) => new SshKeysBackend(surroundings),
};

/** Without one of its marks, the keys that were added cannot be told from those of others, and would stay forever. */
function requireMarks(text: string, name: string, { file }: Pick<SshPaths, 'file'>): void {
  if (!isHalf(text, name)) return;
  throw new RefusedError(
    'node',
    `${file} has only one of the two marks of ${name}, so its keys are not known there: put the other back (# BEGIN Sluice ${name} before its keys, # END Sluice ${name} after them), or remove its keys with the mark`,
  );
}

const nameOfKey = (key: string): string => `SshKeys/${key.slice(key.indexOf('/') + 1)}`;
const userOfKey = (key: string): string => key.slice(PREFIX.length, key.indexOf('/'));

/** The lines, in latin1 like the file. */
function keysOf({ spec }: ConfigEntry): readonly string[] {
  const { keys } = spec;
  if (
    !Array.isArray(keys) ||
    keys.length === 0 ||
    !keys.every((key) => typeof key === 'string' && /^[^#\s][^\n\r\0]*$/.test(key))
  ) {
    throw new RefusedError('content', 'keys must be a list of lines in the format of authorized_keys');
  }
  return (keys as readonly string[]).map((key) => Buffer.from(key, 'utf8').toString('latin1'));
}
