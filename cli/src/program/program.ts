import { Command, Help, Option } from 'commander';
import { connectFlagsOf, connectionOptions } from '#libs/process/lean';
import { EXIT, EXIT_MEANINGS, UsageError } from '../output/exit.js';
import { registerChanges, registerFleet, registerLocal, type Registry, type Run } from './commands.js';
import type { GlobalFlags } from '../connection/session.js';

/** The environment variables that commands read, besides those of the options. */
export const ENVIRONMENT: Readonly<Record<string, string>> = {
  KUBECONFIG: 'the kubeconfig for sluice up --kube',
  XDG_DATA_HOME: 'the parent of the data folder of sluice up (default: ~/.local/share)',
  XDG_CONFIG_HOME: 'where the contexts of the nats CLI are (default: ~/.config)',
  NO_COLOR: 'if set, output has no colors',
  SLUICE_DEBUG: 'if set, errors are printed with their stack trace',
};

/** All commands with their flags. Their code is loaded when they are called. */
export function buildProgram(version: string, run: Run): Command {
  const program = new Command('sluice')
    .description('Roll out configuration to fleets of nodes, gradually and safely.')
    .version(version)
    .addOption(
      new Option(
        '-o, --output <format>',
        'print JSON for programs: one value, or one per line for streams; yaml is only for get',
      ).choices(['json', 'yaml']),
    )
    .configureHelp({ showGlobalOptions: true, visibleGlobalOptions: globalOptions })
    .exitOverride();
  for (const option of connectionOptions()) program.addOption(option.helpGroup(CONNECTING));
  const registry: Registry = {
    program,
    action:
      (load) =>
      async (...args) => {
        const flags = { ...connectFlagsOf(program), output: program.opts<GlobalFlags>().output };
        const command = (args.at(-1) as Command).name();
        requireJsonOrText(flags, command);
        refuseConnection(program, command);
        return run(flags, async (session) => (await load())(session, ...(args as never[])));
      },
  };
  registerLocal(registry);
  registerChanges(registry);
  registerFleet(registry);
  program.addHelpText('afterAll', ({ command }) =>
    command.options.some(({ long }) => long === '--tls-ca') || UNCONNECTED.has(command.name())
      ? ''
      : '\nsluice --help shows all options for connecting to NATS.',
  );
  program.addHelpText(
    'after',
    [
      '',
      'Environment:',
      ...Object.entries(ENVIRONMENT).map(([name, text]) => `  ${name.padEnd(16)} ${text}`),
      '',
      'Exit codes:',
      ...Object.entries(EXIT).map(([name, code]) => `  ${code}  ${EXIT_MEANINGS[name as keyof typeof EXIT]}`),
    ].join('\n'),
  );
  return program;
}

const CONNECTING = 'Options for connecting to NATS:';

/** What the commands do instead that connect to no existing server. */
const UNCONNECTED: ReadonlyMap<string, string> = new Map([
  ['up', 'starts its own nats-server'],
  ['demo', 'starts its own nats-server'],
  ['import', 'works offline'],
  ['actions', 'works offline'],
]);

/** Somebody who names a server expects the command to use it. The environment is for all commands. */
function refuseConnection(program: Command, command: string): void {
  const instead = UNCONNECTED.get(command);
  if (instead === undefined) return;
  const [given] = Object.keys(connectFlagsOf(program));
  const flag = program.options.find((option) => option.attributeName() === given)?.long;
  if (flag !== undefined) throw new UsageError(`sluice ${command} ${instead}: leave out ${flag}`);
}

/** The help of a command leaves out the connection flags: they are the same everywhere, and long. */
function globalOptions(this: Help, command: Command): Option[] {
  const short = UNCONNECTED.has(command.name()) ? [] : ['server', 'context'];
  return Help.prototype.visibleGlobalOptions
    .call(this, command)
    .filter((option) => option.helpGroupHeading !== CONNECTING || short.includes(option.attributeName()));
}

function requireJsonOrText(flags: GlobalFlags, command: string): void {
  if (flags.output === 'yaml' && command !== 'get')
    throw new UsageError(`sluice ${command} cannot print YAML: use -o json (-o yaml is only for sluice get)`);
}
