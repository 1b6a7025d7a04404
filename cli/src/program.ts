import { Command, Option } from 'commander';
import { isDuration } from './duration.js';
import { UsageError } from './exit.js';
import { registerChanges } from './program/changes.js';
import { registerFleet } from './program/fleet.js';
import { registerLocal } from './program/local.js';
import type { Registry, Run } from './program/registry.js';
import type { GlobalFlags } from './session.js';

/** All commands with their flags; none of their code is loaded yet. */
export function buildProgram(version: string, run: Run): Command {
  const program = new Command('sluice')
    .description('Rolls configuration out to fleets of nodes, gradually and safely.')
    .version(version)
    .option('--server <url>', 'NATS servers, separated by commas (else NATS_URL, else the selected nats context)')
    .option('--creds <file>', 'credentials file')
    .option('--context <name>', 'a context of the nats CLI')
    .addOption(
      new Option(
        '-o, --output <format>',
        'for programs: one JSON value, or one per line for streams (yaml: only for get)',
      ).choices(['json', 'yaml']),
    )
    .configureHelp({ showGlobalOptions: true })
    .showHelpAfterError('(see sluice --help)')
    .exitOverride();
  const registry: Registry = {
    program,
    action:
      (call) =>
      async (...args) => {
        const flags = program.opts<GlobalFlags>();
        requireJsonOrText(flags, (args.at(-1) as Command).name());
        return run(flags, (session) => call(session, ...args));
      },
  };
  registerLocal(registry);
  registerChanges(registry);
  registerFleet(registry);
  program.addHelpText(
    'after',
    [
      '',
      'Exit codes: 0 done, 1 unexpected, 2 usage, 3 rejected, 4 failed, reverted, aborted or superseded,',
      '            5 not finished in time or paused, 6 no connection',
    ].join('\n'),
  );
  return program;
}

/** `--wait` may stand alone, also before an argument: `delete --wait File motd`. */
export function withWaitJoined(argv: readonly string[], defaultWait = '10m'): string[] {
  const joined: string[] = [];
  for (let index = 0; index < argv.length; index += 1) {
    const word = argv[index] as string;
    const next = argv[index + 1];
    if (word === '--') return [...joined, ...argv.slice(index)];
    if (word !== '--wait') joined.push(word);
    else if (next !== undefined && isDuration(next)) {
      joined.push(`--wait=${next}`);
      index += 1;
    } else joined.push(`--wait=${defaultWait}`);
  }
  return joined;
}

/** Commands that print nothing as YAML say so. */
export function requireJsonOrText(flags: GlobalFlags, command: string): void {
  if (flags.output === 'yaml' && command !== 'get')
    throw new UsageError('-o yaml is only for sluice get; here there is -o json');
}
