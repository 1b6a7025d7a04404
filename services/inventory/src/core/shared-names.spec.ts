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
  ['different incarnations', [1, 2, 1], [7, 7, 7]],
  ['one incarnation, different nonces', [2, 2, 2], [7, 8, 7]],
])('two appliers that report alternately share a name: %s', (_, incarnations, nonces) => {
  const names = new SharedNames();
  names.hear(life('other', 1), 0);
  incarnations.forEach((incarnation, at) => names.hear(life('n', incarnation, nonces[at]), at * 10_000));
  expect(names.names(30_000)).toEqual(['n']);
});

test('a name is shared for as long as two appliers report, and until only one is heard for a minute', () => {
  const names = new SharedNames();
  for (let at = 0; at < 10 * MINUTE; at += 10_000) {
    names.hear(life('n', (at / 10_000) % 2), at);
    expect(names.names(at)).toEqual(at < 20_000 ? [] : ['n']);
  }
  const stoppedMs = 10 * MINUTE - 10_000;
  for (let at = 10_000; at < 2 * MINUTE; at += 10_000) {
    names.hear(life('n', 1), stoppedMs + at);
    expect(names.names(stoppedMs + at)).toEqual(at < MINUTE ? ['n'] : []);
  }
});

test('a name stays shared while the other applier may only be late, and is shared again if it is heard from again', () => {
  const names = new SharedNames();
  const slow = { everyMs: MINUTE, pacedMs: MINUTE };
  for (const incarnation of [1, 2, 1]) names.hear({ ...life('n', incarnation), ...slow }, 0);
  expect([names.names(3 * MINUTE), names.names(4 * MINUTE)]).toEqual([['n'], []]);
  names.hear({ ...life('n', 2), ...slow }, 5 * MINUTE);
  expect(names.names(5 * MINUTE)).toEqual(['n']);
});
