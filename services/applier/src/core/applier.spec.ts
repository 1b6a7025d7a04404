import { isLaterReport, type LeaseView } from '#libs/contracts';
import { EMPTY } from '../testing/memory-node.js';
import { Bench, file, hash, probe } from './applier.fixture.js';
import { advance, hear, nextStep } from './index.js';

const A = hash('a');
const B = hash('b');

function on(letter: string, ...fragments: Parameters<Bench['config']>[1]): Bench {
  const bench = new Bench();
  bench.config(letter, fragments);
  bench.settle();
  return bench;
}

describe('an applier with a lease', () => {
  it('announces itself, applies, confirms and reports what changed', () => {
    const bench = on('a', file('/motd', 'hello'));
    expect(
      bench.bus.reports.map(({ kind, incarnation, seq, hash: inForce }) => [kind, incarnation, seq, inForce]),
    ).toEqual([['announced', 1, 1, EMPTY]]);
    bench.grant({ hash: A });
    bench.settle();
    expect(bench.last).toMatchObject({
      kind: 'applied',
      lease: 'l1',
      verdict: 'applied',
      hash: A,
      changed: ['/motd'],
      seq: 2,
      change: 'c1',
    });
    expect(bench.machine.files.get('/motd')).toBe('hello');
  });

  it('journals the intent before it changes anything', () => {
    const bench = on('a', file('/motd', 'hello'));
    bench.grant({ hash: A });
    bench.settle();
    const kinds = bench.steps.map((step) =>
      step.do === 'write-journal' && step.journal.work !== undefined ? 'intent' : step.do,
    );
    expect(kinds.indexOf('intent')).toBeGreaterThan(kinds.indexOf('read-before'));
    expect(kinds.indexOf('intent')).toBeLessThan(kinds.indexOf('apply'));
  });

  it('reads its lease again if another one was pushed during the read', () => {
    const bench = on('a', file('/motd', 'hello'));
    bench.pass(120_000);
    bench.state = { ...bench.state, memory: { ...bench.state.memory, leaseDueMs: bench.nowMs } };
    const step = nextStep(bench.state, bench.nowMs);
    expect(step).toEqual({ do: 'read-lease' });
    const before = bench.machine.perform(step);
    bench.grant({ hash: A, ledger: 9 });
    bench.state = hear(bench.state, { kind: 'lease', lease: bench.bus.lease as LeaseView }, bench.nowMs);
    bench.state = advance(bench.state, step, before, bench.nowMs);
    bench.pass(1_000);
    expect(bench.last).toMatchObject({ kind: 'applied', lease: 'l1', hash: A });
  });

  it('refuses a lease that was planned from another hash, and changes nothing', () => {
    const bench = on('a', file('/motd', 'hello'));
    bench.grant({ hash: A, from: B });
    bench.settle();
    expect(bench.last).toMatchObject({
      kind: 'announced',
      verdict: 'refused',
      lease: 'l1',
      hash: EMPTY,
      restored: true,
    });
    expect(bench.machine.files.size).toBe(0);
  });

  it('reports `invalid` if the node rejects the content before or while it is applied', () => {
    for (const calls of [0, 1]) {
      const bench = on('a', file('/ok', 'x'), file('/z', 'bad'));
      let seen = 0;
      bench.machine.refuses = (entry) =>
        entry.name === 'z' && seen++ >= calls ? { fault: 'content', reason: 'no such path' } : undefined;
      bench.grant({ hash: A });
      bench.settle();
      expect(bench.last).toMatchObject({
        kind: 'invalid',
        verdict: 'invalid',
        restored: true,
        hash: EMPTY,
        reason: 'no such path',
      });
      expect(bench.machine.files.size).toBe(0);
    }
  });

  it.each([
    ['passes before, fails after, passes again', true, (content: string | undefined) => content !== 'bad', 'invalid'],
    ['is new, and fails before and after', true, () => false, 'failed'],
    ['passes once and never again', true, undefined, 'failed'],
  ] as const)('a probe that %s: %s', (_name, _, passes, verdict) => {
    const bench = on('a', file('/f', 'bad'), probe('p'));
    let runs = 0;
    bench.machine.probes = (_probe, files) => (passes === undefined ? runs++ === 0 : passes(files.get('/f')));
    bench.grant({ hash: A });
    bench.settle();
    expect(bench.last).toMatchObject({ verdict, restored: true });
    expect(bench.machine.files.get('/f')).toBeUndefined();
    if (verdict === 'invalid') expect(bench.last?.probe).toBe('p');
  });

  it('never starts a finished lease again, and repeats its report while the lease stays open', () => {
    const bench = on('a', file('/f', 'bad'));
    bench.machine.refuses = () => ({ fault: 'content', reason: 'no' });
    bench.grant({ hash: A });
    for (let i = 0; i < 100 && bench.step().do !== 'wait'; i++);
    const before = bench.bus.reports.length;
    for (let i = 0; i < 200; i++) {
      const step = bench.step();
      if (step.do === 'wait') bench.nowMs = step.untilMs;
    }
    const repeated = bench.bus.reports.slice(before);
    expect(repeated.length).toBeGreaterThan(3);
    expect(new Set(repeated.map(({ lease }) => lease))).toEqual(new Set(['l1']));
    expect(bench.steps.filter((step) => step.do === 'check')).toHaveLength(1);
    bench.takeReports();
    bench.bus.lease = { ...bench.bus.lease!, phase: 'applying' }; // processed, but still open
    bench.pass(200_000);
    expect(bench.last).toMatchObject({ kind: 'announced', lease: 'l1', verdict: 'invalid' });
  });

  it('reports a lease that ended as unknown before it was started, until the status shows it', () => {
    const bench = on('a', file('/f', 'x'));
    bench.grant({ hash: A, phase: 'settled', because: 'unknown' });
    bench.settle();
    expect(bench.last).toMatchObject({ kind: 'announced', verdict: 'refused', lease: 'l1' });
    expect(bench.bus.status?.lease).toBe('l1');
    const count = bench.bus.reports.length;
    bench.pass(300_000);
    expect(bench.bus.reports).toHaveLength(count);
  });

  it('starts nothing if no time is left, and rolls back if it cannot confirm in time', () => {
    const late = on('b');
    late.grant({ hash: A });
    late.pass(120_000);
    expect(late.last).toMatchObject({ verdict: 'failed', restored: true, hash: EMPTY });
    const slow = on('a', file('/f', 'x'));
    slow.grant({ hash: A });
    while (slow.step().do !== 'apply');
    slow.nowMs += 50_000;
    slow.settle();
    expect(slow.last).toMatchObject({ verdict: 'failed', restored: true, hash: EMPTY });
    expect(slow.machine.files.size).toBe(0);
  });

  it.each<[string, boolean, (bench: Bench) => void]>([
    [
      'the node refuses the content',
      true,
      ({ machine }) => void (machine.refuses = () => ({ fault: 'node', reason: 'no' })),
    ],
    ['no guard can be set', true, ({ machine }) => void (machine.guard = () => ({ fault: 'node', reason: 'no' }))],
    ['the time is over', true, (bench) => void bench.bus.configs.delete(A)],
    [
      'a write fails',
      false,
      ({ machine }) => {
        machine.refuses = ({ name }) =>
          machine.files.size > 0 && name === 'z' ? { fault: 'node', reason: 'no' } : undefined;
      },
    ],
  ])('if %s: does a failed lease say that it changed nothing? %s', (_, untouched, spoil) => {
    const bench = on('a', file('/f', 'x'), file('/z', 'y'));
    spoil(bench);
    bench.grant({ hash: A });
    bench.pass(120_000);
    expect(bench.last).toMatchObject({ verdict: 'failed', restored: true, hash: EMPTY });
    expect([bench.last?.untouched === true, bench.machine.files.size]).toEqual([untouched, 0]);
    expect(bench.steps.some((step) => step.do === 'apply')).toBe(!untouched);
  });

  it('rolls back on its own after a crash, without NATS', () => {
    const bench = on('a', file('/f', 'x'));
    bench.machine.files.set('/f', 'mine');
    bench.grant({ hash: A });
    while (bench.step().do !== 'apply');
    bench.bus.up = false;
    bench.nowMs += 3_600_000;
    bench.restart();
    for (let i = 0; i < 30; i++) bench.step();
    expect(bench.machine.files.get('/f')).toBe('mine');
    bench.bus.up = true;
    bench.pass(60_000);
    expect(bench.last).toMatchObject({ verdict: 'failed', lease: 'l1', restored: true, hash: EMPTY });
  });

  it.each([
    [true, 'applied'],
    [false, 'failed'],
  ])('has one new period after a reboot (all applied: %s), and then ends as %s', (whole, verdict) => {
    const bench = on('a', file('/f', 'x'), file('/g', 'y'));
    bench.grant({ hash: A });
    while (bench.step().do !== 'apply');
    if (whole) bench.step();
    bench.boot = 'boot-2';
    bench.nowMs = 500;
    bench.restart();
    bench.settle();
    expect(bench.last).toMatchObject({ verdict, hash: whole ? A : EMPTY, bootId: 'boot-2' });
    expect(bench.machine.files.size).toBe(whole ? 2 : 0);
  });
});

