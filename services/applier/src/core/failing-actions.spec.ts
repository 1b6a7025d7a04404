import type { Action } from '#libs/contracts';
import { Bench, file, hash, probe, SELF } from './applier.fixture.js';
import { NO_ANSWER } from '../testing/memory-node.js';

const A = hash('a');
const B = hash('b');
const C = hash('c');
const RESTART: readonly Action[] = [{ kind: 'restart', unit: 'x.service' }];
const FAILING = [{ probe: 'action restart x.service', reason: 'does not start' }];
const MINUTE_MS = 60_000;

/** A target that cannot reboot, on config A. Its unit does not start any more, which a lease to B has found. */
function scene(): Bench {
  const bench = new Bench();
  bench.self = { ...SELF, capabilities: ['kind:File', 'action:restart'] };
  bench.config('a', [file('/f', 'old')]);
  bench.config('b', [file('/f', 'new')]);
  bench.config('c', [file('/f', 'old'), file('/g', 'more'), probe('p')]);
  bench.restart();
  bench.settle();
  bench.grant({ hash: A, actions: RESTART });
  bench.settle();
  bench.machine.refusesAction = () => ({ fault: 'node', reason: 'does not start' });
  bench.grant({ lease: 'l2', hash: B, from: A, ledger: 9, actions: RESTART });
  bench.pass(10_000);
  expect(bench.last).toMatchObject({ lease: 'l2', verdict: 'failed', restored: false });
  return bench;
}
const tries = (bench: Bench): number => bench.steps.filter((step) => step.do === 'act').length;
const isDegraded = (bench: Bench): boolean | undefined => bench.last && !bench.last.restored;

it('keeps a node that cannot reboot degraded for minutes, then it is unhealthy, until the action succeeds', () => {
  const bench = scene();
  bench.pass(3 * MINUTE_MS);
  expect(isDegraded(bench)).toBe(true);
  bench.pass(4 * MINUTE_MS);
  expect(bench.last).toMatchObject({ kind: 'probed', restored: true, hash: A, failingProbes: FAILING });
  bench.machine.refusesAction = () => undefined;
  bench.pass(2 * MINUTE_MS);
  expect(bench.last).toMatchObject({ kind: 'probed', restored: true, failingProbes: [] });
  expect(bench.machine.readJournal().outstanding).toBeUndefined();
});

it('is tried again at growing intervals, also after a restart, and without an end', () => {
  const bench = scene();
  bench.pass(10 * MINUTE_MS);
  const counts = [60, 600, 600].map((minutes) => {
    bench.steps.length = 0;
    bench.pass(minutes * MINUTE_MS);
    return tries(bench);
  });
  expect(counts.every((count) => count > 0)).toBe(true);
  expect(counts[2]).toBeLessThanOrEqual(16);
  bench.restart();
  bench.steps.length = 0;
  bench.pass(2 * MINUTE_MS);
  expect(tries(bench)).toBeGreaterThan(0);
  expect(bench.last?.restored).toBe(true);
});

it('fails no other change, and stays known', () => {
  const bench = scene();
  bench.pass(10 * MINUTE_MS);
  bench.grant({ lease: 'l3', hash: C, from: A, ledger: 99, actions: [] });
  bench.settle();
  expect(bench.last).toMatchObject({ lease: 'l3', verdict: 'applied', failingProbes: FAILING });
  bench.steps.length = 0;
  bench.pass(200 * MINUTE_MS);
  expect(tries(bench)).toBeGreaterThan(0);
  expect(bench.bus.status?.failingProbes).toEqual(FAILING);
});

it('is over once a change takes it with success', () => {
  const bench = scene();
  bench.pass(10 * MINUTE_MS);
  bench.machine.refusesAction = () => undefined;
  bench.grant({ lease: 'l3', hash: B, from: A, ledger: 99, actions: RESTART });
  bench.settle();
  expect(bench.last).toMatchObject({ lease: 'l3', verdict: 'applied', failingProbes: [] });
});

it('does not make the node degraded again if it fails in a change as before', () => {
  const bench = scene();
  bench.pass(10 * MINUTE_MS);
  bench.grant({ lease: 'l3', hash: B, from: A, ledger: 99, actions: RESTART });
  bench.pass(10_000);
  expect(bench.last).toMatchObject({ lease: 'l3', verdict: 'failed', restored: true, hash: A });
  expect(bench.machine.files.get('/f')).toBe('old');
  bench.pass(MINUTE_MS);
  expect(bench.bus.status?.failingProbes).toEqual(FAILING);
});

it('keeps the node degraded as long as something else is wrong, or the target does not answer', () => {
  const bench = scene();
  bench.machine.files.set('/f', 'edited');
  bench.machine.refuses = () => ({ fault: 'node', reason: 'read-only file' });
  bench.pass(20 * MINUTE_MS);
  expect(isDegraded(bench)).toBe(true);
  bench.machine.refuses = () => undefined;
  bench.machine.refusesAction = () => NO_ANSWER;
  bench.pass(20 * MINUTE_MS);
  expect(isDegraded(bench)).toBe(true);
});

it('of several actions, only those that fail are taken again', () => {
  const bench = scene();
  const both: readonly Action[] = [...RESTART, { kind: 'restart', unit: 'y.service' }];
  bench.machine.refusesAction = ({ unit }) =>
    unit === 'x.service' ? { fault: 'node', reason: 'does not start' } : undefined;
  bench.grant({ lease: 'l3', hash: B, from: A, ledger: 20, actions: both });
  bench.pass(20 * MINUTE_MS);
  expect(bench.last).toMatchObject({ restored: true, failingProbes: FAILING });
  bench.steps.length = 0;
  bench.pass(200 * MINUTE_MS);
  const units = bench.steps.flatMap((step) => (step.do === 'act' ? [step.action.unit] : []));
  expect(new Set(units)).toEqual(new Set(['x.service']));
});
