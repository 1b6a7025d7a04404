import type { ConfigEntry } from '#libs/contracts';
import { RefusedError } from '../../ports.js';

const FOLDER = '/etc/systemd/system';
const UNIT = /^[A-Za-z0-9:_.\\@][A-Za-z0-9:_.\\@-]*\.[a-z]+$/;
const DROP_IN = /^[A-Za-z0-9_@][A-Za-z0-9:_.@-]*\.conf$/;

export interface UnitFile {
  readonly path: string;
  readonly content: Buffer;
}

/** The fields of an entry about its unit, checked. Throws Refused. */
export interface UnitEntry {
  readonly name: string;
  readonly content: string | undefined;
  readonly dropIns: readonly { readonly name: string; readonly content: string }[];
  readonly enabled: boolean | undefined;
  readonly state: 'started' | 'stopped' | undefined;
}

export function unitOf({ spec }: ConfigEntry): UnitEntry {
  const { name, content, dropIns = [], enabled, state } = spec;
  if (typeof name !== 'string' || name.length > 255 || !UNIT.test(name))
    throw new RefusedError('content', `name ${JSON.stringify(name)} is not a unit name`);
  if (content !== undefined && typeof content !== 'string') throw new RefusedError('content', 'content must be text');
  if (enabled !== undefined && typeof enabled !== 'boolean')
    throw new RefusedError('content', 'enabled must be true or false');
  if (state !== undefined && state !== 'started' && state !== 'stopped')
    throw new RefusedError('content', `state ${JSON.stringify(state)} must be started or stopped`);
  if (!Array.isArray(dropIns) || !dropIns.every(isDropIn))
    throw new RefusedError('content', 'dropIns must be a list of {name, content}, and each name must end with .conf');
  return { name, content, dropIns, enabled, state };
}

const isDropIn = (value: unknown): value is UnitEntry['dropIns'][number] => {
  const { name, content } = (value ?? {}) as Readonly<Record<string, unknown>>;
  return typeof name === 'string' && DROP_IN.test(name) && typeof content === 'string';
};

/** The files that an entry creates. Pure. Invalid parts are left out. */
export function unitFiles(entry: ConfigEntry): readonly UnitFile[] {
  const { name, content, dropIns } = entry.spec;
  if (typeof name !== 'string' || !UNIT.test(name)) return [];
  const own = typeof content === 'string' ? [{ path: `${FOLDER}/${name}`, content: Buffer.from(content, 'utf8') }] : [];
  const added = Array.isArray(dropIns)
    ? dropIns
        .filter(isDropIn)
        .map((dropIn) => ({ path: `${FOLDER}/${name}.d/${dropIn.name}`, content: Buffer.from(dropIn.content, 'utf8') }))
    : [];
  return [...own, ...added];
}

/** The paths of units from other packages, highest priority first; for `a@b.service` also `a@.service`. */
export function unitPlaces(name: string): readonly string[] {
  const template = name.replace(/@[^.]+\./, '@.');
  return [...new Set([name, template])].flatMap((one) =>
    [
      FOLDER,
      '/run/systemd/system',
      '/usr/local/lib/systemd/system',
      '/usr/lib/systemd/system',
      '/lib/systemd/system',
    ].map((folder) => `${folder}/${one}`),
  );
}
