import type { LeaseView } from '#libs/contracts';
import { Bench, file, hash, probe, SETTINGS } from './applier.fixture.js';
import type { Settings } from './index.js';

const A = hash('a');
const B = hash('b');

/** A node on config A with three files; config B changes one of them. */
function scene(settings?: Settings): Bench {
  const bench = new Bench(settings);
  bench.config('a', [file('/a', 'x'), file('/b', 'x'), file('/c', 'x')]);
  bench.config('b', [file('/a', 'y'), file('/b', 'x'), file('/c', 'x')]);
  bench.settle();
  bench.grant({ hash: A });
  bench.settle();
  return bench;
}
const lease = (kind: LeaseView['kind'], to: string, planned: readonly string[] | undefined): Partial<LeaseView> => ({
  kind,
  hash: to,
  from: A,
  ledger: 9,
  ...(planned === undefined ? {} : { drift: { differences: planned, overwrite: true } }),
});
const files = (bench: Bench): object => Object.fromEntries(bench.machine.files);
const works = (bench: Bench): number =>
  bench.steps.filter((step) => step.do === 'write-journal' && step.journal.work?.lease === 'l2').length;

it.each<[string, readonly string[]]>([
  ['that the scheduler planned for', ['/b: differs']],
  ['if other drift that was planned for is gone', ['/a: differs', '/b: differs']],
  ['if the list of planned drift is cut off', ['/a: differs', '… and 7 more']],
])('a lease repairs drift %s', (_name, planned) => {
  const bench = scene();
  bench.machine.files.set('/b', 'edited');
  bench.grant({ lease: 'l2', ...lease('repair', A, planned) });
  bench.settle();
  expect([bench.last?.verdict, files(bench)]).toEqual(['applied', { '/a': 'x', '/b': 'x', '/c': 'x' }]);
});

it.each<[string, LeaseView['kind'], string]>([
  ['repair', 'repair', A],
  ['forward', 'forward', B],
])(
  'a %s lease is given back with the drift if its actions were not planned for it, and nothing changes',
  (_name, kind, to) => {
    const bench = scene();
    bench.machine.files.set('/b', 'edited').set('/c', 'edited');
    bench.grant({ lease: 'l2', ...lease(kind, to, ['/c: differs']) });
    bench.settle();
    expect(bench.last).toMatchObject({ kind: 'drifted', lease: 'l2', verdict: 'refused', hash: A, restored: true });
    expect(bench.last?.differences).toEqual(['/b: differs', '/c: differs']);
    expect(bench.last?.reason).toContain('/b: differs');
    expect([works(bench), files(bench)]).toEqual([0, { '/a': 'x', '/b': 'edited', '/c': 'edited' }]);
  },
);

it('keeps the planned drift in the report, so that planning ends even if drift comes and goes', () => {
  const bench = scene();
  bench.machine.files.set('/b', 'edited');
  bench.grant({ lease: 'l2', ...lease('repair', A, ['/c: differs']) });
  bench.settle();
  expect(bench.last?.differences).toEqual(['/b: differs', '/c: differs']);
  bench.machine.files.set('/b', 'x').set('/c', 'edited');
  bench.grant({ lease: 'l3', ...lease('repair', A, bench.last?.differences), ledger: 10 });
  bench.settle();
  expect([bench.last?.lease, bench.last?.verdict]).toEqual(['l3', 'applied']);
});

it('does not count places that the change modifies as drift', () => {
  const bench = scene();
  bench.machine.files.set('/a', 'edited');
  bench.grant({ lease: 'l2', ...lease('forward', B, []) });
  bench.settle();
  expect([bench.last?.verdict, files(bench)]).toEqual(['applied', { '/a': 'y', '/b': 'x', '/c': 'x' }]);
});

it('gives a repair back when nothing is left to repair, so that no unit restarts needlessly', () => {
  const bench = scene();
  bench.grant({ lease: 'l2', ...lease('repair', A, ['/b: differs']) });
  bench.settle();
  expect(bench.last).toMatchObject({ kind: 'drifted', lease: 'l2', verdict: 'refused', differences: [] });
  expect(works(bench)).toBe(0);
});

it('carries out the lease of a scheduler that plans without regard to drift', () => {
  const bench = scene();
  bench.machine.files.set('/b', 'edited');
  bench.grant({ lease: 'l2', ...lease('forward', B, undefined) });
  bench.settle();
  expect(bench.last?.verdict).toBe('applied');
});

