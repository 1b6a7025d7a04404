import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fieldsOf, type Lookup } from '../../host/names.js';
import { RefusedError } from '../../ports.js';
import { contentAt } from '../paths/path-state.js';
import { normalized, resolvePath } from '../paths/rooted-path.js';

/** A user of the machine. */
export interface SshUser extends SshPaths {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
  /** The name as the machine spells it. */
  readonly home: string;
}

/** The paths of the keys in a home. */
export interface SshPaths {
  readonly folder: string;
  readonly file: string;
}

/** The user with that name. Throws Refused('node') if there is none, or if nobody can log in with keys as this user. */
export async function userOf(root: string, name: string, lookUp?: Lookup): Promise<SshUser> {
  const [, , uid = '', gid = '', , home = ''] = (await fieldsOf(root, 'passwd', name, lookUp)) ?? [];
  if (!/^\d+$/.test(uid) || !/^\d+$/.test(gid))
    throw new RefusedError('node', `there is no user ${name} on this machine`);
  if (!home.startsWith('/'))
    throw new RefusedError(
      'node',
      `the user ${name} has ${home === '' ? 'no home directory' : `the home directory ${JSON.stringify(home)}, which is not absolute`}: correct it on the node, for example with usermod --home`,
    );
  const paths = pathsIn(home);
  const way = await resolvePath(root, paths.folder);
  if ('missing' in way) throw new RefusedError('node', `the home directory ${home} of ${name} does not exist`);
  way.parent.close();
  return { name, uid: Number(uid), gid: Number(gid), home, ...paths };
}

/** The folder with the keys of a user, which may not exist; undefined if there is no such user. */
export async function folderOfUser(root: string, name: string): Promise<string | undefined> {
  const home = (await fieldsOf(root, 'passwd', name))?.[5];
  return home?.startsWith('/') === true ? pathsIn(home).folder : undefined;
}

export function pathsIn(home: string): SshPaths {
  const folder = normalized(`${home}/.ssh`);
  return { folder, file: `${folder}/authorized_keys` };
}

/**
 * Whether /etc/passwd has the user; undefined if it cannot be read. Other name services do not tell: for `getent`, a
 * user whom nobody knows and a service that is down are the same.
 */
export async function isInPasswd(root: string, name: string): Promise<boolean | undefined> {
  const passwd = await contentAt(root, '/etc/passwd').catch(() => undefined);
  return passwd
    ?.toString('utf8')
    .split('\n')
    .some((line) => line.startsWith(`${name}:`));
}

/** The homes of users who log in: root and people. */
export function homesOf(root: string): readonly string[] {
  try {
    const users = readFileSync(join(root, 'etc/passwd'), 'utf8')
      .split('\n')
      .map((line) => line.split(':'));
    return users.flatMap(([, , uid, , , home = '']) =>
      (uid === '0' || Number(uid) >= FIRST_PERSON) && home.startsWith('/') ? [home] : [],
    );
  } catch {
    return [];
  }
}

const FIRST_PERSON = 1_000;
