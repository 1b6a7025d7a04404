import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { RefusedError } from '../../ports.js';
import { contentAt } from '../paths/path-state.js';
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

/**
 * The user of that name: of /etc/passwd below this root, and where the root is the machine's own also whom its name
 * services know (LDAP, systemd-homed …). Throws Refused('node') when there is none.
 */
export async function userOf(
  root: string,
  name: string,
  lookUp: Lookup = root === '/' ? getent : () => Promise.resolve(''),
): Promise<SshUser> {
  const passwd = await contentAt(root, '/etc/passwd').catch(() => undefined);
  const inText = (text: string): readonly string[] | undefined =>
    text
      .split('\n')
      .map((line) => line.split(':'))
      .find(([user]) => user === name);
  const fields = inText(passwd?.toString('utf8') ?? '') ?? inText(await lookUp(name));
  const [, , uid, gid, , home = ''] = fields ?? [];
  if (fields === undefined || !/^\d+$/.test(uid ?? '') || !/^\d+$/.test(gid ?? '') || !home.startsWith('/'))
    throw new RefusedError('node', `there is no user ${name} on this machine`);
  const folder = normalized(`${home}/.ssh`);
  const way = await wayTo(root, folder);
  if ('missing' in way) throw new RefusedError('node', `the home ${home} of ${name} does not exist`);
  way.parent.close();
  return { name, uid: Number(uid), gid: Number(gid), home, folder, file: `${folder}/authorized_keys` };
}

/** A line as in /etc/passwd for a name, or nothing. */
export type Lookup = (name: string) => Promise<string>;

const LOOKUP_MS = 10_000;

/** A name service that does not answer, or no getent: nobody is found, and the change says so. */
const getent: Lookup = (name) =>
  new Promise((resolve) => {
    execFile('getent', ['passwd', name], { timeout: LOOKUP_MS, killSignal: 'SIGKILL' }, (error, out) =>
      resolve(error === null ? out : ''),
    );
  });

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
