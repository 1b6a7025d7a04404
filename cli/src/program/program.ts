import { Command, Option } from 'commander';
import { EXIT, EXIT_MEANINGS, UsageError } from '../output/exit.js';
import { registerChanges, registerFleet, registerLocal, type Registry, type Run } from './commands.js';
import type { GlobalFlags } from '../connection/session.js';

/** The environment variables that commands read. */
export const ENVIRONMENT: Readonly<Record<string, string>> = {
  NATS_URL: 'the NATS servers, separated by commas',
  NATS_CONTEXT: 'the context of the nats CLI to use (default: the one that nats context select chose)',
  SLUICE_CREDS: 'the credentials file; without it, NATS_CREDS',
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
    .option(
      '--server <url>',
      'NATS servers, separated by commas (default: $NATS_URL, then the selected nats context, then nats://127.0.0.1:4222)',
    )
    .option('--creds <file>', 'NATS credentials file (default: $SLUICE_CREDS)')
    .option('--context <name>', 'connect with this context of the nats CLI')
    .addOption(
      new Option(
        '-o, --output <format>',
        'print JSON for programs: one value, or one per line for streams; yaml is only for get',
      ).choices(['json', 'yaml']),
    )
    .configureHelp({ showGlobalOptions: true })
    .exitOverride();
  const registry: Registry = {
    program,
    action:
      (load) =>
      async (...args) => {
        const flags = program.opts<GlobalFlags>();
        requireJsonOrText(flags, (args.at(-1) as Command).name());
        return run(flags, async (session) => (await load())(session, ...(args as never[])));
      },
  };
  registerLocal(registry);
  registerChanges(registry);
  registerFleet(registry);
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

function requireJsonOrText(flags: GlobalFlags, command: string): void {
  if (flags.output === 'yaml' && command !== 'get')
    throw new UsageError(`sluice ${command} cannot print YAML: use -o json (-o yaml is only for sluice get)`);
}
