import type { ConfigEntry, LeaseView } from '#libs/contracts';
import { Bench, file, hash, probe } from './applier.fixture.js';

const A = hash('a');
const B = hash('b');
const exec = (name: string, undo?: object): ConfigEntry => ({
  kind: 'Exec',
  name,
  spec: { check: {}, apply: {}, ...(undo === undefined ? {} : { undo }) },
});

/** A change to this config fails, because the probe that comes with it never passes. */
const failing = (...commands: readonly ConfigEntry[]): Bench => failingWithin(60_000, ...commands);

function failingWithin(applyMs: number, ...commands: readonly ConfigEntry[]): Bench {
  const bench = new Bench();
  bench.config('a', [file('/f', 'new'), ...commands, probe('p')]);
  bench.machine.probes = () => false;
  bench.grant({ hash: A, applyMs });
  return bench;
}

const undone = (bench: Bench) => bench.steps.flatMap((step) => (step.do === 'undo' ? [step.entry.name] : []));

describe('a change that is rolled back after a command ran', () => {
  it('says that it is rolled back except for that command', () => {
    const bench = failing(exec('x'), exec('y'));
    bench.settle();
    expect(bench.last).toMatchObject({ verdict: 'failed', restored: true, notUndone: ['Exec/x', 'Exec/y'] });
    expect(bench.last?.reason).toMatch(/; rolled back, except Exec\/x, Exec\/y$/);
  });

  it('does not mention a command that could not be started, unless an earlier process may have run it', () => {
    const bench = failing(exec('x'));
    const refusal = { fault: 'node', reason: 'no such program', neverRan: true } as const;
    bench.machine.refusesToApply = ({ name }) => (name === 'x' ? refusal : undefined);
    bench.settle();
    expect(bench.last).toMatchObject({ reason: 'no such program', restored: true, notUndone: [] });
    const other = failing(exec('x'));
    other.machine.refusesToApply = ({ name }) => (name === 'x' ? refusal : undefined);
    while (other.machine.readJournal().work?.ran.length !== 1) {
      other.step();
      other.takeReports();
    }
    other.restart();
    other.settle();
    expect(other.last).toMatchObject({ restored: true, notUndone: ['Exec/x'] });
  });

  it('does not mention a command that was not needed', () => {
    const bench = failing(exec('x'), exec('y'));
    bench.machine.needs = ({ name }) => name === 'y';
    bench.settle();
    expect([bench.machine.ran, bench.last?.notUndone]).toEqual([['y'], ['Exec/y']]);
  });

  it('undoes the commands that can be undone, the last one first', () => {
    const bench = failing(exec('x', {}), exec('y'), exec('z', {}));
    bench.settle();
    expect(undone(bench)).toEqual(['z', 'x']);
    expect(bench.last).toMatchObject({ verdict: 'failed', restored: true, notUndone: ['Exec/y'] });
  });

  it('leaves the files time in the lease if a command cannot be undone', () => {
    const bench = failingWithin(20_000, exec('x', {}), exec('y', {}));
    const startMs = bench.nowMs;
    bench.settle();
    const limits = bench.steps.flatMap((step) => (step.do === 'undo' ? [step.untilMs - startMs] : []));
    expect(limits).toEqual([expect.any(Number), expect.any(Number)]);
    expect(Math.max(...limits)).toBeLessThan(20_000);
  });

  it('says why a command could not be undone, and does not retry it forever', () => {
    const bench = failing(exec('x', {}));
    bench.machine.undoes = () => ({ fault: 'node', reason: 'exit code 1' });
    bench.pass(120_000);
    expect(undone(bench)).toEqual(['x']);
    expect(bench.last).toMatchObject({ restored: true, notUndone: ['Exec/x (undo failed: exit code 1)'] });
  });

  it('restores the files and reports, although the undo of a command always ends the applier', () => {
    const bench = failing(exec('x', {}), exec('y', {}));
    bench.machine.undoes = ({ name }) => {
      if (name === 'y') throw new Error('killed');
      return undefined;
    };
    let starts = 0;
    for (; starts < 10 && bench.last?.verdict !== 'failed'; starts++) {
      try {
        bench.settle();
      } catch {
        bench.restart();
      }
    }
    expect(starts).toBe(4);
    expect(undone(bench)).toEqual(['y', 'y', 'y', 'x']);
    expect(bench.last).toMatchObject({
      verdict: 'failed',
      restored: true,
      notUndone: ['Exec/y (undo failed: the applier ended 3 times while it ran)'],
    });
    expect(bench.machine.files.get('/f')).toBeUndefined();
  });

  it('does not undo a command that was not needed, whenever the applier is killed', () => {
    const stepsUntilRestart = Array.from({ length: 40 }, (_, steps) => steps);
    for (const steps of stepsUntilRestart) {
      const bench = failing(exec('x', {}));
      bench.machine.needs = () => false;
      for (let i = 0; i < steps; i++) {
        bench.step();
        bench.takeReports();
      }
      bench.restart();
      bench.settle();
      expect({ steps, undone: undone(bench), notUndone: bench.last?.notUndone }).toEqual({
        steps,
        undone: [],
        notUndone: [],
      });
    }
  });

  it('also says so if the applier was killed right after the command ran', () => {
    const bench = failing(exec('x'));
    while (bench.machine.ran.length === 0) {
      bench.step();
      bench.takeReports();
    }
    bench.restart();
    bench.machine.needs = () => false;
    bench.settle();
    expect(bench.last).toMatchObject({ verdict: 'failed', notUndone: ['Exec/x'] });
  });
});

