import type { Action } from '#libs/contracts';
import { ABLE, Bench, file, hash, probe, SELF } from './applier.fixture.js';

const A = hash('a');
const B = hash('b');
const RESTART: readonly Action[] = [{ kind: 'daemon-reload' }, { kind: 'restart', unit: 'x.service' }];
const DRAINED: readonly Action[] = [{ kind: 'drain' }, ...RESTART];
const REBOOT: readonly Action[] = [{ kind: 'drain' }, { kind: 'reboot' }];
const PLAIN = ['kind:File', 'action:restart', 'action:daemon-reload'];

/** A node on config A with /f = old, and a lease to B with /f = new. */
function scene(actions: readonly Action[], capabilities: readonly string[] = ABLE): Bench {
  const bench = new Bench();
  bench.self = { ...SELF, capabilities };
  bench.config('a', [file('/f', 'old')]);
  bench.config('b', [file('/f', 'new'), probe('p')]);
  bench.restart();
  bench.settle();
  bench.grant({ hash: A, actions: RESTART });
  bench.settle();
  bench.grant({ lease: 'l2', hash: B, from: A, ledger: 9, actions });
  bench.steps.length = 0;
  return bench;
}

const done = (bench: Bench): readonly string[] =>
  bench.steps.flatMap((step) =>
    step.do === 'act'
      ? [`${step.action.kind}${step.action.unit === undefined ? '' : ` ${step.action.unit}`}`]
      : step.do === 'run-probes' || step.do === 'apply'
        ? [step.do]
        : [],
  );
const runs = (bench: Bench): string | undefined => bench.machine.running.get('/f');

describe('actions', () => {
  it('are taken after everything is written and before the probes', () => {
    const bench = scene(RESTART);
    bench.settle();
    expect(done(bench)).toEqual(['run-probes', 'apply', 'daemon-reload', 'restart x.service', 'run-probes']);
    expect(bench.last).toMatchObject({ verdict: 'applied', hash: B, reason: '' });
    expect(runs(bench)).toBe('new');
  });

  it('are taken again during the rollback, on what came back', () => {
    const bench = scene(RESTART);
    bench.machine.probes = (_name, files) => files.get('/f') !== 'new';
    bench.settle();
    expect(done(bench)).toEqual([
      'run-probes',
      'apply',
      'daemon-reload',
      'restart x.service',
      'run-probes',
      'apply',
      'daemon-reload',
      'restart x.service',
      'run-probes',
    ]);
    expect(bench.last).toMatchObject({ verdict: 'invalid', hash: A, restored: true });
    expect(runs(bench)).toBe('old');
  });

  it('that fail turn the way where the machine cannot be restarted', () => {
    const bench = scene(RESTART, PLAIN);
    bench.machine.refusesAction = ({ kind }) =>
      kind === 'restart' && bench.machine.files.get('/f') === 'new'
        ? { fault: 'node', reason: 'timed out' }
        : undefined;
    bench.settle();
    expect(bench.last).toMatchObject({
      verdict: 'failed',
      hash: A,
      restored: true,
      reason: 'action restart x.service: timed out',
    });
    expect(runs(bench)).toBe('old');
  });

  it('that fail during the rollback too are taken again until they succeed, and only then the node is restored', () => {
    const bench = scene(RESTART, PLAIN);
    bench.machine.refusesAction = ({ kind }) =>
      kind === 'restart' ? { fault: 'node', reason: 'timed out' } : undefined;
    bench.pass(30_000);
    expect(bench.last).toMatchObject({ verdict: 'failed', hash: A, restored: false });
    expect(bench.last?.reason).toContain('degraded: rollback failed: action restart x.service: timed out');
    expect(bench.machine.files.get('/f')).toBe('old');
    bench.restart();
    bench.machine.refusesAction = () => undefined;
    bench.machine.running = new Map([['/f', 'new']]);
    bench.pass(120_000);
    expect(bench.last).toMatchObject({ kind: 'announced', hash: A, restored: true });
    expect(runs(bench)).toBe('old');
    expect(bench.machine.readJournal().outstanding).toBeUndefined();
  });
});

