import { Bench, file, hash } from './applier.fixture.js';

const A = hash('a');
const REASON = 'no answer in 5 s';

/** A target on config A, whose applier runs elsewhere. */
function scene(): Bench {
  const bench = new Bench();
  bench.config('a', [file('/a', 'x')]);
  bench.config('b', [file('/a', 'y')]);
  bench.settle();
  bench.grant({ hash: A });
  bench.settle();
  return bench;
}

const reported = (bench: Bench): readonly (string | undefined)[] =>
  bench.bus.reports.map(({ unavailable }) => unavailable);

it('a target that does not answer says so in a report, and takes it back in the next one', () => {
  const bench = scene();
  const before = reported(bench).length;
  bench.hear({ kind: 'unavailable', reason: REASON });
  bench.settle();
  expect(bench.last).toMatchObject({ kind: 'announced', unavailable: REASON, hash: A });
  bench.hear({ kind: 'answers' });
  bench.settle();
  expect(reported(bench).slice(before)).toEqual([REASON, undefined]);
});

it('it says nothing twice, and nothing if it could always be used', () => {
  const bench = scene();
  const before = reported(bench).length;
  bench.hear({ kind: 'answers' });
  bench.settle();
  expect(reported(bench).slice(before)).toEqual([]);
  bench.hear({ kind: 'unavailable', reason: REASON });
  bench.settle();
  bench.hear({ kind: 'unavailable', reason: REASON });
  bench.settle();
  expect(reported(bench).slice(before)).toEqual([REASON]);
});

it('says another reason, in at most 256 characters', () => {
  const bench = scene();
  bench.hear({ kind: 'unavailable', reason: 'x'.repeat(300) });
  bench.settle();
  expect(bench.last?.unavailable).toHaveLength(256);
  bench.hear({ kind: 'unavailable', reason: '' });
  bench.settle();
  expect(bench.last?.unavailable).toBe('it does not answer');
});

it('the report that ends a lease says it, too', () => {
  const bench = scene();
  bench.grant({ lease: 'l2', hash: hash('b'), from: A });
  while (bench.step().do !== 'apply');
  bench.machine.isGone = true;
  bench.hear({ kind: 'unavailable', reason: REASON });
  bench.pass(30_000);
  expect(bench.bus.reports.find(({ lease }) => lease === 'l2')).toMatchObject({
    kind: 'unreachable',
    unavailable: REASON,
  });
});

it('the next process says what the last one said until it has asked the target', () => {
  const bench = scene();
  bench.hear({ kind: 'unavailable', reason: REASON });
  bench.settle();
  bench.restart();
  bench.settle();
  expect(bench.last?.unavailable).toBe(REASON);
  bench.hear({ kind: 'answers' });
  bench.settle();
  expect(bench.last?.unavailable).toBeUndefined();
});

it('one that is killed before it has reported that reports it when it starts again', () => {
  const bench = scene();
  const before = reported(bench).length;
  bench.hear({ kind: 'unavailable', reason: REASON });
  while (bench.step().do !== 'write-journal');
  bench.restart();
  bench.settle();
  expect(new Set(reported(bench).slice(before))).toEqual(new Set([REASON]));
});

it('a target that answers while its report is being written takes that back', () => {
  const bench = scene();
  bench.hear({ kind: 'unavailable', reason: REASON });
  while (bench.step().do !== 'write-journal');
  bench.hear({ kind: 'answers' });
  bench.settle();
  expect(bench.last?.unavailable).toBeUndefined();
});
