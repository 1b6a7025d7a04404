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

test('a name is shared for as long as two appliers report, and until one has missed its heartbeats', () => {
  const names = new SharedNames();
  for (let at = 0; at < 10 * MINUTE; at += 10_000) {
    names.hear(life('n', (at / 10_000) % 2), at);
    expect(names.names(at)).toEqual(at < 20_000 ? [] : ['n']);
  }
  // The last heartbeat of the life 0 was this one. Both begin new lives when they notice each other.
  const stoppedMs = 10 * MINUTE - 20_000;
  for (let at = 10_000; at < MINUTE; at += 5_000) {
    names.hear(life('n', at < 30_000 ? 1 : 2), stoppedMs + at);
    expect(names.names(stoppedMs + at)).toEqual(at < 35_000 ? ['n'] : []);
  }
});

test('nobody has to send a heartbeat for a name to be free again', () => {
  const names = new SharedNames();
  for (const [at, incarnation] of [1, 2, 1].entries()) names.hear(life('n', incarnation), at * 1_000);
  expect([names.names(35_999), names.names(36_000)]).toEqual([['n'], []]);
});

test('a name stays shared while the other applier may only be late, and is shared again if it is heard from again', () => {
  const names = new SharedNames();
  const slow = { everyMs: MINUTE, pacedMs: MINUTE };
  for (const incarnation of [1, 2, 1]) names.hear({ ...life('n', incarnation), ...slow }, 0);
  expect([names.names(3 * MINUTE), names.patienceMs]).toEqual([['n'], 3.5 * MINUTE]);
  expect([names.names(4 * MINUTE), names.patienceMs]).toEqual([[], 0]);
  for (const incarnation of [1, 2]) names.hear({ ...life('n', incarnation), ...slow }, 5 * MINUTE);
  expect(names.names(5 * MINUTE)).toEqual(['n']);
});

test('an applier that does not say how often it sends heartbeats may be late for a minute', () => {
  const names = new SharedNames();
  for (const incarnation of [1, 2, 1]) names.hear({ ...life('n', incarnation), everyMs: 0 }, 0);
  expect([names.names(MINUTE - 1), names.names(MINUTE)]).toEqual([['n'], []]);
});
