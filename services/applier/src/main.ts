import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CommanderError, Option } from 'commander';
import { createLogger } from '#libs/process';
import { runGuard, SENTINEL, serveApplier } from './shell/index.js';
import { applierCommand } from './shell/options.js';

/** Set by the bundle, which contains no package.json. */
declare const SLUICE_VERSION: string | undefined;
const version =
  typeof SLUICE_VERSION === 'string'
    ? SLUICE_VERSION
    : (JSON.parse(readFileSync(join(__dirname, '../../../../package.json'), 'utf8')) as { version: string }).version;

async function main(): Promise<void> {
  const command = applierCommand('sluice-applier')
    .version(version)
    .addOption(new Option('--guard <id and file>').hideHelp())
    // For deploy/applier/stand-guard, which waits in another container.
    .addOption(new Option('--sentinel').hideHelp())
    .showHelpAfterError('(run sluice-applier --help for usage)')
    .exitOverride();
  command.action(async ({ guard, sentinel }: { readonly guard?: string; readonly sentinel?: true }) => {
    if (sentinel === true) return void process.stdout.write(SENTINEL, () => process.exit(0));
    if (guard !== undefined) {
      const [id = ''] = guard.split(' ', 1);
      const seconds = await runGuard(id, guard.slice(id.length + 1), createLogger('guard'));
      process.stdout.write(`${seconds}\n`, () => process.exit(0));
      return;
    }
    const guardCommand = [process.execPath, __filename, '--guard'];
    await serveApplier(command, { version, interrupted, guardCommand });
    process.exit(0);
  });
  await command.parseAsync();
}

function interrupted(): AbortSignal {
  const interrupt = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => interrupt.abort());
  return interrupt.signal;
}

main().catch((error: unknown) => {
  if (error instanceof CommanderError) process.exit(error.exitCode === 0 ? 0 : 2);
  process.stderr.write(`error: ${(error as Error).message}\n`);
  process.exit((error as Error).name === 'SettingsError' ? 2 : 1);
});