describe('a lease from before a reboot', () => {
  it('starts only after the status shows a report of this boot', () => {
    const bench = new Bench();
    bench.config('a', [file('/f', 'x')]);
    bench.grant({ hash: A });
    for (let i = 0; i < 50; i++) bench.step();
    expect(bench.machine.files.size).toBe(0);
    bench.grant({ hash: A, ledger: 9 });
    bench.settle();
    expect(bench.last).toMatchObject({ verdict: 'applied', lease: 'l1', hash: A });
  });

  it('is given back by a machine that has rebooted since, because its disk may be older', () => {
    const bench = on('a', file('/f', 'x'));
    const disk = bench.machine.journal;
    bench.grant({ hash: A });
    bench.settle();
    expect(bench.bus.reports.map(({ seq }) => seq)).toEqual([1, 2]);
    // The report on the lease is late: neither the view nor the status shows it.
    const late = bench.last!;
    bench.machine.journal = disk;
    bench.machine.files.clear();
    bench.bus.status = { ...bench.bus.status!, ledger: 5, seq: 1, lease: '', verdict: '', hash: EMPTY };
    bench.bus.lease = { ...bench.bus.lease!, ledger: 4, phase: 'applying', because: '' };
    bench.bus.reports.length = 0;
    bench.reboot();
    bench.settle();
    expect(bench.bus.reports.map(({ kind, verdict, lease }) => [kind, verdict, lease])).toEqual([
      ['announced', '', ''],
      ['announced', 'refused', 'l1'],
    ]);
    expect(bench.machine.files.size).toBe(0);
    expect(isLaterReport(late, bench.bus.reports[0]!)).toBe(false);
  });

  it('continues if only the applier was killed', () => {
    const bench = on('a', file('/f', 'x'));
    bench.grant({ hash: A });
    while (bench.step().do !== 'check');
    bench.restart();
    bench.settle();
    expect(bench.last).toMatchObject({ verdict: 'applied', lease: 'l1', hash: A });
  });

  it('is not started if it is written again after a later one', () => {
    const bench = on('a', file('/f', 'x'));
    bench.config('b', []);
    bench.grant({ hash: A, ledger: 5 });
    bench.settle();
    bench.grant({ lease: 'l2', hash: EMPTY, from: A, ledger: 8 });
    bench.settle();
    expect(bench.last).toMatchObject({ verdict: 'applied', lease: 'l2', hash: EMPTY });
    bench.restart();
    bench.settle();
    bench.bus.status = { ...bench.bus.status!, ledger: 9 };
    bench.state = hear(bench.state, { kind: 'status', status: bench.bus.status }, bench.nowMs);
    const count = bench.bus.reports.length;
    bench.grant({ lease: 'l1', hash: A, ledger: 5 });
    bench.pass(600_000);
    expect(bench.bus.reports).toHaveLength(count);
    expect(bench.machine.files.size).toBe(0);
    // The ledger was restored from a backup, so its sequences start over.
    bench.bus.status = { ...bench.bus.status!, ledger: 3 };
    bench.state = hear(bench.state, { kind: 'connected', mayLag: false }, bench.nowMs);
    bench.grant({ lease: 'l7', hash: A, ledger: 4 });
    bench.settle();
    expect(bench.last).toMatchObject({ verdict: 'applied', lease: 'l7', hash: A });
  });
});

