import { MEMORY_KINDS } from '../testing/memory-node.js';
import { Bench, file, hash, SETTINGS } from './applier.fixture.js';

const A = hash('a');
const B = hash('b');
const NONE = hash('none');

/** A node on config A, whose files another program carries out. Config B changes one of them, and the last has none. */
function scene(): Bench {
  const kinds = { ...MEMORY_KINDS, becomesReady: ['File'], doneByOthers: ['File'] };
  const bench = new Bench({ ...SETTINGS, kinds });
  bench.config('a', [file('/a', 'x')]);
  bench.config('b', [file('/a', 'y')]);
  bench.config('none', []);
  bench.settle();
  bench.grant({ hash: A });
  bench.settle();
  return bench;
}

it('a removal is confirmed once the other program has done its part', () => {
  const bench = scene();
  const looks = [['/a: is there'], ['/a: is there'], []];
  bench.machine.leftToOthers = () => ({ what: looks.shift() ?? [], isOver: false });
  bench.grant({ lease: 'l2', hash: NONE, from: A });
  bench.settle();
  expect([looks, bench.last]).toMatchObject([[], { verdict: 'applied', lease: 'l2', reason: '' }]);
});

it('a removal does not fail because the other program is gone, but names what it has left', () => {
  const bench = scene();
  let looks = 0;
  bench.machine.leftToOthers = () => {
    looks += 1;
    bench.nowMs += 1_000;
    return { what: ['/a: is there'], isOver: false };
  };
  bench.grant({ lease: 'l2', hash: NONE, from: A });
  bench.settle();
  expect(bench.last).toMatchObject({ verdict: 'applied', lease: 'l2', reason: 'not done yet: /a: is there' });
  expect(looks).toBeGreaterThan(5);
});

it('a rollback is reported once the other program has brought back the last config', () => {
  const bench = scene();
  const looks = [['/a: is starting'], []];
  bench.machine.notReady = () => ({ fault: 'content', reason: '/a has failed' });
  bench.machine.leftToOthers = (items) => {
    expect(items).toMatchObject([{ do: 'apply', entry: { spec: { content: 'x' } } }]);
    return { what: looks.shift() ?? [], isOver: false };
  };
  bench.grant({ lease: 'l2', hash: B, from: A });
  bench.settle();
  expect([looks, bench.last]).toMatchObject([[], { verdict: 'invalid', reason: '/a has failed', restored: true }]);
});

it('a rollback does not wait longer than its lease lasts, nor for what has failed', () => {
  const bench = scene();
  bench.machine.notReady = () => ({ fault: 'content', reason: '/a has failed' });
  const beganMs = bench.nowMs;
  bench.machine.leftToOthers = () => {
    bench.nowMs += 1_000;
    return { what: ['/a: is starting'], isOver: false };
  };
  bench.grant({ lease: 'l2', hash: B, from: A });
  bench.settle();
  expect(bench.last).toMatchObject({ reason: '/a has failed; not done yet: /a: is starting', restored: true });
  expect(bench.nowMs - beganMs).toBeLessThan(60_000);
  let looks = 0;
  bench.machine.leftToOthers = () => {
    looks += 1;
    return { what: ['/a: has failed'], isOver: true };
  };
  bench.grant({ lease: 'l3', hash: B, from: A });
  bench.settle();
  expect([looks, bench.last]).toMatchObject([
    1,
    { lease: 'l3', reason: '/a has failed; not done yet: /a: has failed' },
  ]);
});

it('an applier that is killed while a removal, or a rollback, waits goes on with the same', () => {
  for (const to of [NONE, B]) {
    const bench = scene();
    bench.machine.notReady = () => ({ fault: 'content', reason: '/a has failed' });
    let isDone = false;
    bench.machine.leftToOthers = () => ({ what: isDone ? [] : ['/a: is there'], isOver: false });
    bench.grant({ lease: 'l2', hash: to, from: A });
    while (bench.step().do !== 'await-others') bench.takeReports();
    bench.restart();
    isDone = true;
    bench.settle();
    const reason = to === B ? '/a has failed' : '';
    expect(bench.last).toMatchObject({ verdict: to === B ? 'invalid' : 'applied', reason, restored: true });
  }
});

