import { Bench, file, hash, probe } from './applier.fixture.js';
import { EMPTY } from '../testing/memory-node.js';
import { hear, newJournal } from './index.js';

const A = hash('a');
const B = hash('b');
const every = (name: string, interval: string) => ({ ...probe(name), spec: { interval } });
const failing = (bench: Bench) => bench.bus.status?.failingProbes.map((one) => `${one.probe}: ${one.reason}`);
const started = (bench: Bench) =>
  bench.steps.flatMap((step) => (step.do === 'start-probes' ? [step.probes.map(({ name }) => name).join()] : []));

/** Config `a` is in force, with these probes. */
function inForce(...probes: ReturnType<typeof probe>[]): Bench {
  const bench = new Bench();
  bench.config('a', [file('/f', 'old'), ...probes]);
  bench.grant({ hash: A });
  bench.settle();
  expect(bench.last).toMatchObject({ verdict: 'applied', hash: A });
  return bench;
}

it('runs each probe of the config in force at its own interval', () => {
  const bench = inForce(every('often', '10s'), every('seldom', '30s'));
  bench.pass(61_000);
  expect(started(bench)).toEqual(['often', 'often', 'often,seldom', 'often', 'often', 'often,seldom']);
});

it('reports once that the node is unhealthy, and once that it is healthy again', () => {
  const bench = inForce(probe('p'));
  const before = bench.bus.reports.length;
  bench.machine.probes = () => false;
  bench.pass(200_000);
  expect(failing(bench)).toEqual(['p: it says no']);
  bench.machine.probes = () => true;
  bench.pass(200_000);
  expect(failing(bench)).toEqual([]);
  expect(bench.bus.reports.slice(before).map(({ kind, failingProbes }) => [kind, failingProbes.length])).toEqual([
    ['probed', 1],
    ['probed', 0],
  ]);
});

it('says what it knows again after a restart only if it differs from what the status shows', () => {
  const bench = inForce(probe('p'));
  bench.machine.probes = () => false;
  bench.pass(120_000);
  const count = bench.bus.reports.length;
  bench.restart();
  bench.pass(300_000);
  expect(bench.bus.reports.slice(count).filter(({ kind }) => kind === 'probed')).toEqual([]);
  bench.machine.probes = () => true;
  bench.restart();
  bench.pass(120_000);
  expect(failing(bench)).toEqual([]);
});

describe('a probe that keeps failing', () => {
  const HOUR = 3_600_000;
  const probed = (bench: Bench) => bench.bus.reports.filter(({ kind }) => kind === 'probed').length;

  it('is reported again when its reason changes, at most once a minute', () => {
    const bench = inForce(every('p', '1s'));
    bench.machine.probes = () => false;
    bench.pass(2_000);
    bench.machine.probeReason = 'connection refused';
    bench.pass(61_000);
    expect(failing(bench)).toEqual(['p: connection refused']);
    for (let i = 0; i < 300; i++) {
      bench.machine.probeReason = i % 2 === 0 ? 'no route' : 'connection refused';
      bench.pass(2_000);
    }
    expect(probed(bench)).toBeLessThanOrEqual(2 + 10);
  });

  it('is reported again when only a number in its reason changes, at most once an hour', () => {
    const bench = inForce(every('p', '1m'));
    bench.machine.probes = () => false;
    for (let i = 0; i < 150; i++) {
      bench.machine.probeReason = `status ${i}`;
      bench.pass(60_000);
    }
    expect(probed(bench)).toBe(3);
    bench.machine.probeReason = 'status 503';
    bench.pass(HOUR);
    expect(failing(bench)).toEqual(['p: status 503']);
  });

  it('is reported once if its reason or the number of probes is larger than a report can hold', () => {
    const bench = inForce(...Array.from({ length: 101 }, (_, i) => every(`p${i}`, '1m')));
    bench.machine.probes = () => false;
    bench.machine.probeReason = 'no '.repeat(200);
    bench.pass(600_000);
    expect(probed(bench)).toBe(1);
  });
});

it('is healthy again without probes, on a disk that is new', () => {
  const bench = inForce(probe('p'));
  bench.machine.probes = () => false;
  bench.pass(120_000);
  expect(failing(bench)).toEqual(['p: it says no']);
  bench.machine.journal = JSON.stringify(newJournal('n', EMPTY));
  bench.restart();
  bench.pass(60_000);
  expect(failing(bench)).toEqual([]);
});

it('says with a change that a probe that failed before still fails, and does not when the change mends it', () => {
  const bench = inForce(probe('p'));
  bench.machine.probes = (_name, files) => files.get('/f') === 'good';
  bench.config('b', [file('/f', 'no better'), probe('p')]);
  bench.grant({ lease: 'l2', hash: B, from: A, ledger: 9 });
  bench.settle();
  expect(bench.last).toMatchObject({
    kind: 'applied',
    hash: B,
    failingProbes: [{ probe: 'p', reason: 'it says no' }],
  });
  bench.config('c', [file('/f', 'good'), probe('p')]);
  bench.grant({ lease: 'l3', hash: hash('c'), from: B, ledger: 10 });
  bench.settle();
  expect(bench.last).toMatchObject({ kind: 'applied', hash: hash('c'), failingProbes: [] });
  expect(failing(bench)).toEqual([]);
});

it('forgets what a probe found while a change was under way', () => {
  const bench = inForce(probe('p'));
  const round = bench.state.memory.health.round;
  bench.config('b', [file('/f', 'bad'), probe('p')]);
  bench.machine.probes = (_name, files) => files.get('/f') !== 'bad';
  bench.grant({ lease: 'l2', hash: B, from: A, ledger: 9 });
  while (bench.machine.files.get('/f') !== 'bad') bench.step();
  const late = {
    kind: 'probed',
    round,
    results: [{ name: 'p', passed: false, reason: 'seen in the middle' }],
  } as const;
  bench.state = hear(bench.state, late, bench.nowMs);
  bench.settle();
  expect(bench.last).toMatchObject({ kind: 'invalid', hash: A });
  bench.state = hear(bench.state, late, bench.nowMs);
  bench.pass(10_000);
  expect(failing(bench)).toEqual([]);
});

it('runs the probes at once after a change was rolled back', () => {
  const bench = inForce(probe('p'));
  bench.config('b', [file('/f', 'bad'), probe('p')]);
  bench.machine.probes = (_name, files) => files.get('/f') !== 'bad';
  const before = started(bench).length;
  bench.grant({ lease: 'l2', hash: B, from: A, ledger: 9 });
  bench.settle();
  expect(started(bench).slice(before)).toEqual(['p']);
});

it('does not run probes on a node without a config, nor on a degraded one', () => {
  const fresh = new Bench();
  fresh.pass(200_000);
  expect(started(fresh)).toEqual([]);
  const bench = inForce(probe('p'));
  bench.config('b', [file('/f', 'bad'), probe('p')]);
  bench.machine.probes = (_name, files) => files.get('/f') !== 'bad';
  bench.machine.refuses = (entry) => (entry.spec['content'] === 'old' ? { fault: 'node', reason: 'full' } : undefined);
  bench.grant({ lease: 'l2', hash: B, from: A, ledger: 9 });
  bench.pass(30_000);
  expect(bench.last).toMatchObject({ restored: false });
  const before = started(bench).length;
  bench.pass(200_000);
  expect(started(bench).slice(before)).toEqual([]);
});
