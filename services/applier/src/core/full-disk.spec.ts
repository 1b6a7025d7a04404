import { NO_SPACE } from '../testing/memory-node.js';
import { Bench, file, hash, probe } from './applier.fixture.js';

const A = hash('a');
const B = hash('b');
const OLD = { '/a': 'old' };
const NEW = { '/a': 'new', '/d': 'new' };

/** A node on config A, with a lease to B. `bad`: the probe of B fails once B is applied. */
function scene(bad: boolean): Bench {
  const bench = new Bench();
  bench.config('a', [file('/a', 'old')]);
  bench.config('b', [file('/a', 'new'), file('/d', 'new'), probe('p')]);
  bench.settle();
  bench.grant({ hash: A });
  bench.settle();
  if (bad) bench.machine.probes = (_name, files) => files.get('/d') !== 'new';
  bench.grant({ lease: 'l2', hash: B, from: A, ledger: 9 });
  return bench;
}

/** Steps until the journal on disk has work in this phase. */
function until(bench: Bench, phase: string): void {
  for (let i = 0; i < 100 && bench.machine.readJournal().work?.phase !== phase; i++) {
    bench.step();
    bench.takeReports();
  }
  expect(bench.machine.readJournal().work?.phase).toBe(phase);
}

const files = (bench: Bench): object => Object.fromEntries(bench.machine.files);

it('rolls back from memory if the journal cannot be written, and reports when it can', () => {
  const bench = scene(true);
  until(bench, 'forward');
  bench.machine.isFull = true;
  bench.pass(200_000);
  expect([files(bench), bench.machine.readJournal().work?.phase]).toEqual([OLD, 'forward']);
  expect(bench.last).not.toMatchObject({ lease: 'l2' });
  bench.machine.isFull = false;
  bench.pass(61_000);
  expect(bench.last).toMatchObject({ lease: 'l2', kind: 'invalid', restored: true, hash: A });
});

it('rolls back from memory after a kill too, although only the start of the work is on disk', () => {
  for (const aheadMs of [0, 70_000]) {
    const bench = scene(true);
    until(bench, 'forward');
    bench.machine.isFull = true;
    for (let i = 0; i < 9; i++) bench.step();
    bench.nowMs += aheadMs;
    bench.restart();
    bench.pass(70_000);
    expect(files(bench)).toEqual(OLD);
    bench.machine.isFull = false;
    bench.pass(61_000);
    expect(bench.last).toMatchObject({ lease: 'l2', restored: true, hash: A });
  }
});

it('rolls back a change that it cannot confirm in time because the journal cannot be written', () => {
  const bench = scene(false);
  until(bench, 'forward');
  bench.machine.isFull = true;
  bench.pass(70_000);
  expect(files(bench)).toEqual(OLD);
});

it('confirms a change if the journal could be written in time', () => {
  const bench = scene(false);
  until(bench, 'forward');
  bench.machine.isFull = true;
  bench.pass(10_000);
  bench.machine.isFull = false;
  bench.pass(20_000);
  expect([files(bench), bench.last?.verdict]).toEqual([NEW, 'applied']);
});

it('starts nothing if the journal cannot be written, and says why when it can', () => {
  const bench = scene(false);
  bench.machine.configs.set(B, { fragments: [file('/a', 'new'), file('/d', 'new'), probe('p')] });
  bench.machine.isFull = true;
  bench.pass(50_000);
  expect(files(bench)).toEqual(OLD);
  bench.machine.isFull = false;
  bench.pass(61_000);
  expect(bench.last).toMatchObject({ lease: 'l2', verdict: 'failed', hash: A });
  expect(bench.last?.reason).toContain(NO_SPACE.reason);
});

it('starts nothing if the config cannot be stored, because a rollback may need it after a kill', () => {
  const bench = scene(false);
  bench.machine.isFull = true;
  for (let i = 0; i < 20; i++) bench.step();
  expect(bench.state.memory.preparation?.trouble).toBe(NO_SPACE.reason);
  expect(bench.machine.readJournal().work).toBeUndefined();
});

it('does not request a reboot that is not in the journal', () => {
  const bench = scene(false);
  bench.self = { ...bench.self, capabilities: ['kind:File', 'action:reboot'] };
  bench.restart();
  bench.grant({ lease: 'l2', hash: B, from: A, ledger: 9, actions: [{ kind: 'drain' }, { kind: 'reboot' }] });
  until(bench, 'forward');
  bench.machine.isFull = true;
  bench.pass(70_000);
  expect([bench.boots, bench.machine.rebootAsked, files(bench)]).toEqual([1, false, OLD]);
});

/** From the nth write on, writing the journal fails for a while. */
function failsAt(bench: Bench, nth: number, forMs: number): void {
  let writes = 0;
  for (let i = 0; i < 400 && writes <= nth; i++) {
    const before = bench.machine.journal;
    bench.machine.isFull = writes === nth;
    const step = bench.step();
    const isWrite = step.do === 'write-journal' && (bench.machine.journal !== before || bench.machine.isFull);
    if (step.do === 'wait') bench.nowMs = step.untilMs;
    if (isWrite) writes += 1;
    bench.takeReports();
  }
  bench.pass(forMs);
}

const cases = [false, true].flatMap((bad) =>
  [1, 15_000, 45_000, 300_000].flatMap((forMs) => [false, true].map((killed) => [bad, forMs, killed] as const)),
);

it.each(cases)(
  'ends with the old or the new config and reports it, whichever write fails (bad: %s, for %i ms, killed: %s)',
  (bad, forMs, killed) => {
    for (let nth = 0; nth < 8; nth++) {
      const bench = scene(bad);
      failsAt(bench, nth, forMs);
      if (killed) bench.restart();
      bench.machine.isFull = false;
      bench.pass(400_000);
      const { inForce, work } = bench.machine.readJournal();
      const found = { nth, work, files: files(bench), shown: bench.bus.status?.hash };
      expect(found).toEqual({ nth, work: undefined, files: inForce === B ? NEW : OLD, shown: inForce });
      expect(bench.bus.status).toMatchObject({ lease: 'l2', restored: true, ...(bad ? { hash: A } : {}) });
    }
  },
);

it('reports before it cleans up', () => {
  const bench = scene(false);
  bench.settle();
  const from = bench.steps.findIndex((step) => step.do === 'report' && step.report.lease === 'l2');
  const tidied = bench.steps.findLastIndex((step) => step.do === 'tidy');
  expect([from > 0, tidied > from]).toEqual([true, true]);
});
