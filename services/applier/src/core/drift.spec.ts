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
  ['that a scheduler planned for', ['/b: differs']],
  ['and more that it planned for, which is gone', ['/a: differs', '/b: differs']],
  ['of which only a part is listed', ['/a: differs', '… and 7 more']],
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
  'a %s lease whose actions are not planned for some drift is given back with it, and nothing is touched',
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

it('keeps in the report what the lease was planned for, so that drift that comes and goes is planned in the end', () => {
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

it('does not take the places that a change alters for drift', () => {
  const bench = scene();
  bench.machine.files.set('/a', 'edited');
  bench.grant({ lease: 'l2', ...lease('forward', B, []) });
  bench.settle();
  expect([bench.last?.verdict, files(bench)]).toEqual(['applied', { '/a': 'y', '/b': 'x', '/c': 'x' }]);
});

it('gives a repair back when there is nothing left to repair: no unit restarts for nothing', () => {
  const bench = scene();
  bench.grant({ lease: 'l2', ...lease('repair', A, ['/b: differs']) });
  bench.settle();
  expect(bench.last).toMatchObject({ kind: 'drifted', lease: 'l2', verdict: 'refused', differences: [] });
  expect(works(bench)).toBe(0);
});

it('carries out what a scheduler granted that plans without regard to drift', () => {
  const bench = scene();
  bench.machine.files.set('/b', 'edited');
  bench.grant({ lease: 'l2', ...lease('forward', B, undefined) });
  bench.settle();
  expect(bench.last?.verdict).toBe('applied');
});

it('does not report drift again that it has reported with a lease', () => {
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
    ['at a place that it changes', '/a', B],
    ['at a place that it leaves as it is', '/b', B],
    ['at a place that it removes', '/c', N],
  ])('is given back if there is some %s, and nothing is touched', (_name, path, to) => {
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

  it('changes a node on which somebody made the change by hand already', () => {
    const bench = scene();
    bench.machine.files.set('/a', 'y');
    bench.grant({ lease: 'l2', ...keeping(B) });
    bench.settle();
    expect([bench.last?.verdict, files(bench)]).toEqual(['applied', { '/a': 'y', '/b': 'x', '/c': 'x' }]);
  });

  it('changes a node without drift', () => {
    const bench = scene();
    bench.grant({ lease: 'l2', ...keeping(B) });
    bench.settle();
    expect([bench.last?.verdict, files(bench)]).toEqual(['applied', { '/a': 'y', '/b': 'x', '/c': 'x' }]);
  });
});

it('rolls back to what was there before the lease, drift included', () => {
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
