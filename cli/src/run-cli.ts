import { CommanderError } from 'commander';
import { EXIT, exitCodeOf, RejectedError, wordsOf, type ExitCode } from './exit.js';
import type { Io } from './io.js';
import { packageVersion } from './package-root.js';
import { buildProgram, withWaitJoined } from './program.js';
import type { Run } from './program/registry.js';
import { reasonLines } from './reasons.js';
import { openSession, type Session } from './session.js';

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
    command
      .exitOverride()
      .configureOutput({ writeOut: (text) => io.out(text.trimEnd()), writeErr: (text) => io.say(text.trimEnd()) });
  }
  try {
    if (argv.length === 0) {
      io.say(program.helpInformation().trimEnd());
      return EXIT.usage;
    }
    await program.parseAsync(withWaitJoined(argv), { from: 'user' });
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
    io.say([`${red('rejected')}, and not published:`, ...reasonLines(error.reasons, io.colours)].join('\n'));
    return;
  }
  io.say(`${red('error:')} ${(io.env['SLUICE_DEBUG'] ?? '') === '' ? wordsOf(error) : (error as Error).stack}`);
}