describe('the original of a resource', () => {
  it('is restored when no config manages the resource any more, and then forgotten', () => {
    const bench = on('a', file('/f', 'x'));
    bench.machine.files.set('/f', 'mine');
    bench.grant({ hash: A });
    bench.settle();
    bench.config('b', []);
    bench.grant({ lease: 'l2', hash: B, from: A, ledger: 9 });
    bench.settle();
    expect(bench.last).toMatchObject({ verdict: 'applied', hash: B });
    expect(bench.machine.files.get('/f')).toBe('mine');
    expect(bench.machine.readJournal().originals).toEqual({});
  });

  it('is retried until it is restored, and only then reported', () => {
    const bench = on('a', file('/f', 'x'), probe('p'));
    bench.grant({ hash: A });
    bench.settle();
    bench.config('b', [file('/f', 'y'), probe('p')]);
    bench.machine.probes = (_p, files) => files.get('/f') !== 'y';
    bench.machine.refuses = (entry) =>
      entry.spec['content'] === 'x' ? { fault: 'node', reason: 'disk full' } : undefined;
    bench.grant({ lease: 'l2', hash: B, from: A, ledger: 9 });
    bench.pass(20_000);
    expect(bench.last).toMatchObject({ verdict: 'failed', restored: false, hash: A });
    bench.machine.refuses = () => undefined;
    bench.pass(120_000);
    expect(bench.last).toMatchObject({ kind: 'announced', lease: 'l2', verdict: 'failed', restored: true, hash: A });
    expect(bench.machine.files.get('/f')).toBe('x');
  });
});

