import type { Command } from 'commander';
import { isNodeName, labelProblem } from '#libs/contracts';
import { connectTarget, type Target } from '#libs/nats/lean';
import { SettingsError, SWITCH, type LogLevel } from '#libs/process';
import { connectFlagsOf } from '#libs/process/lean';
import type { ApplierOptions } from './run-applier.js';

/** The settings of an applier, from flags and environment. */
export type ApplierSettings = Pick<
  ApplierOptions,
  | 'node'
  | 'labels'
  | 'root'
  | 'stateDir'
  | 'fresh'
  | 'allowExec'
  | 'allowSetuid'
  | 'probeNetworks'
  | 'host'
  | 'network'
  | 'reach'
  | 'heartbeatMs'
> & { readonly target: Target; readonly logLevel: LogLevel };

/** Values of `applierCommand`, by commander's names. */
interface Values {
  readonly node?: string;
  readonly label: Readonly<Record<string, string>>;
  readonly root: string;
  readonly state: string;
  readonly probeNetwork: readonly string[];
  readonly netns?: string;
  readonly reach: readonly string[];
  readonly systemctl?: string;
  readonly systemdAnalyze?: string;
  readonly rebootCommand?: string;
  readonly proc?: string;
  readonly updateGrub?: string;
  readonly heartbeatSeconds: number;
  readonly logLevel: LogLevel;
}

/**
 * The settings of a parsed applier command. Throws SettingsError if they are invalid. Variables that are set to an
 * empty text count as unset, except for the reboot command.
 */
export function settingsOf(command: Command, env: NodeJS.ProcessEnv = process.env): ApplierSettings {
  const values = command.optsWithGlobals<Values>();
  const { node = '', netns = '' } = values;
  if (node === '') throw new SettingsError('the node has no name: give one with --node or SLUICE_NODE');
  if (!isNodeName(node))
    throw new SettingsError(
      `--node: ${JSON.stringify(node)} is not a node name: use lower-case letters, digits, "-" and ".", such as w-1.dc1`,
    );
  const wrong = Object.entries(values.label).flatMap(([key, value]) => labelProblem(key, value) ?? [])[0];
  if (wrong !== undefined) throw new SettingsError(`--label: ${wrong}`);
  return {
    node,
    labels: values.label,
    root: values.root || '/',
    stateDir: values.state || '/var/lib/sluice',
    fresh: isOn(command, 'fresh', env),
    allowExec: isOn(command, 'allowExec', env),
    allowSetuid: isOn(command, 'allowSetuid', env),
    probeNetworks: values.probeNetwork,
    host: {
      systemctl: values.systemctl || undefined,
      systemdAnalyze: values.systemdAnalyze || undefined,
      rebootCommand: wordsOf(values.rebootCommand),
      proc: values.proc || undefined,
      updateGrub: wordsOf(values.updateGrub || undefined),
    },
    ...(netns === '' ? {} : { network: { netns } }),
    reach: values.reach,
    target: connectTarget(connectFlagsOf(command), env),
    heartbeatMs: values.heartbeatSeconds * 1_000,
    logLevel: values.logLevel,
  };
}

/** Commander reads any variable of a switch as `true`, but `SLUICE_ALLOW_EXEC=false` must not allow it. */
function isOn(command: Command, name: string, env: NodeJS.ProcessEnv): boolean {
  if (command.getOptionValueSource(name) !== 'env') return command.getOptionValue(name) === true;
  const variable = command.options.find((option) => option.attributeName() === name)?.envVar ?? '';
  const text = env[variable] ?? '';
  const isGiven = text === '' ? false : SWITCH.parse(text);
  if (isGiven !== undefined) return isGiven;
  throw new SettingsError(`${variable} is ${JSON.stringify(text)}, but must be ${SWITCH.must}`);
}

const wordsOf = (text: string | undefined): readonly string[] | undefined =>
  text?.split(/\s+/).filter((word) => word !== '');
