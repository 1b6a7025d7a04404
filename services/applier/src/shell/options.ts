import { Command, InvalidArgumentError, Option } from 'commander';
import { connectionOptions, LOG_LEVELS, type LogLevel } from '#libs/process/lean';
import { parseNetwork } from './probes/probe-networks.js';

const DEFAULT_HEARTBEAT_SECONDS = 10;
const MOST_HEARTBEAT_SECONDS = 86_400;
/** `sluice appliers` has it too. */
export const HEARTBEAT_SECONDS = new Option(
  '--heartbeat-seconds <seconds>',
  'seconds between heartbeats; the inventory may ask for fewer heartbeats',
)
  .env('SLUICE_HEARTBEAT_SECONDS')
  .default(DEFAULT_HEARTBEAT_SECONDS)
  .argParser(heartbeatSeconds);

/**
 * Every option of an applier: flag, environment variable, default, unit and description. `sluice applier`, the bundled
 * file, the package and the image all parse this list, and `--help` and the reference are generated from it. It is
 * loaded with every `sluice` command, so it imports nothing heavy.
 */
const OPTIONS: readonly Option[] = [
  new Option('--node <name>', 'name of this node (required)').env('SLUICE_NODE'),
  new Option('--label <key=value>', 'label of this node; repeat the flag, or separate labels with commas')
    .env('SLUICE_LABELS')
    .default({}, 'none')
    .argParser(withLabels),
  ...connectionOptions(),
  new Option('--root <dir>', 'directory that the paths in configs start from').env('SLUICE_ROOT').default('/'),
  new Option('--state <dir>', 'directory for the journal and the saved originals; each applier needs its own')
    .env('SLUICE_STATE')
    .default('/var/lib/sluice'),
  new Option('--fresh', 'nothing on the node is in use yet, so its first config takes no unit of the budget')
    .env('SLUICE_FRESH')
    .default(false),
  new Option('--allow-exec', 'allow Exec fragments and exec probes to run commands')
    .env('SLUICE_ALLOW_EXEC')
    .default(false),
  new Option(
    '--allow-setuid',
    'allow files and directories with setuid or setgid, and changes to files that have them or file capabilities',
  )
    .env('SLUICE_ALLOW_SETUID')
    .default(false),
  new Option(
    '--probe-network <cidr>',
    'network that tcp and http probes may reach; by default all except link-local addresses; repeat the flag, or ' +
      'separate with commas',
  )
    .env('SLUICE_PROBE_NETWORKS')
    .default([], 'none')
    .argParser(withNetworks),
  new Option('--netns <name>', 'network namespace to configure; by default that of the machine, if --root is /').env(
    'SLUICE_NETNS',
  ),
  new Option(
    '--reach <host:port>',
    'address that must stay reachable after a network change, in addition to NATS, the gateway and the name server; ' +
      'repeat the flag, or separate with commas',
  )
    .env('SLUICE_REACH')
    .default([], 'none')
    .argParser((text, before: readonly string[]) => [...before, ...listOf(text)]),
  new Option(
    '--systemctl <program>',
    'program that reloads and restarts units; by default systemctl, if --root is / and systemd runs',
  ).env('SLUICE_SYSTEMCTL'),
  new Option(
    '--systemd-analyze <program>',
    'program that checks unit files; by default systemd-analyze, if --root is /',
  ).env('SLUICE_SYSTEMD_ANALYZE'),
  new Option(
    '--reboot-command <command>',
    'command that restarts the machine; by default systemctl reboot; empty: the machine is never restarted',
  ).env('SLUICE_REBOOT_COMMAND'),
  new Option('--proc <dir>', 'where procfs is mounted; by default /proc, if --root is /').env('SLUICE_PROC'),
  new Option(
    '--update-grub <command>',
    'command that writes grub.cfg; by default update-grub, if --root is / and it is installed',
  ).env('SLUICE_UPDATE_GRUB'),
  HEARTBEAT_SECONDS,
  new Option('--log-level <level>', 'how much to log')
    .env('SLUICE_LOG')
    .default('info')
    .choices(LOG_LEVELS)
    .argParser(logLevel),
];

/** The command that runs an applier. The caller adds the action. */
export function applierCommand(name: string): Command {
  const command = new Command(name)
    .description(
      'Run the applier of one node. It applies the configs that the node is granted, checks that the node still ' +
        'works, and rolls back if it does not. It runs until it is stopped, and waits for NATS while it is unreachable.',
    )
    .addHelpText('after', '\nA flag takes precedence over its environment variable.');
  for (const option of OPTIONS) command.addOption(option);
  return command;
}

const listOf = (text: string): readonly string[] =>
  text
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== '');

function heartbeatSeconds(text: string): number {
  const seconds = text === '' ? DEFAULT_HEARTBEAT_SECONDS : Number(text);
  // A timer that is set for longer than 24 days ends at once.
  if (!(seconds > 0 && seconds <= MOST_HEARTBEAT_SECONDS))
    throw new InvalidArgumentError(`It must be a number above 0, and at most ${MOST_HEARTBEAT_SECONDS}.`);
  return seconds;
}

function logLevel(text: string): LogLevel {
  const level = LOG_LEVELS.find((one) => one === (text || 'info'));
  if (level === undefined) throw new InvalidArgumentError(`It must be one of ${LOG_LEVELS.join(', ')}.`);
  return level;
}

function withNetworks(text: string, before: readonly string[]): readonly string[] {
  const networks = listOf(text);
  const wrong = networks.find((network) => parseNetwork(network) === undefined);
  if (wrong !== undefined)
    throw new InvalidArgumentError(`${JSON.stringify(wrong)} is not a network. Write it like 10.0.0.0/8.`);
  return [...before, ...networks];
}

type Labels = Readonly<Record<string, string>>;

/** Labels, whose keys and values are checked with the other settings. */
function withLabels(text: string, before: Labels): Labels {
  const labels = new Map(Object.entries(before));
  for (const one of listOf(text)) {
    const at = one.indexOf('=');
    const [key, value] = [one.slice(0, Math.max(0, at)), one.slice(at + 1)];
    if (at < 1) throw new InvalidArgumentError(`${JSON.stringify(one)} is not a label. Write it like zone=a.`);
    const other = labels.get(key) ?? value;
    if (other !== value) throw new InvalidArgumentError(`${key} has two values, ${other} and ${value}. Keep one.`);
    labels.set(key, value);
  }
  return Object.fromEntries(labels);
}