describe('drift', () => {
  it('is reported once per set of differences, and repaired with a lease', () => {
    const bench = on('a', file('/f', 'x'));
    bench.grant({ hash: A });
    bench.settle();
    bench.machine.files.set('/f', 'edited');
    bench.pass(400_000);
    expect(bench.bus.reports.filter(({ kind }) => kind === 'drifted').map(({ differences }) => differences)).toEqual([
      ['/f: differs'],
    ]);
    bench.grant({ lease: 'l2', kind: 'repair', hash: A, from: A, ledger: 9 });
    bench.settle();
    expect(bench.last).toMatchObject({ verdict: 'applied', lease: 'l2', changed: ['/f'] });
    expect(bench.machine.files.get('/f')).toBe('x');
  });
});

describe('the incarnation', () => {
  it('is one above the status if the state was lost or another applier reported', () => {
    const bench = on('a');
    const status = bench.bus.status!;
    bench.bus.status = { ...status, nonce: status.nonce + 1, ledger: status.ledger + 1 };
    bench.restart();
    bench.settle();
    expect(bench.last).toMatchObject({ kind: 'announced', incarnation: 2, seq: 1 });
    const lost = new Bench();
    lost.bus.status = { ...status, incarnation: 41 };
    lost.settle();
    expect(lost.last).toMatchObject({ incarnation: 42, lease: '', verdict: '' });
  });

  it('starts over if the services count from 0 again and would refuse it', () => {
    const bench = on('a');
    const status = bench.bus.status!;
    bench.bus.status = { ...status, incarnation: 1_007, ledger: status.ledger + 1 };
    bench.restart();
    bench.settle();
    expect(bench.last).toMatchObject({ incarnation: 1_008 });
    bench.bus.reports.length = 0;
    bench.bus.status = { ...bench.bus.status, incarnation: 0, nonce: 0, seq: 0, ledger: 90 };
    bench.restart();
    bench.settle();
    expect(bench.last).toMatchObject({ kind: 'announced', incarnation: 1, seq: 1 });
  });

  it('does not change at full speed if two appliers compete', () => {
    const bench = on('a');
    for (let i = 0; i < 300; i++) {
      const status = bench.bus.status!;
      bench.state = hear(
        bench.state,
        {
          kind: 'status',
          status: { ...status, nonce: 5, ledger: status.ledger + 1, incarnation: bench.state.journal.incarnation + 1 },
        },
        bench.nowMs,
      );
      bench.step();
      bench.nowMs += 100;
    }
    expect(bench.state.journal.incarnation).toBeLessThan(20);
  });
});

it('announces again when its labels change, and reports `fresh` only until the first lease', () => {
  const bench = new Bench();
  bench.self = { ...bench.self, fresh: true };
  bench.restart();
  bench.config('a', []);
  bench.settle();
  expect(bench.last?.fresh).toBe(true);
  bench.grant({ hash: A });
  bench.settle();
  bench.state = hear(bench.state, { kind: 'self', labels: { role: 'core' }, capabilities: [] }, bench.nowMs);
  bench.settle();
  expect(bench.last).toMatchObject({ kind: 'announced', labels: { role: 'core' }, fresh: false });
});
