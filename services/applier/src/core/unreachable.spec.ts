import { REMOTE_APPLIER } from '#libs/contracts';
import { MEMORY_KINDS } from '../testing/memory-node.js';
import type { Step } from './index.js';
import { Bench, file, hash, probe, SETTINGS } from './applier.fixture.js';

const A = hash('a');
const B = hash('b');
const OLD = { '/a': 'x', '/b': 'x' };
const NEW = { '/a': 'y', '/b': 'y' };

/** A target on config A, whose applier runs elsewhere. Config B changes both of its files and adds a probe. */
function scene(): Bench {
  const bench = new Bench();
  bench.config('a', [file('/a', 'x'), file('/b', 'x'), probe('p')]);
  bench.config('b', [file('/a', 'y'), file('/b', 'y'), probe('p'), probe('q')]);
  bench.settle();
  bench.grant({ hash: A });
  bench.settle();
  return bench;
}

const forward = (bench: Bench): void =>
  bench.grant({ lease: 'l2', hash: B, from: A, actions: [{ kind: 'restart', unit: 'u' }] });
const files = (bench: Bench): object => Object.fromEntries(bench.machine.files);
const journal = (bench: Bench) => bench.machine.readJournal();

function comesBack(bench: Bench): void {
  bench.machine.isGone = false;
  bench.hear({ kind: 'answers' });
  bench.pass(10_000);
}

it('a target that does not answer refuses its lease before anything changes', () => {
  const bench = scene();
  bench.machine.isGone = true;
  forward(bench);
  bench.settle();
  expect(bench.last).toMatchObject({
    kind: 'unreachable',
    verdict: 'unreachable',
    lease: 'l2',
    hash: A,
    restored: true,
    untouched: true,
  });
  expect(bench.last?.reason).toContain('no answer in 5 s');
  expect(files(bench)).toEqual(OLD);
});

/** How many steps a lease has if the target always answers. */
const STEPS = ((): number => {
  const bench = scene();
  const before = bench.steps.length;
  forward(bench);
  bench.settle();
  return bench.steps.length - before;
})();

describe('a target that is lost before a step of its lease', () => {
  const all = Array.from({ length: STEPS }, (_, lost) => lost);

  it.each(all)('does not fail (step %i), and is whole once it answers again', (lost) => {
    const bench = scene();
    forward(bench);
    for (let i = 0; i < lost; i++) bench.step();
    bench.machine.isGone = true;
    bench.pass(30_000);
    const { verdict, restored } = bench.last ?? {};
    const isDone = journal(bench).inForce === B;
    expect(verdict).toBe(isDone ? 'applied' : 'unreachable');
    comesBack(bench);
    expect([journal(bench).sound, files(bench)]).toEqual([true, isDone ? NEW : OLD]);
    expect(bench.last?.restored).toBe(true);
    if (restored === false) expect(bench.last?.kind).toBe('announced');
  });
});

it('a target that is lost and answers within the lease is rolled back, and that is not a failure either', () => {
  const bench = scene();
  forward(bench);
  while (bench.step().do !== 'apply');
  bench.machine.isGone = true;
  bench.step();
  bench.machine.isGone = false;
  bench.settle();
  expect(bench.last).toMatchObject({ verdict: 'unreachable', hash: A, restored: true });
  expect(files(bench)).toEqual(OLD);
});

it('a failure of the config stays one if the target is lost in the rollback', () => {
  const bench = scene();
  bench.machine.probes = (name) => name !== 'q';
  forward(bench);
  while (journal(bench).work?.phase !== 'rolling-back') bench.step();
  bench.machine.isGone = true;
  bench.pass(30_000);
  expect(bench.last).toMatchObject({ verdict: 'failed', restored: false });
});

