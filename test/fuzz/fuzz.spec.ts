import { playRound } from './round.js';
import { Stage } from './stage.js';

/** `npm run fuzz -- --rounds N --seed S` plays as many as one likes. */
const SEEDS = [1, 19];

describe('a fleet at which everything bad is thrown', () => {
  let stage: Stage;

  beforeAll(async () => {
    stage = await Stage.open();
  }, 120_000);
  afterAll(() => stage?.close(), 60_000);

  test.each(SEEDS)(
    'answers, sets aside, and goes on (seed %s)',
    async (seed) => {
      expect(await playRound(stage, seed)).toEqual([]);
    },
    180_000,
  );

  test('starts again on all that was edited by hand, and goes on', async () => {
    await stage.restart();
    await stage.rollOut('after a restart');
    expect(stage.fleet.witness.exceeded).toEqual([]);
  }, 120_000);
});
