import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fieldsOf, type Lookup } from '../../host/names.js';
import { RefusedError } from '../../ports.js';
import { normalized, wayTo } from '../paths/rooted-path.js';

/** A user as the machine knows it. */
export interface SshUser {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
  /** As the machine names it. */
  readonly home: string;
  /** In the home. */
  readonly folder: string;
  readonly file: string;
}

/** The user of that name. Throws Refused('node') when there is none. */
export async function userOf(root: string, name: string, lookUp?: Lookup): Promise<SshUser> {
  const [, , uid = '', gid = '', , home = ''] = (await fieldsOf(root, 'passwd', name, lookUp)) ?? [];
  if (!/^\d+$/.test(uid) || !/^\d+$/.test(gid) || !home.startsWith('/'))
    throw new RefusedError('node', `there is no user ${name} on this machine`);
  const folder = normalized(`${home}/.ssh`);
  const way = await wayTo(root, folder);
  if ('missing' in way) throw new RefusedError('node', `the home ${home} of ${name} does not exist`);
  way.parent.close();
  return { name, uid: Number(uid), gid: Number(gid), home, folder, file: `${folder}/authorized_keys` };
}

/** Homes of those who log in: root, and users who are people. */
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