describe('a time limit that is reached', () => {
  /** The applier is paused after these steps of its lease, until the time of the lease is almost over. */
  function paused(capabilities: readonly string[], steps: number): Bench {
    const bench = scene();
    bench.self = { ...bench.self, capabilities };
    bench.restart();
    bench.settle();
    forward(bench);
    for (let i = 0; i < steps; i++) bench.step();
    bench.nowMs += 55_000;
    bench.settle();
    return bench;
  }

  const all = Array.from({ length: STEPS }, (_, step) => step);

  it.each(all)('on a target elsewhere (step %i) is no failure, and says how to get more time', (step) => {
    const bench = paused(['kind:File', REMOTE_APPLIER], step);
    const isDone = journal(bench).inForce === B;
    expect(bench.last).toMatchObject({ verdict: isDone ? 'applied' : 'unreachable', restored: true });
    expect(files(bench)).toEqual(isDone ? NEW : OLD);
    if (!isDone) expect(bench.last?.reason).toContain('give its pool a longer applyTimeout');
  });

  it('is not blamed on a target whose applier did not run', () => {
    const bench = scene();
    bench.self = { ...bench.self, capabilities: ['kind:File', REMOTE_APPLIER] };
    bench.restart();
    bench.settle();
    forward(bench);
    while (bench.step().do !== 'apply');
    bench.nowMs += 55_000;
    bench.restart();
    bench.settle();
    expect(bench.last).toMatchObject({
      verdict: 'unreachable',
      restored: true,
      reason: expect.stringMatching(/^not confirmed \d+ ms after the lease was read, because its applier did not run$/),
    });
  });

  it('on a machine is a failure', () => {
    const verdicts = all.map((step) => paused(['kind:File'], step).last?.verdict);
    expect(new Set(verdicts)).toEqual(new Set(['failed', 'applied']));
  });

  /** A target elsewhere whose probe q is in this state when the time is over. */
  function withProbe(answer: false | 'late'): Bench {
    const bench = scene();
    bench.self = { ...bench.self, capabilities: ['kind:File', REMOTE_APPLIER] };
    bench.restart();
    bench.settle();
    bench.machine.probes = (name) => (name === 'q' ? answer : true);
    forward(bench);
    while (!isProbing(bench.step(), bench)) bench.takeReports();
    bench.nowMs += 55_000;
    bench.settle();
    return bench;
  }
  const isProbing = (step: Step, bench: Bench): boolean =>
    step.do === 'run-probes' && journal(bench).work !== undefined;

  it('is a failure if a probe has failed by then', () => {
    expect(withProbe(false).last).toMatchObject({ verdict: 'failed', restored: true });
  });

  it('is no failure if a probe only had no time to pass, and names it', () => {
    const { last } = withProbe('late');
    expect(last).toMatchObject({ verdict: 'unreachable', restored: true });
    expect(last?.reason).toContain('the probe q had not passed');
  });
});

it('nothing is reported about drift and health while it does not answer', () => {
  const bench = scene();
  const sent = bench.bus.reports.length;
  bench.machine.isGone = true;
  bench.pass(600_000);
  expect(bench.bus.reports.slice(sent)).toEqual([]);
  bench.machine.files.set('/a', 'edited');
  comesBack(bench);
  expect(bench.last).toMatchObject({ kind: 'drifted', differences: ['/a: differs'] });
});

describe('a target that lost everything', () => {
  const restart = [{ kind: 'restart', unit: 'u' }] as const;

  /** Config A is in force. The target has restarted, and is empty. */
  function empty(): Bench {
    const bench = new Bench({
      ...SETTINGS,
      kinds: { ...MEMORY_KINDS, forgotten: ['File'], actionsAfterLoss: () => restart },
    });
    bench.config('a', [file('/a', 'x'), file('/b', 'x')]);
    bench.settle();
    bench.grant({ hash: A });
    bench.settle();
    bench.machine.files.clear();
    bench.machine.running = new Map();
    bench.machine.forgets = true;
    bench.hear({ kind: 'answers' });
    return bench;
  }

  it('gets it again without a lease, and then the actions that this needs', () => {
    const bench = empty();
    bench.pass(10_000);
    expect([files(bench), Object.fromEntries(bench.machine.running)]).toEqual([OLD, OLD]);
    expect(journal(bench)).toMatchObject({ sound: true, inForce: A });
    expect(bench.steps.filter((step) => step.do === 'act')).toHaveLength(1);
  });

  it('in the middle of a lease has not failed', () => {
    const bench = empty();
    bench.pass(10_000);
    bench.config('b', [file('/a', 'y'), file('/b', 'y')]);
    bench.machine.forgets = false;
    bench.grant({ lease: 'l2', hash: B, from: A });
    while (bench.step().do !== 'apply');
    bench.step();
    bench.machine.files.clear();
    bench.machine.forgets = true;
    bench.pass(10_000);
    expect(bench.bus.reports.find(({ lease }) => lease === 'l2')).toMatchObject({ verdict: 'unreachable' });
    expect(files(bench)).toEqual(OLD);
  });

  it('gets both if the applier is killed before any step', () => {
    for (let killed = 0; killed < 12; killed++) {
      const bench = empty();
      for (let i = 0; i < killed; i++) bench.step();
      bench.restart();
      bench.pass(180_000);
      expect([killed, files(bench), Object.fromEntries(bench.machine.running)]).toEqual([killed, OLD, OLD]);
      expect(journal(bench).sound).toBe(true);
    }
  });
});

it('a step of a rollback has as much time as the kind of target needs', () => {
  const last = (rollbackStepMs?: number): number => {
    const bench = new Bench({ ...SETTINGS, rollbackStepMs });
    bench.config('a', [file('/a', 'x'), file('/b', 'x')]);
    bench.config('b', [file('/a', 'y'), file('/b', 'y'), probe('q')]);
    bench.settle();
    bench.grant({ hash: A });
    bench.settle();
    bench.machine.probes = () => false;
    bench.grant({ lease: 'l2', hash: B, from: A });
    bench.settle();
    const times = bench.steps.flatMap((step) =>
      step.do === 'apply' && step.isRollback === true ? [step.untilMs] : [],
    );
    expect(times.length).toBeGreaterThan(0);
    return Math.max(...times) - bench.nowMs;
  };
  expect(last()).toBeLessThanOrEqual(30_000);
  expect(last(3_600_000)).toBeGreaterThan(3_000_000);
});
