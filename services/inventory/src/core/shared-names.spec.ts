import { SharedNames } from './shared-names.js';

const MINUTE = 60_000;
const life = (node: string, incarnation: number, nonce = 7) => ({
  node,
  incarnation,
  nonce,
  everyMs: 10_000,
  pacedMs: 0,
});

test('an applier that restarts, even without its state, does not share its name', () => {
  const names = new SharedNames();
  for (const [at, incarnation] of [1, 1, 2, 2, 3].entries()) names.hear(life('n', incarnation), at * 10_000);
  names.hear(life('n', 4, 8), MINUTE);
  expect(names.names(MINUTE)).toEqual([]);
});

test.each([
  ['lives of different numbers', [1, 2, 1], [7, 7, 7]],
  ['lives of one number', [2, 2, 2], [7, 8, 7]],
])('two appliers that are heard in turn share a name: %s', (_, incarnations, nonces) => {
  const names = new SharedNames();
  names.hear(life('other', 1), 0);
  incarnations.forEach((incarnation, at) => names.hear(life('n', incarnation, nonces[at]), at * 10_000));
  expect(names.names(30_000)).toEqual(['n']);
});

test('ten minutes after the last sign of it, that is over', () => {
  const names = new SharedNames();
  for (const incarnation of [1, 2, 1]) names.hear(life('n', incarnation), 0);
  names.hear(life('n', 1), 9 * MINUTE);
  expect([names.names(9 * MINUTE), names.names(10 * MINUTE)]).toEqual([['n'], []]);
});
