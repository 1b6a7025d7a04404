import { fieldsAt, type Fields, type ImportReport } from './import-report.js';
import { Place } from './place.js';

const PLAIN: ReadonlyMap<string, string> = new Map([
  ['None', 'none'],
  ['Drain', 'drain'],
  ['Reboot', 'reboot'],
  ['DaemonReload', 'daemon-reload'],
]);
/** What MCO does after a change of SSH keys that no rule names: nothing, although everything else reboots. */
export const NO_ACTIONS: readonly Fields[] = [{ kind: 'none' }];
/** Settings of the operator itself, not of nodes. */
const OF_THE_OPERATOR = [
  'managementState',
  'logLevel',
  'operatorLogLevel',
  'failedRevisionLimit',
  'succeededRevisionLimit',
  'forceRedeploymentReason',
  'observedConfig',
  'unsupportedConfigOverrides',
];

/** MCO's node disruption policy, in a `MachineConfiguration` or on its own. Without a match, MCO's default applies. */
export function importNodeDisruptionPolicy(document: Fields, report: ImportReport): void {
  const name = String(fieldsAt(document, 'metadata')['name'] ?? 'cluster');
  const spec = new Place(report, `${String(document['kind'])}/${name}`, fieldsAt(document, 'spec'));
  const policy = document['kind'] === 'MachineConfiguration' ? spec.map('nodeDisruptionPolicy') : spec;
  const files = policy
    .called('files', 'path')
    .map(({ name: path, place }) => ({ path, actions: actionsOf(place) }))
    .filter(hasActions);
  const units = policy
    .called('units', 'name')
    .map(({ name: unit, place }) => ({ name: unit, actions: actionsOf(place) }))
    .filter(hasActions);
  const sshkey = policy.map('sshkey', 'sshkey.');
  const sshKeys = Object.keys(sshkey.fields).length === 0 ? NO_ACTIONS : actionsOf(sshkey);
  policy.rest();
  if (spec !== policy) {
    for (const field of OF_THE_OPERATOR) spec.raw(field);
    spec.rest();
  }
  report.add('DisruptionPolicy', name, {
    nodeSelector: {},
    default: [{ kind: 'drain' }, { kind: 'reboot' }],
    ...(files.length > 0 ? { files } : {}),
    ...(units.length > 0 ? { units } : {}),
    ...(sshKeys.length > 0 ? { sshKeys: { actions: sshKeys } } : {}),
  });
}

const hasActions = ({ actions }: { readonly actions: readonly Fields[] }): boolean => actions.length > 0;

/**
 * A rule with an unsupported action is skipped as a whole. With fewer actions it would require less than MCO's default,
 * which applies without the rule.
 */
function actionsOf(place: Place): readonly Fields[] {
  const actions = place.maps('actions').flatMap(actionOf);
  const isTaken = place.isSound && actions.length > 0;
  if (!isTaken && Object.keys(place.fields).length > 0)
    place.say('skipped the rule: its actions are missing, unsupported or malformed; the default applies');
  place.rest();
  return isTaken ? actions : [];
}

function actionOf(action: Place): readonly Fields[] {
  const type = String(action.raw('type'));
  const [plain, field] = [PLAIN.get(type), type.toLowerCase()];
  if (plain !== undefined) return restOf(action, [{ kind: plain }]);
  if (type === 'Reload' || type === 'Restart') {
    const service = action.map(field);
    const unit = service.raw('serviceName');
    service.rest();
    return restOf(action, [{ kind: field, unit }]);
  }
  action.say(
    type === 'Special'
      ? 'unsupported action Special: imported as drain and reload crio.service'
      : `unsupported action ${type}: imported as reboot`,
  );
  return restOf(
    action,
    type === 'Special' ? [{ kind: 'drain' }, { kind: 'reload', unit: 'crio.service' }] : [{ kind: 'reboot' }],
  );
}

function restOf(action: Place, made: readonly Fields[]): readonly Fields[] {
  action.rest();
  return made;
}
