import { execFile } from 'node:child_process';
import { RefusedError } from '../ports.js';
import { contentAt } from '../backends/paths/path-state.js';

export type NameDatabase = 'passwd' | 'group';
/** A line of the database for a name, or nothing. */
export type Lookup = (database: NameDatabase, name: string) => Promise<string>;

const LOOKUP_MS = 10_000;

/** A name service that does not answer, or no getent: nobody is found, and the change says so. */
export const getent: Lookup = (database, name) =>
  new Promise((resolve) => {
    execFile('getent', [database, name], { timeout: LOOKUP_MS, killSignal: 'SIGKILL' }, (error, out) =>
      resolve(error === null ? out : ''),
    );
  });

const nobody: Lookup = () => Promise.resolve('');

/**
 * The fields of a name: of /etc/passwd or /etc/group below this root, and where the root is the machine's own also of
 * its name services (LDAP, systemd-homed …). Undefined where there is none.
 */
export async function fieldsOf(
  root: string,
  database: NameDatabase,
  name: string,
  lookUp: Lookup = root === '/' ? getent : nobody,
): Promise<readonly string[] | undefined> {
  const content = await contentAt(root, `/etc/${database}`).catch(() => undefined);
  const inText = (text: string): readonly string[] | undefined =>
    text
      .split('\n')
      .map((line) => line.split(':'))
      .find(([first]) => first === name);
  return inText(content?.toString('utf8') ?? '') ?? inText(await lookUp(database, name));
}

const NUMBER = /^\d{1,10}$/;
/** The largest number says "nobody in particular" to the kernel. */
const MOST_ID = 2 ** 32 - 2;

/** The number of a user or group; a number is its own. Throws Refused('node') when there is no such name. */
export async function idOf(root: string, database: NameDatabase, name: unknown): Promise<number | undefined> {
  if (name === undefined) return undefined;
  const what = database === 'passwd' ? 'user' : 'group';
  if (typeof name !== 'string' || name === '')
    throw new RefusedError('content', `${what} ${JSON.stringify(name)} is not a name or number`);
  const text = NUMBER.test(name) ? name : (await fieldsOf(root, database, name))?.[2];
  if (text === undefined || !NUMBER.test(text))
    throw new RefusedError('node', `there is no ${what} ${name} on this machine`);
  if (Number(text) > MOST_ID) throw new RefusedError('content', `${what} ${name} is not a valid number`);
  return Number(text);
}
