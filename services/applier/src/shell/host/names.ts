import { RefusedError } from '../ports.js';
import { contentAt } from '../backends/paths/path-state.js';
import { getent } from './getent.js';

export type NameDatabase = 'passwd' | 'group';
/** The line of the database for a name, or nothing. */
export type Lookup = (database: NameDatabase, name: string) => Promise<string>;

const LOOKUP_MS = 10_000;

/**
 * If a name service does not answer, or there is no getent, the name is not found, and the change fails with that
 * reason.
 */
const inNameServices: Lookup = async (database, name) => {
  const answer = await getent([database, name], LOOKUP_MS);
  return typeof answer === 'string' ? '' : answer.lines.join('\n');
};

const nobody: Lookup = () => Promise.resolve('');

/**
 * The fields of a name: from /etc/passwd or /etc/group below this root, and if the root is the machine's own, also from
 * its name services (LDAP, systemd-homed …). Undefined if there is no such name.
 */
export async function fieldsOf(
  root: string,
  database: NameDatabase,
  name: string,
  lookUp: Lookup = root === '/' ? inNameServices : nobody,
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
/** The kernel treats the largest number as "no particular user". */
const MOST_ID = 2 ** 32 - 2;

/** The number of a user or group. A number stands for itself. Throws Refused('node') if the name does not exist. */
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