it('does not report drift again if it was reported with a lease', () => {
  const bench = scene();
  bench.machine.files.set('/b', 'edited');
  bench.grant({ lease: 'l2', ...lease('repair', A, []) });
  bench.pass(400_000);
  expect(new Set(bench.bus.reports.filter(({ kind }) => kind === 'drifted').map(({ seq }) => seq)).size).toBe(1);
});

describe('a lease that must not overwrite drift', () => {
  const keeping = (to: string): Partial<LeaseView> => ({
    ...lease('forward', to, []),
    drift: { differences: [], overwrite: false },
  });
  const N = hash('e');

  it.each<[string, string, string]>([
    ['at a path that it changes', '/a', B],
    ['at a path that it does not change', '/b', B],
    ['at a path that it removes', '/c', N],
  ])('is given back if there is drift %s, and nothing changes', (_name, path, to) => {
    const bench = scene();
    bench.config('e', [file('/a', 'x'), file('/b', 'x')]);
    bench.machine.files.set(path, 'edited');
    const before = files(bench);
    bench.grant({ lease: 'l2', ...keeping(to) });
    bench.settle();
    expect(bench.last).toMatchObject({ kind: 'drifted', lease: 'l2', verdict: 'refused', hash: A });
    expect(bench.last?.differences).toEqual([`${path}: differs`]);
    expect([works(bench), files(bench)]).toEqual([0, before]);
  });

  it('changes a node on which the change was already made by hand', () => {
    const bench = scene();
    bench.machine.files.set('/a', 'y');
    bench.grant({ lease: 'l2', ...keeping(B) });
    bench.settle();
    expect([bench.last?.verdict, files(bench)]).toEqual(['applied', { '/a': 'y', '/b': 'x', '/c': 'x' }]);
  });

  it('removes what somebody has already removed by hand', () => {
    const bench = scene();
    bench.config('e', [file('/a', 'x'), file('/b', 'x')]);
    bench.machine.files.delete('/c');
    bench.grant({ lease: 'l2', ...keeping(N) });
    bench.settle();
    expect([bench.last?.verdict, files(bench)]).toEqual(['applied', { '/a': 'x', '/b': 'x' }]);
  });

  it('does not bring back what was there before Sluice and was removed by hand since', () => {
    const bench = new Bench();
    bench.config('a', [file('/a', 'x'), file('/c', 'x')]);
    bench.config('e', [file('/a', 'x')]);
    bench.machine.files.set('/c', 'before');
    bench.settle();
    bench.grant({ hash: A });
    bench.settle();
    bench.machine.files.delete('/c');
    bench.grant({ lease: 'l2', ...keeping(N) });
    bench.settle();
    expect([bench.last?.verdict, bench.last?.differences]).toEqual(['refused', ['/c: differs']]);
    expect(files(bench)).toEqual({ '/a': 'x' });
  });

  it('changes a node without drift', () => {
    const bench = scene();
    bench.grant({ lease: 'l2', ...keeping(B) });
    bench.settle();
    expect([bench.last?.verdict, files(bench)]).toEqual(['applied', { '/a': 'y', '/b': 'x', '/c': 'x' }]);
  });
});

it('rolls back to the state before the lease, including drift', () => {
  const bench = scene({ ...SETTINGS, kinds: { ...SETTINGS.kinds, snapshots: ['File'] } });
  const C = hash('c');
  bench.config('c', [file('/a', 'y'), file('/b', 'x'), probe('p')]);
  bench.machine.files.set('/a', 'edited');
  bench.machine.probes = (_, found) => found.get('/a') !== 'y';
  bench.grant({ lease: 'l2', ...lease('forward', C, []) });
  bench.settle();
  expect([bench.last?.verdict, bench.last?.restored, files(bench)]).toEqual([
    'invalid',
    true,
    { '/a': 'edited', '/b': 'x', '/c': 'x' },
  ]);
});