describe('what is still there after it was deleted', () => {
  const LEFT = ['File/a: it is still being deleted'];
  const isThere = (bench: Bench): void => {
    bench.machine.leftToOthers = (items) => {
      bench.nowMs += 1_000;
      const keys = items.flatMap((item) => (item.do === 'restore' ? [item.key] : []));
      const left = Object.fromEntries(keys.map((key) => [key, 'it is still being deleted']));
      return { what: Object.values(left), isOver: false, left };
    };
  };
  const isGone = (bench: Bench): void => {
    bench.machine.leftToOthers = () => ({ what: [], isOver: false, left: {} });
  };
  const deleted = (): Bench => {
    const bench = scene();
    isThere(bench);
    bench.grant({ lease: 'l2', hash: NONE, from: A });
    bench.settle();
    return bench;
  };
  const leftovers = (bench: Bench) => bench.bus.reports.map((report) => report.leftovers);

  it('is in each report, until a drift check finds that it is gone', () => {
    const bench = deleted();
    expect(bench.last).toMatchObject({ kind: 'applied', leftovers: LEFT });
    bench.pass(600_000);
    bench.restart();
    bench.pass(600_000);
    bench.hear({ kind: 'unavailable', reason: 'no answer' });
    bench.settle();
    expect(bench.last).toMatchObject({ unavailable: 'no answer', leftovers: LEFT });
    bench.hear({ kind: 'answers' });
    bench.settle();
    const before = leftovers(bench).length;
    isGone(bench);
    bench.pass(120_000);
    expect(leftovers(bench).slice(before)).toEqual([[]]);
    expect(bench.state.journal.leaving).toBeUndefined();
  });

  it('counts as still there as long as nobody could look', () => {
    const bench = scene();
    bench.machine.leftToOthers = () => ({ what: ['no answer'], isOver: true });
    bench.grant({ lease: 'l2', hash: NONE, from: A });
    bench.settle();
    const unseen = ['File/a: nobody has looked yet whether it is gone'];
    expect(bench.last).toMatchObject({ kind: 'applied', leftovers: unseen });
    bench.pass(600_000);
    expect(bench.last).toMatchObject({ kind: 'applied', leftovers: unseen });
    isThere(bench);
    bench.pass(120_000);
    expect(bench.last).toMatchObject({ kind: 'announced', leftovers: LEFT });
  });

  it('is not left any more once a config manages it again', () => {
    const bench = deleted();
    bench.grant({ lease: 'l3', hash: A, from: NONE });
    bench.settle();
    expect(bench.last).toMatchObject({ kind: 'applied', lease: 'l3', leftovers: [] });
  });

  it('stays in the reports of later leases', () => {
    const bench = deleted();
    bench.config('c', [file('/c', 'x')]);
    bench.machine.notReady = () => ({ fault: 'node', reason: '/c has failed' });
    bench.grant({ lease: 'l3', hash: hash('c'), from: NONE });
    bench.settle();
    const more = 'File/c: it is still being deleted';
    expect(bench.last).toMatchObject({ kind: 'failed', lease: 'l3', leftovers: [...LEFT, more] });
  });

  it('is named once per fragment, and at most 20 times', () => {
    const bench = scene();
    isThere(bench);
    const many = Array.from({ length: 30 }, (_, i) => file(`/f${10 + i}`, 'x'));
    const parts = ['x', 'y', 'z'].map((part) => ({ ...file(`/b${part}`, 'x'), name: `b: ${part}` }));
    bench.config('c', [...parts, ...many]);
    bench.grant({ lease: 'l2', hash: hash('c'), from: A });
    bench.settle();
    bench.grant({ lease: 'l3', hash: NONE, from: hash('c') });
    bench.settle();
    const found = bench.last?.leftovers ?? [];
    expect([found.length, found.at(-1)]).toEqual([20, expect.stringMatching(/^… and \d+ more$/)]);
    expect(found).toContain('File/b: x: it is still being deleted; and 2 more of it');
  });
});
