import { HELP, readOptions, type Options } from './options.js';
import { runCrew, tallyOf, type Tally } from './runs/crew.js';
import { Progress } from './runs/progress.js';
import { runPlan } from './runs/run.js';
import { describeFailure } from './runs/shrink.js';

/** How many failures are shrunk. The others most likely have the same cause. */
const MOST_SHRUNK = 3;

/** `npm run sim`: runs seeds, shows the progress, and prints how to repeat failures. */
async function main(args: readonly string[]): Promise<number> {
  const options = readOptions(args);
  if (options.help) return say(HELP, 0);
  const tally = options.trace ? traced(options) : await runAll(options, args);
  if (options.json) return say(`${JSON.stringify(tally)}\n`, tally.failed.length === 0 ? 0 : 1);
  for (const [i, failed] of tally.failed.entries())
    process.stdout.write(`${describeFailure(failed, options.plan(failed.seed), options.shrink && i < MOST_SHRUNK)}\n`);
  const bitten = Object.entries(tally.fired)
    .sort()
    .map(([name, count]) => `${name} ${count}`)
    .join(', ');
  return say(
    `${bitten}\n${tally.seeds - tally.failed.length} seeds passed, ${tally.failed.length} failed\n`,
    tally.failed.length === 0 ? 0 : 1,
  );
}

function say(text: string, code: number): number {
  process.stdout.write(text);
  return code;
}

function traced(options: Options): Tally {
  const outcome = runPlan(options.plan(options.from), { trace: true });
  process.stdout.write(`${outcome.trace.join('\n')}\n`);
  return tallyOf(outcome);
}

async function runAll(options: Options, args: readonly string[]): Promise<Tally> {
  const progress = new Progress(options.seeds, process.stderr);
  const tally = await runCrew(options, args, (sofar) => progress.show(sofar));
  progress.end(tally);
  return tally;
}

main(process.argv.slice(2)).then(
  (code) => {
    process.exitCode = code;
  },
  (error: unknown) => {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 2;
  },
);
