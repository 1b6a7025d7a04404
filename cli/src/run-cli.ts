import { CommanderError } from 'commander';
import { EXIT, exitCodeOf, RejectedError, wordsOf, type ExitCode } from './output/exit.js';
import type { Io } from './output/io.js';
import { packageVersion } from './package-root.js';
import { buildProgram } from './program/program.js';
import type { Run } from './program/commands.js';
import { reasonLines } from './output/reasons.js';
import { openSession, type Session } from './connection/session.js';

/** Runs one command line; the exit code, or undefined when the process lives on by itself. */
export async function runCli(
  argv: readonly string[],
  io: Io,
  open: typeof openSession = openSession,
): Promise<ExitCode | undefined> {
  let exit: ExitCode | undefined = EXIT.done;
  let session: Session | undefined;
  const run: Run = async (flags, command) => {
    session = open(io, flags);
    exit = await command(session);
  };
  const program = buildProgram(packageVersion(), run);
  for (const command of [program, ...program.commands]) {
    const path = command === program ? 'sluice' : `sluice ${command.name()}`;
    command
      .exitOverride()
      .showHelpAfterError(`(run ${path} --help for usage)`)
      .configureOutput({ writeOut: (text) => io.out(text.trimEnd()), writeErr: (text) => io.say(text.trimEnd()) });
  }
  try {
    if (argv.length === 0) {
      io.say(program.helpInformation().trimEnd());
      return EXIT.usage;
    }
    // Loaded only where it is needed: every command waits for what is loaded before it.
    const words = argv.includes('--wait') ? (await import('./input/wait-flag.js')).withWaitJoined(argv) : argv;
    await program.parseAsync(words, { from: 'user' });
    return exit;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.done : EXIT.usage;
    explain(error, io, session);
    return exitCodeOf(error);
  } finally {
    if (exit !== undefined) await session?.close();
  }
}

function explain(error: unknown, io: Io, session: Session | undefined): void {
  const { red } = io.colours;
  if (error instanceof RejectedError) {
    if (session?.isJson === true) io.out(JSON.stringify({ rejected: error.reasons }));
    io.say([`${red('rejected')}; nothing was published:`, ...reasonLines(error.reasons, io.colours)].join('\n'));
    return;
  }
  io.say(`${red('error:')} ${(io.env['SLUICE_DEBUG'] ?? '') === '' ? wordsOf(error) : (error as Error).stack}`);
}