describe('an action that fails or hangs, where the machine can be restarted, but its node is not drained for it', () => {
  const failing = (bench: Bench): void => {
    bench.machine.refusesAction = ({ kind }) =>
      kind === 'restart' && bench.boots === 1 && bench.machine.files.get('/f') === 'new'
        ? { fault: 'node', reason: 'timed out' }
        : undefined;
  };
  const stuck = (bench: Bench): void => {
    bench.machine.refusesAction = ({ kind }) =>
      kind === 'restart' && bench.boots === 1 ? { fault: 'node', reason: 'timed out' } : undefined;
  };
  const again = { lease: 'l3', hash: B, from: A, ledger: 12, actions: REBOOT };

  it('rolls back and asks for a restart, which the next lease for that config may bring', () => {
    const bench = scene(RESTART);
    failing(bench);
    bench.settle();
    expect(bench.boots).toBe(1);
    expect(bench.last).toMatchObject({
      kind: 'failed',
      verdict: 'failed',
      needsRestart: true,
      hash: A,
      restored: true,
      reason: 'action restart x.service: timed out',
    });
    expect(runs(bench)).toBe('old');
    bench.restart();
    bench.grant(again);
    bench.settle();
    expect(bench.boots).toBe(2);
    expect(bench.last).toMatchObject({
      verdict: 'applied',
      needsRestart: false,
      hash: B,
      reason: 'action restart x.service: timed out; the machine was restarted instead',
    });
    expect(runs(bench)).toBe('new');
  });

  it('is not confirmed by that restart when its unit has failed after it', () => {
    const bench = scene(RESTART);
    failing(bench);
    bench.settle();
    bench.machine.unitFails = () => bench.machine.running.get('/f') === 'new';
    bench.grant(again);
    bench.settle();
    expect(bench.bus.reports.findLast(({ verdict }) => verdict !== '')).toMatchObject({
      verdict: 'failed',
      needsRestart: false,
      hash: A,
      restored: true,
      reason: 'action restart x.service: timed out; x.service has failed',
    });
    expect(runs(bench)).toBe('old');
  });

  it('says so again in whatever it announces until another lease is dealt with', () => {
    const bench = scene(RESTART);
    failing(bench);
    bench.settle();
    bench.restart();
    bench.settle();
    expect(bench.last).toMatchObject({ kind: 'announced', verdict: 'failed', needsRestart: true });
    bench.grant({ lease: 'l3', hash: B, from: A, ledger: 12, actions: [{ kind: 'none' }] });
    bench.settle();
    expect(bench.last).toMatchObject({ verdict: 'applied', needsRestart: false, reason: '' });
  });

  it('restarts nothing while it may still be given leave, though the rollback fails too', () => {
    const bench = scene(RESTART);
    stuck(bench);
    bench.pass(59_000);
    expect([bench.boots, bench.machine.rebootAsked]).toEqual([1, false]);
    expect(bench.last).toMatchObject({ verdict: 'failed', needsRestart: true, restored: false });
    bench.grant(again);
    bench.pass(30_000);
    expect(bench.boots).toBe(2);
    expect(bench.last).toMatchObject({ verdict: 'applied', hash: B, restored: true });
  });

  it("restarts the machine once after all where no leave comes within a lease's time and the node is not whole", () => {
    const bench = scene(RESTART);
    stuck(bench);
    bench.pass(59_000);
    bench.bus.up = false;
    bench.pass(200_000);
    expect(bench.boots).toBe(2);
    bench.bus.up = true;
    bench.pass(200_000);
    expect(bench.last).toMatchObject({ kind: 'announced', hash: A, restored: true });
    expect(runs(bench)).toBe('old');
  });

  it('waits for its drain for as long as that takes', () => {
    const bench = scene(RESTART);
    stuck(bench);
    bench.pass(10_000);
    bench.grant({ ...again, phase: 'draining' });
    bench.pass(600_000);
    expect([bench.boots, bench.machine.rebootAsked]).toEqual([1, false]);
    bench.grant({ ...again, ledger: 13 });
    bench.pass(30_000);
    expect([bench.boots, runs(bench)]).toEqual([2, 'new']);
  });

  it('restarts it once also where content did not come back: what does not start may be what does not come back', () => {
    const bench = scene(RESTART);
    bench.machine.refusesAction = ({ kind }) =>
      kind === 'restart' ? { fault: 'node', reason: 'timed out' } : undefined;
    bench.machine.refuses = (entry) =>
      entry.spec['content'] === 'old' && bench.machine.files.get('/f') === 'new'
        ? { fault: 'node', reason: 'read-only' }
        : undefined;
    bench.pass(1_200_000);
    expect(bench.boots).toBe(2);
    expect(bench.last).toMatchObject({ restored: false });
  });

  it('asks while its lease still holds, though what hung forward hangs backward too', () => {
    const bench = scene(RESTART);
    const hung: number[] = [];
    bench.machine.refusesAction = ({ kind }) => {
      if (kind !== 'restart') return undefined;
      const step = bench.steps.at(-1);
      if (step?.do === 'act') hung.push(step.untilMs - bench.nowMs);
      bench.nowMs = step?.do === 'act' ? step.untilMs : bench.nowMs;
      return { fault: 'node', reason: 'timed out' };
    };
    const begunMs = bench.nowMs;
    while (bench.bus.status?.lease !== 'l2') {
      bench.step();
      bench.takeReports();
    }
    expect(hung.length).toBe(2);
    expect(bench.nowMs - begunMs).toBeLessThan(60_000);
    expect(bench.last).toMatchObject({ verdict: 'failed', needsRestart: true, restored: false });
  });

  it.each([
    [
      'fails before that',
      (bench: Bench) => {
        bench.machine.refuses = (entry) =>
          entry.spec['content'] === 'new' && bench.steps.some(({ do: what }) => what === 'apply')
            ? { fault: 'node', reason: 'no space' }
            : undefined;
        bench.grant(again);
      },
    ],
    ['ends before it starts', (bench: Bench) => bench.grant({ ...again, phase: 'settled', because: 'skipped' })],
  ])('is not whole while that is not done, when the lease that it is for %s', (_, happens) => {
    const bench = scene(RESTART);
    stuck(bench);
    bench.pass(10_000);
    happens(bench);
    bench.steps.length = 0;
    while (bench.boots === 1 && bench.last?.lease !== 'l3') {
      bench.step();
      bench.takeReports();
    }
    // Either its unit was put right by a restart of the machine, or it does not say that it is whole.
    expect(bench.last?.lease !== 'l3' || !bench.last.restored).toBe(true);
    bench.pass(1_200_000);
    expect([bench.boots, bench.machine.readJournal().outstanding, bench.last?.restored]).toEqual([2, undefined, true]);
  });

  it('makes up for it with what it is given next', () => {
    const bench = scene(RESTART);
    stuck(bench);
    bench.pass(10_000);
    bench.machine.refusesAction = () => undefined;
    bench.machine.running = new Map([['/f', 'new']]);
    bench.config('c', [file('/f', 'old'), file('/g', 'more')]);
    bench.steps.length = 0;
    bench.grant({ lease: 'l3', hash: hash('c'), from: A, ledger: 12, actions: [{ kind: 'none' }] });
    bench.settle();
    expect(done(bench)).toEqual(expect.arrayContaining(['restart x.service']));
    expect([bench.last?.verdict, runs(bench)]).toEqual(['applied', 'old']);
  });
});

