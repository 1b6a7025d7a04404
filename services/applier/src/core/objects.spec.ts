import { Bench, file, hash, probe } from './applier.fixture.js';

const A = hash('a');
const B = hash('b');
const OBJECT = hash('0');

const withObject = (path: string) => ({
  kind: 'File',
  name: 'x',
  spec: { path, contentFrom: { object: 'x.tar', sha256: OBJECT } },
});

/** A node on config A, with a lease to B, which has an object. */
function scene(part: Parameters<Bench['grant']>[0] = {}): Bench {
  const bench = new Bench();
  bench.config('a', [file('/a', 'old')]);
  bench.config('b', [file('/a', 'new'), withObject('/x'), probe('p')]);
  bench.settle();
  bench.grant({ hash: A });
  bench.settle();
  bench.grant({ ...TO_B, ...part });
  return bench;
}
const TO_B = { lease: 'l2', hash: B, from: A, ledger: 9 };

const files = (bench: Bench): object => Object.fromEntries(bench.machine.files);
const kinds = (bench: Bench): readonly string[] => bench.steps.map((step) => step.do);

it('is downloaded before anything changes, and applied', () => {
  const bench = scene();
  bench.bus.objects.set(OBJECT, 'right');
  bench.steps.length = 0;
  bench.settle();
  expect(files(bench)).toEqual({ '/a': 'new', '/x': OBJECT });
  expect(kinds(bench).indexOf('fetch-object')).toBeLessThan(kinds(bench).indexOf('write-journal'));
  expect(bench.last).toMatchObject({ lease: 'l2', verdict: 'applied', hash: B });
});

describe('while the node is drained for the lease', () => {
  it('is downloaded, so the lease needs no object store', () => {
    const bench = scene({ phase: 'draining' });
    bench.bus.objects.set(OBJECT, 'right');
    bench.settle();
    expect([files(bench), [...bench.machine.objects]]).toEqual([{ '/a': 'old' }, [OBJECT]]);
    bench.bus.objects.clear();
    bench.grant({ ...TO_B, ledger: 10 });
    bench.settle();
    expect(files(bench)).toEqual({ '/a': 'new', '/x': OBJECT });
    expect(bench.last).toMatchObject({ lease: 'l2', verdict: 'applied', hash: B });
  });

  it('is downloaded as soon as NATS answers and the object store has it', () => {
    const bench = scene({ phase: 'draining' });
    bench.settle();
    bench.bus.up = false;
    bench.pass(20_000);
    bench.bus.up = true;
    bench.pass(20_000);
    expect([...bench.machine.objects]).toEqual([]);
    bench.bus.objects.set(OBJECT, 'right');
    bench.pass(3_000);
    expect([...bench.machine.objects]).toEqual([OBJECT]);
  });

  it('is not downloaded again and again if it was changed, and the lease fails', () => {
    const bench = scene({ phase: 'draining' });
    bench.bus.objects.set(OBJECT, 'changed');
    bench.pass(100_000);
    expect(kinds(bench).filter((kind) => kind === 'prefetch')).toHaveLength(1);
    bench.grant({ ...TO_B, ledger: 10 });
    bench.settle();
    expect(bench.last).toMatchObject({ lease: 'l2', verdict: 'failed', restored: true, hash: A });
  });

  it('is kept after a restart, and deleted if the lease ends', () => {
    const bench = scene({ phase: 'draining' });
    bench.bus.objects.set(OBJECT, 'right');
    bench.settle();
    bench.restart();
    bench.settle();
    expect([[...bench.machine.objects], bench.machine.configs.has(B)]).toEqual([[OBJECT], true]);
    bench.grant({ ...TO_B, phase: 'released', because: 'cancelled', ledger: 10 });
    bench.settle();
    expect([files(bench), [...bench.machine.objects], bench.machine.configs.has(B)]).toEqual([
      { '/a': 'old' },
      [],
      false,
    ]);
  });

  it('does not keep drift checks waiting', () => {
    const bench = scene({ phase: 'draining' });
    bench.machine.files.set('/a', 'by hand');
    bench.pass(130_000);
    expect(bench.bus.status?.drifted).toEqual(['/a: differs']);
  });
});

