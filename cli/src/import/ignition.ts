import type { Contents } from './data-url.js';
import type { Place } from './place.js';

/** What a field says, and which MachineConfig says it. */
export interface Said {
  readonly value: string | number | boolean;
  readonly where: string;
}

/** What Ignition tells apart by a path or by a unit's name. */
export interface Entry {
  readonly kind: 'file' | 'directory' | 'link' | 'unit';
  readonly name: string;
  /** The first MachineConfig that names it: a fragment is called by it, and is called so however many are merged into it. */
  readonly config: string;
  readonly where: string;
  /** By what they are called in words. */
  readonly fields: ReadonlyMap<string, Said>;
  readonly appended: readonly Contents[];
  /** Half of what was meant may be worse than nothing: a key without its mode, a path that is made empty. */
  readonly isWhole: boolean;
}

export interface Ignition {
  readonly entries: readonly Entry[];
  readonly keys: readonly { readonly user: string; readonly where: string; readonly lines: readonly string[] }[];
  readonly kernelArguments: readonly string[];
}

/** What a drop-in's field begins with. */
export const DROP_IN = 'drop-in ';
const MAX_MODE = 0o7777;
const KNOWN_VERSION = /^[23]\.\d+\.\d+(-[0-9a-z.-]+)?$/;
const NOTHING: Ignition = { entries: [], keys: [], kernelArguments: [] };

/**
 * Reads the Ignition config of a MachineConfig. Another version than 2.x and 3.x is refused whole, as Ignition does: what its fields mean
 * is not known, and the versions that there are differ in just that. Where none is named, what is said is clear in both.
 */
export function readIgnition(config: Place, name: string): Ignition {
  const ignition = config.map('ignition', 'ignition.');
  const version = ignition.raw('version');
  if (version !== undefined && version !== null && !(typeof version === 'string' && KNOWN_VERSION.test(version))) {
    ignition.say(
      `ignition.version ${JSON.stringify(version)} is not known; known are "2.x.y" and "3.x.y": config is left out`,
    );
    return NOTHING;
  }
  ignition.rest();
  const entries = [
    ...readStorage(config.map('storage', 'storage.'), name),
    ...readUnits(config.map('systemd', 'systemd.'), name),
  ];
  const keys = readUsers(config.map('passwd', 'passwd.'));
  const kernel = config.map('kernelArguments', 'config.kernelArguments.');
  const kernelArguments = kernel.texts('shouldExist');
  kernel.rest();
  config.rest();
  return { entries, keys, kernelArguments };
}

function readStorage(storage: Place, config: string): readonly Entry[] {
  const { where } = storage;
  const files = storage.called('files', 'path').map(({ name, place }) => readFile(name, place, { config, where }));
  const directories = storage.called('directories', 'path').map(({ name, place }): Entry => {
    const fields = nodeFields(place, where);
    const isWhole = isOnRoot(place) && place.isSound;
    place.rest();
    return { kind: 'directory', name, config, where, fields, appended: [], isWhole };
  });
  // Not taken, and yet each takes the place of a file or a directory of its path.
  const links = storage
    .called('links', 'path')
    .map(({ name }): Entry => ({ kind: 'link', name, config, where, fields: new Map(), appended: [], isWhole: true }));
  if (links.length > 0) storage.leave('links');
  storage.rest();
  return [...files, ...directories, ...links];
}

