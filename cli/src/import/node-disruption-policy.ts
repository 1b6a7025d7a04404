import { isObject } from '#libs/manifests';
import { fieldsAt, listAt, type Fields, type ImportReport } from './import-report.js';

const PLAIN: Readonly<Record<string, string>> = { None: 'none', Drain: 'drain', Reboot: 'reboot', DaemonReload: 'daemon-reload' };

/** MCO's node disruption policy, of a `MachineConfiguration` or by itself. What nothing matches keeps MCO's default. */
export function importNodeDisruptionPolicy(document: Fields, report: ImportReport): void {
  const name = String(fieldsAt(document, 'metadata')['name'] ?? 'cluster');
  const where = `${String(document['kind'])}/${name}`;
  const spec = fieldsAt(document, 'spec');
  const policy = document['kind'] === 'MachineConfiguration' ? fieldsAt(spec, 'nodeDisruptionPolicy') : spec;
  const files = listAt(policy, 'files').filter(isObject).map((file) => ({ path: file['path'], actions: actionsOf(file, `${where} ${String(file['path'])}`, report) }));
  const units = listAt(policy, 'units').filter(isObject).map((unit) => ({ name: unit['name'], actions: actionsOf(unit, `${where} ${String(unit['name'])}`, report) }));
  const sshKeys = fieldsAt(policy, 'sshkey');
  report.leftOver(where, policy, ['files', 'units', 'sshkey']);
  report.add('DisruptionPolicy', name, {
    nodeSelector: {}, default: [{ kind: 'drain' }, { kind: 'reboot' }],
    ...(files.length > 0 ? { files } : {}), ...(units.length > 0 ? { units } : {}),
    ...(listAt(sshKeys, 'actions').length > 0 ? { sshKeys: { actions: actionsOf(sshKeys, `${where} sshkey`, report) } } : {}),
  });
}

function actionsOf(of: Fields, where: string, report: ImportReport): readonly Fields[] {
  return listAt(of, 'actions').filter(isObject).flatMap((action): readonly Fields[] => {
    const type = String(action['type']);
    const plain = PLAIN[type];
    if (plain !== undefined) return [{ kind: plain }];
    if (type === 'Reload' || type === 'Restart') return [{ kind: type.toLowerCase(), unit: fieldsAt(action, type.toLowerCase())['serviceName'] }];
    report.say(where, type === 'Special' ? 'Special has no equivalent: it is made a drain and a reload of crio.service' : `the action ${type} has no equivalent: it is made a reboot`);
    return type === 'Special' ? [{ kind: 'drain' }, { kind: 'reload', unit: 'crio.service' }] : [{ kind: 'reboot' }];
  });
}