it('rolls a degraded node back to its config, not to what a failed change left', () => {
  const bench = scene({ ...SETTINGS, kinds: { ...SETTINGS.kinds, snapshots: ['File'] } });
  bench.config('c', [file('/a', 'y'), file('/b', 'x'), file('/c', 'x'), probe('p')]);
  bench.config('d', [file('/a', 'z'), file('/b', 'x'), file('/c', 'x'), probe('p')]);
  bench.machine.probes = (_, found) => found.get('/a') === 'x';
  bench.machine.refuses = ({ spec }) =>
    spec['content'] === 'x' ? { fault: 'node', reason: 'read-only file' } : undefined;
  bench.grant({ lease: 'l2', ...lease('forward', hash('c'), []) });
  bench.pass(10_000);
  expect(bench.last).toMatchObject({ lease: 'l2', restored: false });
  expect(files(bench)).toEqual({ '/a': 'y', '/b': 'x', '/c': 'x' });
  bench.machine.refuses = () => undefined;
  bench.grant({ lease: 'l3', ...lease('forward', hash('d'), []), ledger: 20 });
  bench.settle();
  expect(bench.last).toMatchObject({ lease: 'l3', restored: true, hash: A });
  expect(bench.steps.flatMap((step) => (step.do === 'apply' ? [step.entry.spec['content']] : []))).toContain('z');
  expect(files(bench)).toEqual({ '/a': 'x', '/b': 'x', '/c': 'x' });
});

describe('a path that cannot be applied, because its owner has put something in the way', () => {
  const kinds = { ...SETTINGS.kinds, snapshots: ['File'], independent: ['File'] };
  const refused = { fault: 'node', reason: '/b is in the way' } as const;
  const C = hash('c');
  /** Config C changes one file, and has a probe. */
  const obstructed = (path: string): Bench => {
    const bench = scene({ ...SETTINGS, kinds });
    bench.config('c', [file('/a', 'y'), file('/b', 'x'), file('/c', 'x'), probe('p')]);
    bench.machine.files.delete(path);
    bench.machine.refuses = ({ spec }) => (spec['path'] === path ? refused : undefined);
    return bench;
  };

  it('does not fail a change that does not touch it, and is drift', () => {
    const bench = obstructed('/b');
    bench.grant({ lease: 'l2', ...lease('forward', C, []) });
    bench.settle();
    expect(bench.last).toMatchObject({ verdict: 'applied', restored: true, hash: C, changed: ['/a'] });
    expect(bench.last?.reason).toContain('left as it is: /b is in the way');
    expect(files(bench)).toEqual({ '/a': 'y', '/c': 'x' });
    bench.pass(200_000);
    expect(bench.last).toMatchObject({
      kind: 'drifted',
      differences: ['/b: differs, and cannot be corrected: /b is in the way'],
    });
  });

  it('does not keep such a change from being rolled back', () => {
    const bench = obstructed('/b');
    bench.machine.probes = (_, found) => found.get('/a') !== 'y';
    bench.grant({ lease: 'l2', ...lease('forward', C, []) });
    bench.settle();
    expect(bench.last).toMatchObject({ verdict: 'invalid', restored: true, hash: A });
    expect(files(bench)).toEqual({ '/a': 'x', '/c': 'x' });
  });

  it('does neither if that happens only during the change', () => {
    for (const probes of [true, false]) {
      const bench = obstructed('/b');
      const { refuses } = bench.machine;
      let isInTheWay = false;
      bench.machine.refuses = (entry) => {
        isInTheWay ||= bench.machine.files.get('/a') === 'y';
        return isInTheWay ? refuses(entry) : undefined;
      };
      bench.machine.files.set('/b', 'x');
      bench.machine.probes = (_, found) => {
        if (isInTheWay) bench.machine.files.delete('/b');
        return probes || found.get('/a') !== 'y';
      };
      bench.grant({ lease: 'l2', ...lease('forward', C, []) });
      bench.settle();
      expect(bench.last).toMatchObject({ verdict: probes ? 'applied' : 'invalid', restored: true });
    }
  });

  it('does not keep a lease from repairing other drift, but fails one that has nothing else to repair', () => {
    const bench = obstructed('/b');
    bench.machine.files.set('/c', 'edited');
    bench.grant({ lease: 'l2', ...lease('repair', A, ['/b: differs', '/c: differs']) });
    bench.settle();
    expect(bench.last).toMatchObject({
      verdict: 'applied',
      changed: ['/c'],
      reason: 'left as it is: /b is in the way',
    });
    expect(files(bench)).toEqual({ '/a': 'x', '/c': 'x' });
    bench.grant({ lease: 'l3', ...lease('repair', A, ['/b: differs']), ledger: 20 });
    bench.settle();
    expect(bench.last).toMatchObject({ lease: 'l3', verdict: 'failed', restored: true, reason: '/b is in the way' });
  });

  it('is not written by a change that does not touch it', () => {
    const bench = obstructed('/b');
    bench.machine.refuses = () => undefined;
    bench.machine.files.set('/b', 'x');
    bench.grant({ lease: 'l2', ...lease('forward', C, []) });
    bench.settle();
    const written = bench.steps.flatMap((step) => (step.do === 'apply' ? [step.entry.spec['path']] : []));
    expect(written.slice(-1)).toEqual(['/a']);
    expect(written.filter((path) => path === '/b')).toHaveLength(1);
  });

  it('does not fail such a change if the object for its content is gone', () => {
    const bench = scene({ ...SETTINGS, kinds });
    const big = { kind: 'File', name: 'big', spec: { path: '/big', contentFrom: { object: 'o', sha256: hash('9') } } };
    bench.bus.objects.set(hash('9'), 'right');
    bench.config('d', [file('/a', 'x'), big]);
    bench.grant({ lease: 'l2', ...lease('forward', hash('d'), []) });
    bench.settle();
    expect(bench.last).toMatchObject({ verdict: 'applied', hash: hash('d') });
    bench.bus.objects.clear();
    bench.machine.files.set('/big', 'edited');
    bench.config('e', [file('/a', 'y'), big]);
    bench.grant({ lease: 'l3', ...lease('forward', hash('e'), []), from: hash('d'), ledger: 20 });
    bench.settle();
    expect(bench.last).toMatchObject({
      lease: 'l3',
      verdict: 'applied',
      changed: ['/a'],
      reason: 'left as it is: no such object',
    });
    expect(files(bench)).toEqual({ '/a': 'y', '/big': 'edited' });
  });

  it('fails a change that touches it, before anything is changed', () => {
    const bench = obstructed('/a');
    bench.grant({ lease: 'l2', ...lease('forward', C, []) });
    bench.settle();
    expect(bench.last).toMatchObject({ verdict: 'failed', restored: true, reason: '/b is in the way' });
    expect([works(bench), files(bench)]).toEqual([0, { '/b': 'x', '/c': 'x' }]);
  });
});

