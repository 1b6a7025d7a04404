import { CommanderError, type Command } from 'commander';
import { EXIT, exitCodeOf, RejectedError, wordsOf, type ExitCode } from './output/exit.js';
import type { Io } from './output/io.js';
import { packageVersion } from './package-root.js';
import { buildProgram } from './program/program.js';
import type { Run } from './program/commands.js';
import { readable, readableFleet, readableText } from './output/readable.js';
import { reasonLines } from './output/reasons.js';
import { openSession, type Session } from './connection/session.js';

/** Runs one command line. Returns the exit code, or undefined if the process continues on its own. */
export async function runCli(
  argv: readonly string[],
  io: Io,
  open: typeof openSession = openSession,
): Promise<ExitCode | undefined> {
  let exit: ExitCode | undefined = EXIT.done;
  let session: Session | undefined;
  let isDoctor = false;
  const run: Run = async (flags, command) => {
    session = forReaders(open(io, flags));
    exit = await command(session);
  };
  const program = buildProgram(packageVersion(), run);
  program.hook('preAction', (_, command) => void (isDoctor = command.name() === 'doctor'));
  for (const command of [program, ...program.commands]) {
    const path = command === program ? 'sluice' : `sluice ${command.name()}`;
    command
      .exitOverride()
      .showHelpAfterError(`(run ${path} --help for usage)`)
      .configureOutput({
        writeOut: (text) => io.out(text.trimEnd()),
        writeErr: (text) => io.say(text.trimEnd()),
        outputError: (text, write) => write(withFileFlag(command, text)),
      });
  }
  try {
    if (argv.length === 0) {
      io.say(program.helpInformation().trimEnd());
      return EXIT.usage;
    }
    const words = argv.includes('--wait') ? await withWait(program, argv) : argv;
    await program.parseAsync(words, { from: 'user' });
    return exit;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.done : EXIT.usage;
    explain(error, io, session, isDoctor);
    return exitCodeOf(error);
  } finally {
    if (exit !== undefined) await session?.close();
  }
}

/** People forget the flag. */
const withFileFlag = ({ options }: Command, text: string): string =>
  options.some(({ long }) => long === '--filename') && text.includes('too many arguments')
    ? `${text.trimEnd()} Name each file or folder with -f\n`
    : text;

async function withWait({ commands }: Command, argv: readonly string[]): Promise<readonly string[]> {
  const command = commands.find((one) => argv.includes(one.name()));
  const args = command?.registeredArguments.map((one) => one.name()) ?? [];
  // Loaded only if needed, because every command waits for the code that is loaded before it.
  return (await import('./input/wait-flag.js')).withWaitJoined(argv, args);
}

/** Programs read JSON and YAML, which escape what must be escaped, and need the exact values. */
const forReaders = (session: Session): Session =>
  session.flags.output === undefined
    ? { ...session, fleet: async () => readableFleet(await session.fleet()) }
    : session;

function explain(error: unknown, io: Io, session: Session | undefined, isDoctor: boolean): void {
  const { red } = io.colours;
  if (error instanceof RejectedError) {
    if (session?.isJson === true) io.out(JSON.stringify({ rejected: error.reasons }));
    io.say(
      [`${red('rejected')}; nothing was published:`, ...reasonLines(readable(error.reasons), io.colours)].join('\n'),
    );
    return;
  }
  const text = (io.env['SLUICE_DEBUG'] ?? '') === '' ? wordsOf(error, { isDoctor }) : String((error as Error).stack);
  io.say(`${red('error:')} ${readableText(text)}`);
}
