import { helpOf, readOptions, type Options } from './harness/options.js';
import { describeMachine, machineLine } from './harness/machine.js';
import { SkipError, type Part, type Result } from './harness/part.js';
import { keep, type SkippedPart } from './harness/record.js';
import { drawTable } from './harness/table.js';
import { PARTS } from './parts/index.js';

const say = (text: string): void => void process.stderr.write(`${text}\n`);

async function main(): Promise<number> {
  if (process.argv.includes('--help')) {
    process.stdout.write(helpOf(PARTS));
    return 0;
  }
  const options = readOptions(process.argv.slice(2), PARTS);
  const machine = await describeMachine();
  say(machineLine(machine));
  const results: Result[] = [];
  const skipped: SkippedPart[] = [];
  const failed: string[] = [];
  for (const part of PARTS.filter(({ name }) => options.parts.includes(name))) {
    say(`\n== ${part.name}: ${part.what}`);
    try {
      const found = await runPart(part, options);
      results.push(...found);
      say(drawTable(found, []));
    } catch (error) {
      const because = (error as Error).message;
      skipped.push({ name: part.name, because });
      if (!(error instanceof SkipError)) failed.push(part.name);
      say(
        `${part.name} ${error instanceof SkipError ? 'is skipped' : 'failed'}: ${error instanceof SkipError ? because : ((error as Error).stack ?? because)}`,
      );
    }
    // After each part, so that results are kept even if the next part fails.
    if (options.save) keep(results, skipped, machine, new Date().toISOString());
  }
  process.stdout.write(
    options.isJson
      ? `${JSON.stringify({ results, skipped, machine })}\n`
      : `\n${machineLine(machine)}\n\n${drawTable(results, skipped)}\n`,
  );
  if (!options.save) say('not saved: --no-save, or a size below the size that the goals are for');
  return failed.length === 0 ? 0 : 1;
}

async function runPart(part: Part, { size }: Options): Promise<readonly Result[]> {
  const ends: (() => Promise<void> | void)[] = [];
  try {
    return await part.run({ size, say: (text) => say(`   ${text}`), atEnd: (undo) => void ends.unshift(undo) });
  } finally {
    for (const undo of ends)
      await Promise.resolve(undo()).catch((error: unknown) => say(`${part.name}: ${String(error)}`));
  }
}

// One listener for each process and folder that must end with this process.
process.setMaxListeners(100);
// When this process exits, it ends everything that it started.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(1));

main().then(
  (code) => process.exit(code),
  (error: unknown) => {
    say(`bench: ${(error as Error).message}`);
    process.exit(error instanceof TypeError ? 2 : 1);
  },
);
