import { roundsOrExit } from '../rounds.js';
import { playRound } from './round.js';
import { Stage } from './stage.js';

const HELP = `npm run fuzz -- [options]

  --rounds N   so many rounds (10), with seeds from S on
  --seed S     the first seed (1)

Exit code: 0 every round passed, 1 one did not, 2 usage.
`;

/**
 * `npm run fuzz -- --rounds N --seed S`: runs N rounds, starting with seed S. For each finding, prints how to repeat
 * it.
 */
async function main(args: readonly string[]): Promise<number> {
  const { seed: from, rounds } = roundsOrExit(HELP, args, { rounds: 10 });
  const stage = await Stage.open();
  let failed = 0;
  try {
    for (let seed = from; seed < from + rounds; seed++) {
      const complaints = await playRound(stage, seed).catch((error: unknown) => [
        (error as Error).stack ?? String(error),
      ]);
      if (complaints.length > 0) {
        failed += 1;
        process.stdout.write(
          `seed ${seed} fails:\n${complaints.map((complaint) => `  ${complaint}\n`).join('')}  replay: npm run fuzz -- --rounds 1 --seed ${seed}\n`,
        );
      } else process.stderr.write(`seed ${seed} passes\n`);
      await stage.restart().catch((error: unknown) => {
        throw new Error(
          `after seed ${seed} the services do not start; replay: npm run fuzz -- --rounds 1 --seed ${seed}`,
          { cause: error },
        );
      });
    }
  } finally {
    await stage.close();
  }
  process.stdout.write(`${rounds - failed} rounds passed, ${failed} failed\n`);
  return failed === 0 ? 0 : 1;
}

main(process.argv.slice(2)).then(
  (code) => process.exit(code),
  (error: unknown) => {
    process.stderr.write(`${(error as Error).stack ?? ''}\n`);
    process.exit(1);
  },
);