describe('an action that fails or hangs, on a node that is drained', () => {
  const failing = (bench: Bench): void => {
    bench.machine.refusesAction = ({ kind }) =>
      kind === 'restart' && bench.boots === 1 ? { fault: 'node', reason: 'timed out' } : undefined;
  };

  it('is escalated: the machine is restarted once, and what came up is confirmed', () => {
    const bench = scene(DRAINED);
    failing(bench);
    bench.settle();
    expect(bench.boots).toBe(2);
    expect(bench.last).toMatchObject({
      verdict: 'applied',
      hash: B,
      restored: true,
      reason: 'action restart x.service: timed out; the machine was restarted instead',
    });
    expect(runs(bench)).toBe('new');
  });

  it('rolls back when its unit has failed after the restart too', () => {
    const bench = scene(DRAINED);
    failing(bench);
    bench.machine.unitFails = () => bench.machine.running.get('/f') === 'new';
    bench.settle();
    expect(bench.last).toMatchObject({
      verdict: 'failed',
      hash: A,
      restored: true,
      reason: 'action restart x.service: timed out; x.service has failed',
    });
    expect([bench.boots, runs(bench)]).toEqual([2, 'old']);
  });

  it('leads to one restart for each way and no more, though nothing ever succeeds', () => {
    const bench = scene(DRAINED);
    bench.machine.refusesAction = ({ kind }) =>
      kind === 'restart' ? { fault: 'node', reason: 'timed out' } : undefined;
    bench.machine.unitFails = () => true;
    bench.settle();
    bench.pass(600_000);
    expect(bench.boots).toBe(3);
    expect(bench.last).toMatchObject({ verdict: 'failed', hash: A, restored: true });
    expect(runs(bench)).toBe('old');
  });

  it('turns the way when the machine does not restart, and says both', () => {
    const bench = scene(DRAINED);
    failing(bench);
    bench.hangs = true;
    bench.machine.refusesAction = ({ kind }) =>
      kind === 'restart' && bench.machine.files.get('/f') === 'new'
        ? { fault: 'node', reason: 'timed out' }
        : undefined;
    bench.pass(100_000);
    expect(bench.last).toMatchObject({ verdict: 'failed', hash: A, restored: true });
    expect(bench.last?.reason).toContain(
      'action restart x.service: timed out; the machine was told to restart, but did not',
    );
    expect(runs(bench)).toBe('old');
  });
});

