import { EMPTY } from '../testing/memory-node.js';
import { Bench, file, hash, probe } from './applier.fixture.js';

const A = hash('a');
const B = hash('b');

/** Config `a` is in force: `/f` says `old`, and it has the probe `p`. Config `b` is the next. */
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
  ])('fails the change when it %s, and nothing of the change remains', (_, added) => {
    const bench = inForce(file('/f', 'new'), added);
    bench.machine.probes = () => false;
    next(bench);
    expect(bench.bus.reports.findLast(({ kind }) => kind !== 'probed')).toMatchObject({
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

  it('does not stop a rollback of the rollout from restoring a config that has it', () => {
    const bench = inForce(file('/f', 'new'));
    next(bench);
    bench.machine.probes = () => false;
    bench.grant({ lease: 'l3', kind: 'rollback', hash: A, from: B, ledger: 10 });
    bench.settle();
    expect(bench.last).toMatchObject({ verdict: 'applied', lease: 'l3', hash: A });
  });

  it('fails the change if it only ran out of time before, because it may have passed', () => {
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

it('makes a config invalid if its new probe passes again with the old content', () => {
  const bench = inForce(file('/f', 'new'), probe('q'));
  let runs = 0;
  bench.machine.probes = () => ++runs > 2;
  next(bench);
  expect(bench.last).toMatchObject({ verdict: 'invalid', hash: A });
  expect(bench.last?.reason).toContain('; it passes after the rollback');
});

it('is tried once before a change, and as often as it says after it', () => {
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

it.each<[when: string, lateMs: number, answer: false | 'late']>([
  ['it failed after the time of the change', 600_000, false],
  ['it was still running at the end of that time', 600_000, 'late'],
  ['it was not tried again, because the time was nearly over', 0, 'late'],
])('is named, and the config is not to blame, if %s', (_, lateMs, answer) => {
  const bench = inForce(file('/f', 'new'), probe('q'));
  bench.machine.probes = (_name, files) => {
    if (files.get('/f') === 'old') return true;
    bench.nowMs += lateMs;
    return answer;
  };
  next(bench);
  expect(bench.last).toMatchObject({ verdict: 'failed', lease: 'l2', hash: A, restored: true });
  expect(bench.last?.reason).toMatch(
    /^not confirmed \d+ ms after the lease was read, because the probe q had not passed: it says no$/,
  );
});

describe('what is to blame if the applier hangs in a probe', () => {
  const blamed = (bench: Bench, from: number) =>
    bench.steps
      .slice(from)
      .flatMap((step) => (step.do === 'run-probes' ? [[step.probes.map(({ name }) => name).join(), step.fault]] : []));

  it('is the config for new and changed probes, and for those that passed before, and otherwise the node', () => {
    const bench = inForce(file('/f', 'new'), probe('p'), probe('q'), probe('new'));
    bench.config('c', [file('/f', 'old'), probe('p'), probe('q')]);
    next(bench, { hash: hash('c') });
    bench.machine.probes = (name) => name !== 'q';
    const before = bench.steps.length;
    next(bench, { lease: 'l3', from: hash('c'), ledger: 20 });
    expect(bench.last).toMatchObject({ verdict: 'applied', hash: B });
    expect(blamed(bench, before)).toEqual([
      ['p,q', 'node'],
      ['new', 'content'],
      ['p,new', 'content'],
      ['q', 'node'],
    ]);
  });

  it('is the node if the time of an unchanged probe ran out before the change', () => {
    const bench = inForce(file('/f', 'new'), probe('p'));
    let tries = 0;
    bench.machine.probes = () => (tries++ === 0 ? 'late' : true);
    const before = bench.steps.length;
    next(bench);
    expect(bench.last).toMatchObject({ verdict: 'applied', hash: B });
    expect(blamed(bench, before)).toEqual([
      ['p', 'node'],
      ['p', 'node'],
    ]);
  });
});
