import { REMOTE_APPLIER } from '#libs/contracts';
import { MEMORY_KINDS } from '../testing/memory-node.js';
import { Bench, file, hash, SETTINGS } from './applier.fixture.js';

const A = hash('a');
const B = hash('b');

/** A node on config A, where files take time until they are ready. Config B changes one of them. */
function scene(): Bench {
  const bench = new Bench({ ...SETTINGS, kinds: { ...MEMORY_KINDS, becomesReady: ['File'] } });
  bench.config('a', [file('/a', 'x')]);
  bench.config('b', [file('/a', 'y')]);
  bench.settle();
  bench.grant({ hash: A });
  bench.settle();
  return bench;
}

it('a change is confirmed only once everything that it applied is ready', () => {
  const bench = scene();
  const looks = [['/a: is starting'], ['/a: is starting'], []];
  bench.machine.notReady = () => looks.shift() ?? [];
  bench.grant({ lease: 'l2', hash: B, from: A });
  bench.settle();
  expect([looks, bench.last]).toMatchObject([[], { verdict: 'applied', lease: 'l2', hash: B }]);
});

it('what does not become ready in time is named, and the change is rolled back', () => {
  const bench = scene();
  bench.machine.notReady = () => {
    bench.nowMs += 1_000;
    return ['/a: is starting', '/b: too', '/c: too', '/d: too'];
  };
  bench.grant({ lease: 'l2', hash: B, from: A });
  bench.settle();
  expect(bench.last).toMatchObject({ verdict: 'failed', lease: 'l2', hash: A, restored: true });
  expect(bench.last?.reason).toMatch(
    /^not confirmed \d+ ms after the lease was read, because this was not ready: \/a: is starting; \/b: too; \/c: too and 1 more$/,
  );
  expect(Object.fromEntries(bench.machine.files)).toEqual({ '/a': 'x' });
});

it('what has failed ends the change at once, and a rollback waits for nothing', () => {
  const bench = scene();
  let looks = 0;
  bench.machine.notReady = () => {
    looks += 1;
    return { fault: 'node', reason: '/a has failed' };
  };
  bench.grant({ lease: 'l2', hash: B, from: A });
  bench.settle();
  expect([looks, bench.last]).toMatchObject([1, { verdict: 'failed', reason: '/a has failed', restored: true }]);
});

it('an applier elsewhere that was paused while it waited does not blame what was not ready before', () => {
  const bench = scene();
  bench.self = { ...bench.self, capabilities: [...bench.self.capabilities, REMOTE_APPLIER] };
  bench.restart();
  bench.settle();
  bench.machine.notReady = () => {
    bench.machine.notReady = () => {
      bench.nowMs += 100_000;
      return ['/a: is starting'];
    };
    return ['/a: is starting'];
  };
  bench.grant({ lease: 'l2', hash: B, from: A });
  bench.settle();
  expect(bench.last).toMatchObject({ verdict: 'unreachable', restored: true });
});
