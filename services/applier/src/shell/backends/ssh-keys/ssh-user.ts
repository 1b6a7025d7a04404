import { readFileSync } from 'node:fs';
import { realpath } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { Refused } from '../../ports.js';
import { contentAt } from '../paths/standing.js';
import { isMissing } from '../../state/whole-file.js';

/** A user as /etc/passwd has it. */
export interface SshUser {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
  /** As the machine names it. */
  readonly home: string;
  /** The home as a root: what the user makes a link of leads nowhere out of it. */
  readonly root: string;
}

/** The user of that name below this root. Throws Refused('node') when there is none. */
export async function userOf(root: string, name: string): Promise<SshUser> {
  const passwd = await contentAt(root, '/etc/passwd').catch(() => undefined);
  const fields = passwd?.toString('utf8').split('\n').map((line) => line.split(':')).find(([user]) => user === name);
  const [, , uid, gid, , home = ''] = fields ?? [];
  if (fields === undefined || !/^\d+$/.test(uid ?? '') || !/^\d+$/.test(gid ?? '') || !home.startsWith('/')) throw new Refused('node', `there is no user ${name} in /etc/passwd`);
  const top = await realpath(root);
  const real = await realpath(join(root, home)).catch((error: unknown) => (isMissing(error) ? undefined : Promise.reject(error)));
  if (real === undefined) throw new Refused('node', `the home ${home} of ${name} is not there`);
  if (real !== top && !real.startsWith(top.endsWith(sep) ? top : top + sep)) throw new Refused('node', `the home ${home} of ${name} is outside of the root`);
  return { name, uid: Number(uid), gid: Number(gid), home, root: real };
}

/** Homes of those who log in: root, and users who are people. */
export function homesOf(root: string): readonly string[] {
  try {
    const users = readFileSync(join(root, 'etc/passwd'), 'utf8').split('\n').map((line) => line.split(':'));
    return users.flatMap(([, , uid, , , home = '']) => ((uid === '0' || Number(uid) >= FIRST_PERSON) && home.startsWith('/') ? [home] : []));
  } catch {
    return [];
  }
}

const FIRST_PERSON = 1_000;
