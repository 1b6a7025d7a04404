import { join } from 'node:path';
import type { ConfigEntry } from '#libs/contracts';
import type { Original, Originals } from '../../../core/index.js';
import { mayWrite } from '../../host/host.js';
import { RefusedError, type Backend, type BackendFactory, type CheckContext, type Surroundings } from '../../ports.js';
import { blockOf, withBlock, withoutBlock } from '../marked-block.js';
import { normalized } from '../paths/rooted-path.js';
import { clearTemporary, fileAt, putDirectory, putFile, remove, pathStateAt } from '../paths/path-state.js';
import { homesOf, userOf, type SshUser } from './ssh-user.js';

const PREFIX = 'ssh-keys:';
const USER = /^[a-z_][a-z0-9_.-]{0,30}\$?$/;

/** What there was not before Sluice: it goes again when nothing of others is in it. */
interface SshKeysOriginal {
  readonly madeFile: boolean;
  readonly madeFolder: boolean;
}

/**
 * `SshKeys {user, keys}`: lines of its own in the user's authorized_keys, between marks; all other lines are left
 * alone.
 */
class SshKeysBackend implements Backend {
  readonly kind = 'SshKeys';

  private readonly root: string;

  constructor(surroundings: Surroundings) {
    this.root = surroundings.root;
  }

  resources(entry: ConfigEntry): readonly string[] {
    return [`${PREFIX}${String(entry.spec['user'])}/${entry.name}`];
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
    await this.text(user);
  }

  async original(key: string, known: Originals): Promise<Original> {
    const { name, user } = await this.ofKey(key);
    const file = await pathStateAt(this.root, user.file);
    const folder = await pathStateAt(this.root, user.folder);
    // What another fragment for this user made goes with the last of them.
    const others = Object.entries(known)
      .filter(([other]) => other.startsWith(`${PREFIX}${user.name}/`))
      .map(([, { was }]) => was as unknown as SshKeysOriginal);
    const was: SshKeysOriginal = {
      madeFile: file.state === 'absent' || others.some(({ madeFile }) => madeFile),
      madeFolder: folder.state === 'absent' || others.some(({ madeFolder }) => madeFolder),
    };
    if (blockOf((await this.text(user)) ?? '', name) !== undefined)
      throw new RefusedError('node', `${user.file} already has keys of ${name} that this applier did not write`);
    return { kind: this.kind, was: { ...was }, made: [] };
  }

  async restore(key: string, original: Original): Promise<void> {
    const { name, user } = await this.ofKey(key);
    const was = original.was as unknown as SshKeysOriginal;
    const text = await this.text(user);
    await clearTemporary(this.root, user.file);
    if (text !== undefined) {
      const rest = withoutBlock(text, name);
      if (rest === '' && was.madeFile) await remove(this.root, user.file);
      else if (rest !== text) await this.write(user, rest);
    }
    if (was.madeFolder) await remove(this.root, user.folder);
  }

  async differsFromOriginal(key: string): Promise<string | undefined> {
    const { name, user } = await this.ofKey(key);
    return blockOf((await this.text(user)) ?? '', name) === undefined
      ? undefined
      : `its keys are still in ${user.file}`;
  }

  async apply(entry: ConfigEntry): Promise<void> {
    const user = await this.user(entry);
    await clearTemporary(this.root, user.file);
    if ((await this.differs(entry)) === undefined) return;
    if ((await pathStateAt(this.root, user.folder)).state === 'absent')
      await putDirectory(this.root, user.folder, { mode: 0o700, uid: user.uid, gid: user.gid });
    await this.write(user, withBlock((await this.text(user)) ?? '', this.title(entry), keysOf(entry)));
  }

  async differs(entry: ConfigEntry): Promise<string | undefined> {
    const user = await this.user(entry);
    const found = blockOf((await this.text(user)) ?? '', this.title(entry));
    if (found === undefined) return `its keys are missing in ${user.file}`;
    const keys = keysOf(entry);
    return found.length === keys.length && found.every((line, i) => line === keys[i])
      ? undefined
      : `other keys in ${user.file}`;
  }

  /** The content of the file; undefined where there is none. */
  private async text(user: SshUser): Promise<string | undefined> {
    const {
      now: { state },
      content,
    } = await fileAt(this.root, user.file, { wants: () => true });
    if (state === 'absent') return undefined;
    if (content === undefined) throw new RefusedError('node', `${user.file} is a ${state}`);
    // Byte for byte: what others wrote there need not be UTF-8.
    return content.toString('latin1');
  }

  /** With the mode and owner that it has; sshd takes a new one only if it is the user's alone. */
  private async write(user: SshUser, text: string): Promise<void> {
    const isNew = (await pathStateAt(this.root, user.file)).state === 'absent';
    const asked = isNew ? { mode: 0o600, uid: user.uid, gid: user.gid } : {};
    await putFile(this.root, user.file, Buffer.from(text, 'latin1'), asked);
  }

  private user({ spec }: ConfigEntry): Promise<SshUser> {
    const { user } = spec;
    if (typeof user !== 'string' || !USER.test(user))
      throw new RefusedError('content', `user ${JSON.stringify(user)} is not a valid user name`);
    return userOf(this.root, user);
  }

  private async ofKey(key: string): Promise<{ readonly name: string; readonly user: SshUser }> {
    const slash = key.indexOf('/');
    return {
      name: `SshKeys/${key.slice(slash + 1)}`,
      user: await userOf(this.root, key.slice(PREFIX.length, slash)),
    };
  }
}

/** Where there are users whose homes can be written. */
export const sshKeysBackend: BackendFactory = {
  capabilities: ({ root }) => (homesOf(root).some((home) => mayWrite(join(root, home))) ? ['kind:SshKeys'] : []),
  create: (surroundings) => new SshKeysBackend(surroundings),
};

/** The lines, in latin1 as the file is handled. */
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
