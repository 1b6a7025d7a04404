import { playRound } from './round.js';
import { Stage } from './stage.js';

/** `npm run fuzz -- --rounds N --seed S` runs any number of seeds. */
const SEEDS = [1, 19];

describe('a fleet with bad input', () => {
  let stage: Stage;

  beforeAll(async () => {
    stage = await Stage.open();
  });
  afterAll(() => stage?.close());

  test.each(SEEDS)('answers it, sets it aside, and continues (seed %s)', async (seed) => {
    expect(await playRound(stage, seed)).toEqual([]);
  });

  test('starts again with everything that was edited by hand, and continues', async () => {
    await stage.restart();
    await stage.rollOut('after a restart');
    expect(stage.fleet.witness.exceeded).toEqual([]);
  });
});