describe('a restart of the machine', () => {
  it('is journaled before it is asked for, and confirmed by another boot id', () => {
    const bench = scene(REBOOT);
    bench.settle();
    const order = bench.steps.map((step) =>
      step.do === 'write-journal'
        ? (step.journal.work?.phase ?? 'none') + (step.journal.work?.reboot === undefined ? '' : '+reboot')
        : step.do === 'act'
          ? step.action.kind
          : '',
    );
    expect(order.filter(Boolean)).toEqual([
      'forward',
      'drain',
      'forward+reboot',
      'reboot',
      'confirming+reboot',
      'none',
      'none',
    ]);
    expect(bench.last).toMatchObject({ verdict: 'applied', hash: B, bootId: 'boot-2' });
    expect(runs(bench)).toBe('new');
  });

  it('is not taken for one because time has passed or the applier was restarted', () => {
    const bench = scene(REBOOT);
    bench.hangs = true;
    while (bench.step().do !== 'wait');
    bench.restart();
    while (bench.step().do !== 'wait');
    expect(bench.machine.readJournal().work).toMatchObject({ phase: 'forward', reboot: { from: 'boot-1' } });
    expect(bench.bus.status?.lease).toBe('l1');
  });

  it('after which the node is bad rolls back, by one restart more', () => {
    const bench = scene(REBOOT);
    bench.machine.probes = () => bench.machine.running.get('/f') !== 'new';
    bench.settle();
    expect(bench.bus.reports.find(({ kind }) => kind === 'invalid')).toMatchObject({
      hash: A,
      restored: true,
      probe: 'p',
      bootId: 'boot-3',
    });
    expect([bench.boots, runs(bench)]).toEqual([3, 'old']);
  });

  it('that was not asked for yet is none during the rollback', () => {
    const bench = scene(REBOOT);
    bench.machine.refuses = (entry) =>
      entry.spec['content'] === 'new' && bench.steps.some((step) => step.do === 'apply')
        ? { fault: 'content', reason: 'no' }
        : undefined;
    bench.settle();
    expect(bench.last).toMatchObject({ verdict: 'invalid', hash: A, restored: true });
    expect([bench.boots, runs(bench)]).toEqual([1, 'old']);
  });

  it('that the machine refuses turns the way, and the node is whole', () => {
    const bench = scene(REBOOT);
    bench.machine.refusesAction = ({ kind }) =>
      kind === 'reboot' ? { fault: 'node', reason: 'no such command' } : undefined;
    bench.settle();
    expect(bench.last).toMatchObject({
      verdict: 'failed',
      hash: A,
      restored: true,
      reason: 'action reboot: no such command',
    });
    expect([bench.boots, bench.machine.files.get('/f')]).toEqual([1, 'old']);
  });

  it('that does not come during the rollback leaves the node not restored, until it restarts', () => {
    const bench = scene(REBOOT);
    bench.machine.probes = () => bench.machine.running.get('/f') !== 'new';
    while (bench.boots === 1) bench.step();
    bench.hangs = true;
    bench.pass(400_000);
    expect(bench.last).toMatchObject({ hash: A, restored: false });
    expect(bench.last?.reason).toContain('the machine was told to restart, but did not');
    expect(bench.machine.readJournal().outstanding).toEqual({ actions: REBOOT, bootId: 'boot-2' });
    bench.reboot();
    bench.pass(60_000);
    expect(bench.last).toMatchObject({ kind: 'announced', hash: A, restored: true });
    expect(runs(bench)).toBe('old');
  });

  it('that takes longer than the lease gets one fresh window, however late the node comes back', () => {
    const bench = scene(REBOOT);
    bench.hangs = true;
    while (bench.step().do !== 'wait');
    bench.bus.lease = { ...bench.bus.lease!, phase: 'settled', because: 'unknown', ledger: 20 };
    bench.hangs = false;
    bench.reboot(86_400_000);
    bench.settle();
    expect(bench.last).toMatchObject({ verdict: 'applied', lease: 'l2', hash: B });
    expect(bench.bus.status).toMatchObject({ lease: 'l2', hash: B });
  });

  it('of which a machine that crashes again and again makes no loop', () => {
    const bench = scene(REBOOT);
    while (bench.boots === 1) bench.step();
    let asked = 0;
    for (let i = 0; i < 200; i++) {
      const step = bench.step();
      if (step.do === 'act' && step.action.kind === 'reboot') asked += 1;
      if (i % 3 === 0 && bench.machine.readJournal().work !== undefined) bench.reboot();
    }
    bench.settle();
    expect(asked).toBeLessThanOrEqual(1);
    expect(bench.last).toMatchObject({ verdict: 'failed', hash: A, restored: true });
    expect(runs(bench)).toBe('old');
  });

  describe('whose rollback fails', () => {
    /** The node runs `new`, because the old content cannot be written. */
    function degraded(): Bench {
      const bench = scene(REBOOT);
      while (bench.boots === 1) bench.step();
      bench.machine.probes = (_name, files) => files.get('/f') === 'old';
      bench.machine.refuses = (entry) =>
        entry.spec['content'] === 'old' ? { fault: 'node', reason: 'read-only' } : undefined;
      bench.pass(60_000);
      expect(bench.last).toMatchObject({ verdict: 'failed', restored: false });
      return bench;
    }

    it('reboots again if the power failed before the content was restored', () => {
      const bench = degraded();
      bench.reboot();
      bench.pass(10_000);
      expect([runs(bench), bench.last?.restored]).toEqual(['new', false]);
      bench.machine.refuses = () => undefined;
      bench.pass(1_200_000);
      expect([runs(bench), bench.machine.files.get('/f')]).toEqual(['old', 'old']);
      expect(bench.machine.readJournal().outstanding).toBeUndefined();
      expect(bench.last).toMatchObject({ kind: 'announced', hash: A, restored: true });
    });

    it('is retried without NATS if it fails once more after the content was found as it should be', () => {
      const bench = degraded();
      bench.machine.files.set('/f', 'old');
      bench.reboot();
      bench.bus.up = false;
      bench.pass(60_000);
      expect(bench.machine.readJournal().sound).toBe(false);
      bench.machine.refuses = () => undefined;
      bench.pass(1_200_000);
      expect([runs(bench), bench.machine.readJournal().sound]).toEqual(['old', true]);
    });

    it('does not reboot for ever if something else changes the content at each start', () => {
      const bench = degraded();
      bench.machine.refuses = () => undefined;
      const reboot = bench.reboot.bind(bench);
      bench.reboot = (nowMs) => {
        bench.machine.files.set('/f', 'new');
        reboot(nowMs);
      };
      bench.pass(3_600_000);
      expect(bench.boots).toBeGreaterThan(3);
      expect(bench.boots).toBeLessThan(8);
    });
  });

  it('goes on from a journal of before, which did not say on which boot the work was begun', () => {
    const bench = scene(REBOOT);
    while (bench.boots === 1) bench.step();
    const journal = JSON.parse(bench.machine.journal) as { work: { begunOn?: string; reboot?: object } };
    delete journal.work.begunOn;
    delete journal.work.reboot;
    bench.machine.journal = JSON.stringify(journal);
    bench.restart();
    bench.settle();
    expect(bench.last).toMatchObject({ verdict: 'applied', hash: B });
  });
});