describe('a confirmed change that its rollout rolls back', () => {
  function confirmed(...commands: readonly ConfigEntry[]): Bench {
    return rolledBackBy({ kind: 'rollback' }, ...commands);
  }

  function rolledBackBy(lease: Partial<LeaseView>, ...commands: readonly ConfigEntry[]): Bench {
    const bench = new Bench();
    bench.config('a', [file('/f', 'old'), exec('before')]);
    bench.config('b', [file('/f', 'new'), exec('before'), ...commands]);
    bench.grant({ hash: A });
    bench.settle();
    bench.grant({ lease: 'l2', hash: B, from: A, ledger: 9 });
    bench.settle();
    expect(bench.last).toMatchObject({ verdict: 'applied', hash: B, notUndone: [] });
    bench.machine.needs = () => false;
    bench.grant({ lease: 'l3', hash: A, from: B, ledger: 10, ...lease });
    bench.settle();
    return bench;
  }

  it('says which commands of it are not undone', () => {
    const bench = confirmed(exec('x'), exec('y', {}));
    expect(undone(bench)).toEqual(['y']);
    expect(bench.last).toMatchObject({
      verdict: 'applied',
      hash: A,
      reason: 'rolled back, except Exec/x',
      notUndone: ['Exec/x'],
    });
  });

  it('undoes them under a corrective lease, too, if that says that the change has failed', () => {
    const bench = rolledBackBy({ kind: 'corrective', undo: true }, exec('x'), exec('y', {}));
    expect(undone(bench)).toEqual(['y']);
    expect(bench.last).toMatchObject({ verdict: 'applied', hash: A, notUndone: ['Exec/x'] });
    const lagging = rolledBackBy({ kind: 'corrective' }, exec('x'), exec('y', {}));
    expect(undone(lagging)).toEqual([]);
    expect(lagging.last).toMatchObject({ verdict: 'applied', hash: A, notUndone: [] });
  });

  it('undoes them also if the config was repaired after they ran', () => {
    const bench = new Bench();
    bench.config('a', [file('/f', 'old')]);
    bench.config('b', [file('/f', 'new'), exec('x', {})]);
    bench.grant({ hash: A });
    bench.settle();
    bench.grant({ lease: 'l2', hash: B, from: A, ledger: 9 });
    bench.settle();
    bench.machine.needs = () => false;
    bench.machine.files.set('/f', 'edited');
    const drift = { differences: ['/f: differs'], overwrite: true };
    bench.grant({ lease: 'l3', kind: 'repair', hash: B, from: B, ledger: 10, drift });
    bench.settle();
    expect(bench.last).toMatchObject({ lease: 'l3', verdict: 'applied', hash: B });
    bench.grant({ lease: 'l4', kind: 'rollback', hash: A, from: B, ledger: 11 });
    bench.settle();
    expect([undone(bench), bench.last]).toMatchObject([['x'], { lease: 'l4', verdict: 'applied', hash: A }]);
  });

  it('says nothing where the old config has the same commands', () => {
    expect(confirmed().last).toMatchObject({ verdict: 'applied', reason: '', notUndone: [] });
  });
});
