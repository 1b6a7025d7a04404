import type { Contents } from './data-url.js';
import type { Place } from './place.js';

/** The value of a field, and the MachineConfig that it is from. */
export interface FieldValue {
  readonly value: string | number | boolean;
  readonly where: string;
}

/** Something that Ignition identifies by a path or a unit's name. */
export interface Entry {
  readonly kind: 'file' | 'directory' | 'link' | 'unit';
  readonly name: string;
  /**
   * The first MachineConfig that names it. It is a part of the fragment's name, no matter how many are merged into it.
   */
  readonly config: string;
  readonly where: string;
  /** By the name that messages use. */
  readonly fields: ReadonlyMap<string, FieldValue>;
  readonly appended: readonly Contents[];
  /** Half an entry can be worse than none: a key without its mode, a file that becomes empty. */
  readonly isWhole: boolean;
}

export interface Ignition {
  readonly entries: readonly Entry[];
  readonly keys: readonly { readonly user: string; readonly where: string; readonly lines: readonly string[] }[];
  readonly kernelArguments: readonly string[];
}

/** The prefix of a drop-in's field. */
export const DROP_IN = 'drop-in ';
const MAX_MODE = 0o7777;
const KNOWN_VERSION = /^[23]\.\d+\.\d+(-[0-9a-z.-]+)?$/;
const NOTHING: Ignition = { entries: [], keys: [], kernelArguments: [] };

/**
 * Reads the Ignition config of a MachineConfig. As in Ignition, a version other than 2.x and 3.x is skipped as a whole,
 * because its fields may mean something else. Without a version, only fields with the same meaning in both are read.
 */
export function readIgnition(config: Place, name: string): Ignition {
  const ignition = config.map('ignition', 'ignition.');
  const version = ignition.raw('version');
  if (version !== undefined && version !== null && !(typeof version === 'string' && KNOWN_VERSION.test(version))) {
    ignition.say(
      `skipped config: unsupported ignition.version ${JSON.stringify(version)}; supported are "2.x.y" and "3.x.y"`,
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
  const links = storage.called('links', 'path').map(({ name, place }): Entry => {
    const fields = new Map<string, FieldValue>();
    put(fields, 'target', place.text('target'), where);
    put(fields, 'hard', place.flag('hard'), where);
    place.raw('overwrite');
    const isWhole = isOnRoot(place) && place.isSound;
    place.rest();
    return { kind: 'link', name, config, where, fields, appended: [], isWhole };
  });
  storage.rest();
  return [...files, ...directories, ...links];
}

function readFile(name: string, file: Place, from: { readonly config: string; readonly where: string }): Entry {
  const contents = file.map('contents');
  const content = readContents(contents);
  const isUnclear = contents.rest();
  // A flag in Ignition 2: these contents are appended. A list of contents in Ignition 3.
  const isAppended = file.raw('append') === true;
  const parts = typeof file.raw('append') === 'boolean' ? [] : file.maps('append');
  const appended = parts.map(readContents);
  const isMoreUnclear = parts.filter((part) => part.rest()).length > 0;
  const fields = nodeFields(file, from.where);
  if (!isAppended)
    for (const [field, value] of Object.entries(CONTENT_FIELDS)) put(fields, field, content[value], from.where);
  const isOfRoot = isOnRoot(file);
  const hasMore = file.rest();
  const isSound = file.isSound && contents.isSound && parts.every((part) => part.isSound) && isOfRoot;
  // With an unsupported content it would become empty.
  const isEmptied = content.source === undefined && appended.length === 0 && (isUnclear || hasMore);
  return {
    kind: 'file',
    name,
    ...from,
    fields,
    appended: isAppended ? [content] : appended,
    isWhole: isSound && !isEmptied && !isMoreUnclear,
  };
}

/** The fields of contents by the name that messages use: Ignition merges each on its own. */
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

function nodeFields(node: Place, where: string): Map<string, FieldValue> {
  const fields = new Map<string, FieldValue>();
  put(fields, 'mode', node.whole('mode', MAX_MODE), where);
  for (const field of ['user', 'group']) {
    const owner = node.map(field);
    put(fields, `${field}.name`, owner.text('name'), where);
    put(fields, `${field}.id`, owner.whole('id', 2 ** 32), where);
    owner.rest();
  }
  // Matters to Ignition only at the first boot. MCO overwrites existing files, and so does Sluice.
  node.raw('overwrite');
  return fields;
}

/** Ignition 2 names a file system. MCO supports only that of the root. */
function isOnRoot(node: Place): boolean {
  const filesystem = node.text('filesystem') ?? '';
  if (filesystem === '' || filesystem === 'root') return true;
  node.leave('filesystem');
  return false;
}

function readUnits(systemd: Place, config: string): readonly Entry[] {
  const units = systemd.called('units', 'name').map(({ name, place }): Entry => {
    const fields = new Map<string, FieldValue>();
    put(fields, 'content', place.text('contents'), systemd.where);
    // The name in Ignition 2; the other one wins.
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

function put(
  fields: Map<string, FieldValue>,
  field: string,
  value: FieldValue['value'] | undefined,
  where: string,
): void {
  if (value !== undefined) fields.set(field, { value, where });
}
