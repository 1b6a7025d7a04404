import { runSeed } from './run.js';

/** `npm run sim -- --seeds N --from S`; with one seed and `--trace` it prints everything that happened. */
function main(args: readonly string[]): number {
  const value = (name: string, otherwise: number): number => {
    const at = args.indexOf(name);
    return at < 0 ? otherwise : Number(args[at + 1]);
  };
  const from = value('--from', 1);
  const seeds = value('--seeds', 1);
  let failed = 0;
  for (let seed = from; seed < from + seeds; seed++) {
    const outcome = runSeed(seed, { trace: args.includes('--trace') });
    if (args.includes('--trace')) process.stdout.write(`${outcome.trace.join('\n')}\n`);
    if (outcome.failure !== undefined) {
      failed += 1;
      process.stdout.write(`seed ${seed} fails: ${outcome.failure}\n  replay: npm run sim -- --seeds 1 --from ${seed} --trace\n`);
    }
    if ((seed - from + 1) % 1000 === 0) process.stderr.write(`${seed - from + 1} of ${seeds} seeds, ${failed} failed\n`);
  }
  process.stdout.write(`${seeds - failed} seeds passed, ${failed} failed\n`);
  return failed === 0 ? 0 : 1;
}

process.exitCode = main(process.argv.slice(2));
