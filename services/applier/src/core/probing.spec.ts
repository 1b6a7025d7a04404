import { EMPTY } from '../testing/memory-node.js';
import { Bench, file, hash, probe } from './applier.fixture.js';

const A = hash('a');
const B = hash('b');

/** Config `a` is in force: `/f` says `old`, and has the probe `p`. Config `b` is the next. */
function inForce(...next: Parameters<Bench['config']>[1]): Bench {
  const bench = new Bench();
  bench.config('a', [file('/f', 'old'), probe('p')]);
  bench.config('b', next);
  bench.grant({ hash: A });
  bench.settle();
  expect(bench.last).toMatchObject({ verdict: 'applied', hash: A });
  return bench;
}

const next = (bench: Bench, more: Parameters<Bench['grant']>[0] = {}): void => {
  bench.grant({ lease: 'l2', hash: B, from: A, ledger: 9, ...more });
  bench.settle();
};

const changedProbe = (name: string) => ({ ...probe(name), spec: { timeout: '7s' } });

describe('a probe that fails before and after a change', () => {
  it.each([
    ['is new', probe('q')],
    ['is changed', changedProbe('p')],
  ])('fails the change when it %s, and nothing of the change stays', (_, added) => {
    const bench = inForce(file('/f', 'new'), added);
    bench.machine.probes = () => false;
    next(bench);
    expect(bench.last).toMatchObject({
      verdict: 'failed',
      restored: true,
      hash: A,
      probe: added.name,
      reason: `the probe ${added.name} must pass after this change, but fails: it says no`,
    });
    expect(bench.machine.files.get('/f')).toBe('old');
  });

  it('does not fail the change when it is the same as before', () => {
    const bench = inForce(file('/f', 'new'), probe('p'));
    bench.machine.probes = () => false;
    next(bench);
    expect(bench.last).toMatchObject({ verdict: 'applied', hash: B });
    expect(bench.machine.files.get('/f')).toBe('new');
  });

  it('does not keep a rollback of the rollout from bringing it back', () => {
    const bench = inForce(file('/f', 'new'));
    next(bench);
    bench.machine.probes = () => false;
    bench.grant({ lease: 'l3', kind: 'rollback', hash: A, from: B, ledger: 10 });
    bench.settle();
    expect(bench.last).toMatchObject({ verdict: 'applied', lease: 'l3', hash: A });
  });

  it('fails the change when it only ran out of time before: nobody knows that it failed', () => {
    const bench = inForce(file('/f', 'new'), probe('p'));
    bench.machine.probes = (_name, files) => (files.get('/f') === 'old' ? 'late' : false);
    next(bench);
    expect(bench.last).toMatchObject({ verdict: 'failed', hash: A });
  });
});

it('confirms a change that makes its own new probe pass', () => {
  const bench = inForce(file('/f', 'new'), probe('q'));
  bench.machine.probes = (_name, files) => files.get('/f') === 'new';
  next(bench);
  expect(bench.last).toMatchObject({ verdict: 'applied', hash: B });
});

it('calls a config invalid whose new probe passes once the old content is back', () => {
  const bench = inForce(file('/f', 'new'), probe('q'));
  let runs = 0;
  bench.machine.probes = () => ++runs > 2;
  next(bench);
  expect(bench.last).toMatchObject({ verdict: 'invalid', hash: A });
  expect(bench.last?.reason).toContain('; it passes after the rollback');
});

it('tries each probe once before a change, and as often as it says after it', () => {
  const bench = new Bench();
  bench.config('a', [file('/f', 'x'), { ...probe('p'), spec: { retries: 5 } }]);
  bench.settle();
  bench.grant({ hash: A, from: EMPTY });
  bench.settle();
  const retries = bench.steps.flatMap((step) =>
    step.do === 'run-probes' ? [step.probes.map(({ spec }) => spec['retries'])] : [],
  );
  expect(retries).toEqual([[0], [5]]);
});
