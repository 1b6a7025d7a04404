import { KERNEL_ARGUMENT, SSH_KEY, type TextForm } from '#libs/manifests';
import { IgnitionMerge } from './ignition-merge.js';
import { readIgnition } from './ignition.js';
import { fieldsAt, literal, type Fields, type ImportReport } from './import-report.js';
import { addEntry } from './node-entries.js';
import { NO_ACTIONS } from './node-disruption-policy.js';
import { Place } from './place.js';

const ROLE = 'machineconfiguration.openshift.io/role';
/** The defaults of MCO. */
const DEFAULTS = { fips: false, kernelType: 'default' };

interface Text {
  readonly text: string;
  readonly where: string;
}

interface MachineConfig {
  readonly name: string;
  readonly where: string;
  readonly role: string;
  readonly spec: Fields;
}

/**
 * MCO's `MachineConfig`s: files, directories, units, SSH keys and kernel arguments. Those of one role are merged like
 * in MCO, in the order of their names.
 */
export function importMachineConfigs(documents: readonly Fields[], report: ImportReport): void {
  const configs = documents.map((document): MachineConfig => {
    const metadata = fieldsAt(document, 'metadata');
    const name = String(metadata['name'] ?? 'unnamed');
    return {
      name,
      where: `MachineConfig/${name}`,
      role: String(fieldsAt(metadata, 'labels')[ROLE] ?? ''),
      spec: fieldsAt(document, 'spec'),
    };
  });
  for (const role of [...new Set(configs.map((config) => config.role))].sort()) {
    importRole(role, configs.filter((config) => config.role === role).sort(byName), report);
  }
}

/** Selects the nodes of a role by their Kubernetes label. */
const roleSelector = (role: string): Fields =>
  role === '' ? {} : { matchExpressions: [{ key: `node-role.kubernetes.io/${role}`, operator: 'Exists' }] };

/** Compares texts like Go, and so like MCO. */
const byName = (a: MachineConfig, b: MachineConfig): number => Buffer.compare(Buffer.from(a.name), Buffer.from(b.name));

function importRole(role: string, configs: readonly MachineConfig[], report: ImportReport): void {
  const nodeSelector = roleSelector(role);
  const merge = new IgnitionMerge(report);
  const keys = new Map<string, Text[]>();
  const args: Text[] = [];
  const argsOfIgnition: Text[] = [];
  for (const { name, where, spec: fields } of configs) {
    if (role === '') report.say(where, `no label ${ROLE}: selects all nodes`);
    const spec = new Place(report, where, fields);
    const ignition = readIgnition(spec.map('config'), name);
    for (const entry of ignition.entries) merge.add(entry);
    for (const { user, where: at, lines } of ignition.keys)
      keys.set(user, [...(keys.get(user) ?? []), ...lines.map((text) => ({ text, where: at }))]);
    args.push(...spec.texts('kernelArguments').map((text) => ({ text, where })));
    argsOfIgnition.push(...ignition.kernelArguments.map((text) => ({ text, where })));
    spec.rest(DEFAULTS);
  }
  for (const entry of merge.entries) addEntry(entry, nodeSelector, report);
  for (const [user, lines] of keys) {
    const allowed = allowedTexts('key', lines, SSH_KEY, report);
    if (allowed.length > 0) report.add('SshKeys', `${role}-${user}`, { nodeSelector, user, keys: literal(allowed) });
  }
  // MCO appends Ignition's arguments to all others.
  const split = [...args, ...argsOfIgnition].flatMap(({ text, where }) =>
    splitArguments(text).map((one) => ({ text: one, where })),
  );
  const allowed = allowedTexts('kernel argument', split, KERNEL_ARGUMENT, report);
  if (allowed.length > 0)
    report.add('KernelArguments', role === '' ? 'kernel' : role, { nodeSelector, arguments: literal(allowed) });
  // MCO's default for a change that no policy names.
  report.add('DisruptionPolicy', role === '' ? 'mco' : `mco-${role}`, {
    nodeSelector,
    default: [{ kind: 'drain' }, { kind: 'reboot' }],
    sshKeys: { actions: NO_ACTIONS },
  });
}

/** Each text once, in order. A text that Sluice would reject is skipped on its own. */
function allowedTexts(noun: string, texts: readonly Text[], form: TextForm, report: ImportReport): readonly string[] {
  const firsts = new Map<string, Text>();
  for (const one of texts) if (!firsts.has(one.text)) firsts.set(one.text, one);
  return [...firsts.values()]
    .filter(({ text, where }) => {
      const problem = form.problem(text);
      const shown = text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text;
      if (problem !== undefined) report.say(where, `skipped the ${noun} ${JSON.stringify(shown)}: ${problem}`);
      return problem === undefined;
    })
    .map(({ text }) => text);
}

/**
 * MCO puts a text with spaces on the command line unchanged, where spaces separate arguments. The kernel keeps text in
 * double quotes together.
 */
const splitArguments = (text: string): readonly string[] => text.match(/(?:[^\s"]|"[^"]*"?)+/g) ?? [];

const MAX_SHOWN = 60;
