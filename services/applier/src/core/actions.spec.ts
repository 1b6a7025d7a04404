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
  it('are taken after all items are applied and before the probes', () => {
    const bench = scene(RESTART);
    bench.settle();
    expect(done(bench)).toEqual(['run-probes', 'apply', 'daemon-reload', 'restart x.service', 'run-probes']);
    expect(bench.last).toMatchObject({ verdict: 'applied', hash: B, reason: '' });
    expect(runs(bench)).toBe('new');
  });

  it('are taken again during the rollback, for the restored content', () => {
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

  it('roll the change back if they fail and the machine cannot reboot', () => {
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

  it('are retried until they succeed if they also fail during the rollback, and only then the node is restored', () => {
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

describe('an action that fails or hangs on a machine that can reboot, under a lease without a drain', () => {
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

  it('rolls back and asks for a reboot, which the next lease for the same config may allow', () => {
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

  it('is not confirmed after that reboot if its unit has failed again', () => {
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

  it('is repeated in announcements until another lease is finished', () => {
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

  it('does not reboot while a lease can still allow it, even if the rollback fails too', () => {
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

  it("reboots once without a lease if none arrives within a lease's time and the node is not restored", () => {
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

  it('waits for the drain, however long it takes', () => {
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

  it('reboots once even if content was not restored, because a reboot may help', () => {
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

  it('asks for the reboot while its lease is still valid, even if the action also hangs during the rollback', () => {
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
    [
      'ends before the reboot starts',
      (bench: Bench) => bench.grant({ ...again, phase: 'settled', because: 'skipped' }),
    ],
  ])('stays unrestored until the reboot, if its lease %s', (_, act) => {
    const bench = scene(RESTART);
    stuck(bench);
    bench.pass(10_000);
    act(bench);
    bench.steps.length = 0;
    while (bench.boots === 1 && bench.last?.lease !== 'l3') {
      bench.step();
      bench.takeReports();
    }
    // Either a reboot repaired its unit, or the node does not report that it is restored.
    expect(bench.last?.lease !== 'l3' || !bench.last.restored).toBe(true);
    bench.pass(1_200_000);
    expect([bench.boots, bench.machine.readJournal().outstanding, bench.last?.restored]).toEqual([2, undefined, true]);
  });

  it('takes the outstanding action with the next work', () => {
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

describe('an action that fails or hangs on a drained node', () => {
  const failing = (bench: Bench): void => {
    bench.machine.refusesAction = ({ kind }) =>
      kind === 'restart' && bench.boots === 1 ? { fault: 'node', reason: 'timed out' } : undefined;
  };

  it('is escalated: the machine reboots once, and the result is confirmed', () => {
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

  it('rolls back if its unit has failed after the reboot too', () => {
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

  it('causes at most one reboot for the change and one for the rollback, even if nothing succeeds', () => {
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

  it('rolls back if the machine does not reboot, and reports both', () => {
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

describe('a reboot', () => {
  it('is journaled before it is requested, and confirmed by another boot id', () => {
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

  it('does not count as done because time has passed or the applier was restarted', () => {
    const bench = scene(REBOOT);
    bench.hangs = true;
    while (bench.step().do !== 'wait');
    bench.restart();
    while (bench.step().do !== 'wait');
    expect(bench.machine.readJournal().work).toMatchObject({ phase: 'forward', reboot: { from: 'boot-1' } });
    expect(bench.bus.status?.lease).toBe('l1');
  });

  it('is followed by a rollback with one more reboot if a probe fails after it', () => {
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

  it('that was not requested yet does not happen during the rollback', () => {
    const bench = scene(REBOOT);
    bench.machine.refuses = (entry) =>
      entry.spec['content'] === 'new' && bench.steps.some((step) => step.do === 'apply')
        ? { fault: 'content', reason: 'no' }
        : undefined;
    bench.settle();
    expect(bench.last).toMatchObject({ verdict: 'invalid', hash: A, restored: true });
    expect([bench.boots, runs(bench)]).toEqual([1, 'old']);
  });

  it('that the machine refuses leads to a rollback, and the node is restored', () => {
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

  it('that does not happen during the rollback leaves the node degraded until it reboots', () => {
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

  it('that takes longer than the lease gets one new period to confirm, however late the node starts', () => {
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

  it('is not repeated in a loop on a machine that crashes again and again', () => {
    const bench = scene(REBOOT);
    while (bench.boots === 1) bench.step();
    let reboots = 0;
    for (let i = 0; i < 200; i++) {
      const step = bench.step();
      if (step.do === 'act' && step.action.kind === 'reboot') reboots += 1;
      if (i % 3 === 0 && bench.machine.readJournal().work !== undefined) bench.reboot();
    }
    bench.settle();
    expect(reboots).toBeLessThanOrEqual(1);
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

    it('is retried without NATS if it fails again after the content was found to be correct', () => {
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

    it('does not repeat forever if something else changes the content at each start', () => {
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

  it('continues from an older journal, which does not say on which boot the work began', () => {
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