it('is waited for while the object store does not have it', () => {
  const bench = scene();
  bench.pass(20_000);
  expect([files(bench), bench.machine.readJournal().work]).toEqual([{ '/a': 'old' }, undefined]);
  bench.bus.objects.set(OBJECT, 'right');
  bench.pass(8_000);
  expect(bench.last).toMatchObject({ lease: 'l2', verdict: 'applied' });
});

it('ends the lease after half of its time, with the reason, and nothing has changed', () => {
  const bench = scene();
  bench.pass(40_000);
  expect(files(bench)).toEqual({ '/a': 'old' });
  expect(bench.last).toMatchObject({ lease: 'l2', verdict: 'failed', restored: true, hash: A });
  expect(bench.last?.reason).toBe('nothing was started: no such object');
});

it('is named as the reason, and not the time, if the object store is gone', () => {
  const bench = scene();
  bench.bus.objects.set(OBJECT, 'right');
  while (bench.steps.at(-1)?.do !== 'check') bench.step();
  bench.bus.up = false;
  bench.pass(31_000);
  bench.bus.up = true;
  bench.pass(30_000);
  expect(bench.last).toMatchObject({
    lease: 'l2',
    verdict: 'failed',
    reason: 'nothing was started: File/x: the object store did not answer: run sluice doctor',
  });
});

it('is not blamed for the lack of time once it has arrived', () => {
  const bench = scene();
  bench.pass(5_000);
  expect(bench.state.memory.preparation?.trouble).toBe('no such object');
  bench.bus.objects.set(OBJECT, 'right');
  for (let i = 0; i < 100 && bench.state.memory.preparation?.fetched === 0; i++) {
    const step = bench.step();
    if (step.do === 'wait') bench.nowMs = step.untilMs;
  }
  expect(bench.state.memory.preparation).toMatchObject({ fetched: 1, trouble: '' });
});

it('ends the lease at once if the object was changed, and nothing has changed', () => {
  const bench = scene();
  bench.bus.objects.set(OBJECT, 'changed');
  bench.settle();
  expect(files(bench)).toEqual({ '/a': 'old' });
  expect(bench.last).toMatchObject({
    lease: 'l2',
    verdict: 'failed',
    restored: true,
    reason: 'the object was changed',
  });
});

it('needs no NATS once the change has started: not to apply, and not to roll back', () => {
  const bench = scene();
  bench.bus.objects.set(OBJECT, 'right');
  for (let i = 0; i < 100 && bench.machine.readJournal().work === undefined; i++) bench.step();
  bench.bus.up = false;
  bench.restart();
  bench.machine.probes = () => false;
  bench.pass(61_000);
  expect(files(bench)).toEqual({ '/a': 'old' });
});

it('is downloaded by a pass that retries a rollback, which does without while NATS is away', () => {
  const bench = scene();
  bench.bus.objects.set(OBJECT, 'right');
  bench.settle();
  bench.config('c', [file('/a', 'newer'), probe('p')]);
  // A failed rollback: somebody removes the file, and the disk refuses it for a while.
  bench.grant({ lease: 'l3', hash: hash('c'), from: B });
  bench.machine.probes = (_name, found) => found.get('/a') !== 'newer';
  let refuses = true;
  bench.machine.refuses = ({ spec }) =>
    refuses && spec['path'] === '/a' && spec['content'] === 'new'
      ? { fault: 'node', reason: 'it does not fit' }
      : undefined;
  bench.pass(61_000);
  expect(bench.last).toMatchObject({ lease: 'l3', restored: false, hash: B });
  bench.bus.up = false;
  bench.machine.files.delete('/x');
  bench.machine.objects.clear();
  refuses = false;
  bench.pass(120_000);
  expect(files(bench)).toEqual({ '/a': 'new' });
  bench.bus.up = true;
  bench.pass(120_000);
  expect(files(bench)).toEqual({ '/a': 'new', '/x': OBJECT });
  expect(bench.last).toMatchObject({ restored: true });
});