describe('a drift check that takes long', () => {
  const checks = (bench: Bench): number => bench.steps.filter(({ do: what }) => what === 'start-drift-check').length;
  /** A node whose drift check runs. */
  const checking = (): { readonly bench: Bench; readonly round: number } => {
    const bench = scene();
    bench.slowDriftChecks = true;
    bench.pass(200_000);
    const last = bench.steps.findLast((step) => step.do === 'start-drift-check');
    return { bench, round: last?.round ?? NaN };
  };
  const drifted = (bench: Bench): readonly string[] | undefined =>
    bench.bus.reports.findLast(({ kind }) => kind === 'drifted')?.differences;

  it('delays no lease, and what it found before that counts for nothing', () => {
    const { bench, round } = checking();
    expect(checks(bench)).toBe(1);
    bench.grant({ lease: 'l2', ...lease('forward', B, []) });
    bench.settle();
    expect(bench.last).toMatchObject({ lease: 'l2', verdict: 'applied', hash: B });
    bench.hear({ kind: 'compared', round, differences: [{ what: '/a', how: 'differs' }] });
    bench.settle();
    expect(drifted(bench)).toBeUndefined();
  });

  it('is not started again before it has ended, and reports what it finds', () => {
    const { bench, round } = checking();
    bench.pass(1_000_000);
    expect(checks(bench)).toBe(1);
    bench.hear({ kind: 'compared', round, differences: [{ what: '/a', how: 'differs' }] });
    bench.settle();
    expect(drifted(bench)).toEqual(['/a: differs']);
    bench.pass(100_000);
    expect(checks(bench)).toBe(2);
  });

  it('starts again at once if something was changed by hand meanwhile', () => {
    const { bench, round } = checking();
    bench.hear({ kind: 'changed' });
    bench.settle();
    expect(checks(bench)).toBe(1);
    bench.hear({ kind: 'compared', round, differences: [] });
    bench.settle();
    expect(checks(bench)).toBe(2);
  });

  it('is tried again if it fails', () => {
    const { bench, round } = checking();
    bench.hear({ kind: 'compared', round });
    bench.pass(100_000);
    expect(checks(bench)).toBe(2);
  });
});
