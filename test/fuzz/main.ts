import { roundsOrExit } from '../rounds.js';
import { playRound } from './round.js';
import { Stage } from './stage.js';

/** `npm run fuzz -- --rounds N --seed S`: N rounds from seed S on; what a round finds is printed with how to play it again. */
async function main(args: readonly string[]): Promise<number> {
  const { seed: from, rounds } = roundsOrExit(args, { rounds: 10 });
  const stage = await Stage.open();
  let failed = 0;
  try {
    for (let seed = from; seed < from + rounds; seed++) {
      const complaints = await playRound(stage, seed);
      if (complaints.length > 0) {
        failed += 1;
        process.stdout.write(`seed ${seed} fails:\n${complaints.map((complaint) => `  ${complaint}\n`).join('')}  replay: npm run fuzz -- --rounds 1 --seed ${seed}\n`);
      } else process.stderr.write(`seed ${seed} passes\n`);
      await stage.restart();
    }
  } finally {
    await stage.close();
  }
  process.stdout.write(`${rounds - failed} rounds passed, ${failed} failed\n`);
  return failed === 0 ? 0 : 1;
}

main(process.argv.slice(2)).then((code) => process.exit(code), (error: unknown) => {
  process.stderr.write(`${(error as Error).stack ?? ''}\n`);
  process.exit(1);
});