function readFile(name: string, file: Place, from: { readonly config: string; readonly where: string }): Entry {
  const contents = file.map('contents');
  const said = readContents(contents);
  const isUnclear = contents.rest();
  // A flag in Ignition 2: these contents are appended. A list of contents in Ignition 3.
  const isAppended = file.raw('append') === true;
  const parts = typeof file.raw('append') === 'boolean' ? [] : file.maps('append');
  const appended = parts.map(readContents);
  const isMoreUnclear = parts.filter((part) => part.rest()).length > 0;
  const fields = nodeFields(file, from.where);
  if (!isAppended)
    for (const [field, value] of Object.entries(CONTENT_FIELDS)) put(fields, field, said[value], from.where);
  const isOfRoot = isOnRoot(file);
  const hasMore = file.rest();
  const isSound = file.isSound && contents.isSound && parts.every((part) => part.isSound) && isOfRoot;
  // With a content that is said in words nobody knows, it would be made empty.
  const isEmptied = said.source === undefined && appended.length === 0 && (isUnclear || hasMore);
  return {
    kind: 'file',
    name,
    ...from,
    fields,
    appended: isAppended ? [said] : appended,
    isWhole: isSound && !isEmptied && !isMoreUnclear,
  };
}

/** What the fields of contents are called in words: Ignition merges each by itself. */
export const CONTENT_FIELDS = { content: 'source', compression: 'compression', digest: 'hash' } as const;

function readContents(contents: Place): Contents {
  const verification = contents.map('verification');
  const hash = verification.text('hash');
  verification.rest();
  const [source, compression] = [contents.text('source'), contents.text('compression')];
  return {
    ...(source === undefined ? {} : { source }),
    ...(compression === undefined ? {} : { compression }),
    ...(hash === undefined ? {} : { hash }),
  };
}

function nodeFields(node: Place, where: string): Map<string, Said> {
  const fields = new Map<string, Said>();
  put(fields, 'mode', node.whole('mode', MAX_MODE), where);
  for (const field of ['user', 'group']) {
    const owner = node.map(field);
    put(fields, `${field}.name`, owner.text('name'), where);
    put(fields, `${field}.id`, owner.whole('id', 2 ** 32), where);
    owner.rest();
  }
  // Says how Ignition goes about it at the first boot; MCO writes over what is there, as is done here.
  node.raw('overwrite');
  return fields;
}

/** Ignition 2 names a file system; MCO takes only that of the root. */
function isOnRoot(node: Place): boolean {
  const filesystem = node.text('filesystem') ?? '';
  if (filesystem === '' || filesystem === 'root') return true;
  node.leave('filesystem');
  return false;
}

function readUnits(systemd: Place, config: string): readonly Entry[] {
  const units = systemd.called('units', 'name').map(({ name, place }): Entry => {
    const fields = new Map<string, Said>();
    put(fields, 'content', place.text('contents'), systemd.where);
    // As Ignition 2 called it; the other wins.
    const isEnabled = place.flag('enable') === true ? true : undefined;
    put(fields, 'enabled', place.flag('enabled') ?? isEnabled, systemd.where);
    put(fields, 'mask', place.flag('mask'), systemd.where);
    const dropIns = ['dropins', 'dropIns'].flatMap((field) => place.called(field, 'name', DROP_IN));
    for (const dropIn of dropIns) {
      put(fields, `${DROP_IN}${dropIn.name}`, dropIn.place.text('contents'), systemd.where);
      dropIn.place.rest();
    }
    place.rest();
    return {
      kind: 'unit',
      name,
      config,
      where: systemd.where,
      fields,
      appended: [],
      isWhole: place.isSound && dropIns.every((dropIn) => dropIn.place.isSound),
    };
  });
  systemd.rest();
  return units;
}

function readUsers(passwd: Place): Ignition['keys'] {
  const keys = passwd.called('users', 'name', 'user ').map(({ name: user, place }) => {
    const lines = place
      .texts('sshAuthorizedKeys')
      .flatMap((text) => text.split('\n'))
      .map((line) => line.trim())
      .filter((line) => line !== '' && !line.startsWith('#'));
    place.rest();
    return { user, where: place.where, lines };
  });
  passwd.rest();
  return keys;
}

function put(fields: Map<string, Said>, field: string, value: Said['value'] | undefined, where: string): void {
  if (value !== undefined) fields.set(field, { value, where });
}
