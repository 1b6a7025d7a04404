import { isObject } from '#libs/manifests';
import { contentOf } from './data-url.js';
import { fieldsAt, listAt, literal, type Fields, type ImportReport } from './import-report.js';

const ROLE = 'machineconfiguration.openshift.io/role';
/** What changes the operating system itself. */
const OF_THE_SYSTEM = ['osImageURL', 'fips', 'kernelType', 'extensions', 'baseOSExtensionsContainerImage'];
const OF_STORAGE = ['links', 'disks', 'raid', 'filesystems', 'luks'];

interface MachineConfig {
  readonly name: string;
  readonly where: string;
  readonly role: string;
  readonly spec: Fields;
}

/**
 * MCO's `MachineConfig`s: files, directories, units, SSH keys and kernel arguments. Those of one role are joined as MCO does: in the
 * order of their names, what is said later of a path or unit replaces what was said before.
 */
export function importMachineConfigs(documents: readonly Fields[], report: ImportReport): void {
  const configs = documents.map((document): MachineConfig => {
    const metadata = fieldsAt(document, 'metadata');
    const name = String(metadata['name'] ?? 'unnamed');
    return { name, where: `MachineConfig/${name}`, role: String(fieldsAt(metadata, 'labels')[ROLE] ?? ''), spec: fieldsAt(document, 'spec') };
  });
  for (const role of [...new Set(configs.map((config) => config.role))].sort()) {
    importRole(role, configs.filter((config) => config.role === role).sort((a, b) => (a.name < b.name ? -1 : 1)), report);
  }
}

/** Nodes of a role, as Kubernetes labels them. */
export const roleSelector = (role: string): Fields => (role === '' ? {} : { matchExpressions: [{ key: `node-role.kubernetes.io/${role}`, operator: 'Exists' }] });

function importRole(role: string, configs: readonly MachineConfig[], report: ImportReport): void {
  const nodeSelector = roleSelector(role);
  const made = new Map<string, { readonly where: string; readonly kind: string; readonly name: string; readonly spec: Fields }>();
  const make = (what: string, where: string, kind: string, name: string, spec: Fields): void => {
    const before = made.get(what);
    if (before !== undefined && before.where !== where) report.say(before.where, `${what} is replaced by ${where}`);
    made.set(what, { where, kind, name, spec: { nodeSelector, ...literal(spec) } });
  };
  const keys = new Map<string, string[]>();
  const args: string[] = [];
  for (const config of configs) {
    if (role === '') report.say(config.where, `it has no label ${ROLE}: it is made for every node`);
    importFiles(config, make, report);
    importUnits(config, make, report);
    importUsers(config, keys, report);
    args.push(...listAt(config.spec, 'kernelArguments').map(String));
    for (const field of OF_THE_SYSTEM) {
      const value = config.spec[field];
      if (value !== undefined && value !== '' && value !== false && value !== null && !(Array.isArray(value) && value.length === 0)) report.say(config.where, `${field} has no equivalent, and is left out`);
    }
    report.leftOver(config.where, config.spec, ['config', 'kernelArguments', ...OF_THE_SYSTEM]);
  }
  for (const { kind, name, spec } of made.values()) report.add(kind, name, spec);
  for (const [user, lines] of keys) report.add('SshKeys', `${role}-${user}`, { nodeSelector, user, keys: literal([...new Set(lines)]) });
  if (args.length > 0) report.add('KernelArguments', role === '' ? 'kernel' : role, { nodeSelector, arguments: literal([...new Set(args)]) });
  // What MCO does with all that no policy names.
  report.add('DisruptionPolicy', role === '' ? 'mco' : `mco-${role}`, { nodeSelector, default: [{ kind: 'drain' }, { kind: 'reboot' }] });
}

type Make = (what: string, where: string, kind: string, name: string, spec: Fields) => void;

function importFiles({ name, where, spec }: MachineConfig, make: Make, report: ImportReport): void {
  const storage = fieldsAt(spec, 'config', 'storage');
  for (const file of listAt(storage, 'files').filter(isObject)) {
    const path = String(file['path']);
    const at = `${where} ${path}`;
    const content = contentOf(fieldsAt(file, 'contents'));
    ownerWords(at, file, report);
    report.leftOver(at, file, ['path', 'contents', 'mode', 'overwrite', 'filesystem', 'user', 'group']);
    if (!content.ok) report.say(at, `${content.why}: it is left out`);
    else make(path, where, 'File', `${name}-${path}`, { path, content: content.text, ...modeOf(file) });
  }
  for (const directory of listAt(storage, 'directories').filter(isObject)) {
    const path = String(directory['path']);
    ownerWords(`${where} ${path}`, directory, report);
    make(path, where, 'Directory', `${name}-${path}`, { path, ...modeOf(directory) });
  }
  for (const field of OF_STORAGE) if (listAt(storage, field).length > 0) report.say(where, `storage.${field} has no equivalent, and is left out`);
}

/** Ignition writes modes as decimal numbers. */
const modeOf = ({ mode }: Fields): Fields => (typeof mode === 'number' ? { mode: mode.toString(8).padStart(4, '0') } : {});

function ownerWords(at: string, of: Fields, report: ImportReport): void {
  for (const field of ['user', 'group']) {
    const { name, id } = fieldsAt(of, field);
    if ((name !== undefined && name !== 'root') || (id !== undefined && id !== 0)) report.say(at, `${field} has no equivalent: it will belong to root`);
  }
}

function importUnits({ name, where, spec }: MachineConfig, make: Make, report: ImportReport): void {
  for (const unit of listAt(spec, 'config', 'systemd', 'units').filter(isObject)) {
    const at = `${where} ${String(unit['name'])}`;
    const dropIns = [...listAt(unit, 'dropins'), ...listAt(unit, 'dropIns')].filter(isObject).map((dropIn) => ({ name: dropIn['name'], content: dropIn['contents'] ?? '' }));
    const { contents, enabled } = unit;
    if (unit['mask'] === true) report.say(at, 'mask has no equivalent: it is made a unit that does not start at boot and does not run');
    const masked = unit['mask'] === true ? { enabled: false, state: 'stopped' } : {};
    const says = { ...(typeof contents === 'string' && contents !== '' ? { content: contents } : {}), ...(dropIns.length > 0 ? { dropIns } : {}), ...(typeof enabled === 'boolean' ? { enabled } : {}), ...masked };
    report.leftOver(at, unit, ['name', 'contents', 'enabled', 'mask', 'dropins', 'dropIns']);
    if (Object.keys(says).length > 0) make(String(unit['name']), where, 'SystemdUnit', `${name}-${String(unit['name'])}`, { name: unit['name'], ...says });
  }
}

function importUsers({ where, spec }: MachineConfig, keys: Map<string, string[]>, report: ImportReport): void {
  for (const user of listAt(spec, 'config', 'passwd', 'users').filter(isObject)) {
    const name = String(user['name']);
    const lines = listAt(user, 'sshAuthorizedKeys').flatMap((text) => String(text).split('\n')).map((line) => line.trim()).filter((line) => line !== '');
    if (lines.length > 0) keys.set(name, [...(keys.get(name) ?? []), ...lines]);
    report.leftOver(`${where} user ${name}`, user, ['name', 'sshAuthorizedKeys']);
  }
  if (listAt(spec, 'config', 'passwd', 'groups').length > 0) report.say(where, 'passwd.groups has no equivalent, and is left out');
}
