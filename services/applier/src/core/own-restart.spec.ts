import type { Action } from '#libs/contracts';
import { Bench, file, hash, probe, SELF, SETTINGS } from './applier.fixture.js';

const A = hash('a');
const ACTIONS: readonly Action[] = [
  { kind: 'restart', unit: 'applier.service' },
  { kind: 'restart', unit: 'x.service' },
];

/** A change that restarts the unit of the applier itself, which ends the process each time. */
function scene(ownUnit: string | undefined): Bench {
  const bench = new Bench({ ...SETTINGS, ownUnit });
  bench.self = { ...SELF, capabilities: ['kind:File', 'action:restart'] };
  bench.config('a', [file('/f', 'new'), probe('p')]);
  bench.restart();
  bench.settle();
  bench.machine.refusesAction = ({ unit }) => {
    if (unit === 'applier.service') throw new Error('killed');
    return undefined;
  };
  bench.grant({ hash: A, actions: ACTIONS });
  bench.steps.length = 0;
  return bench;
}

/** How many processes the lease takes. */
function starts(bench: Bench): number {
  for (let count = 1; count < 20; count++) {
    try {
      bench.settle();
      if (bench.last?.lease !== '') return count;
    } catch {
      bench.restart();
    }
  }
  return Infinity;
}

const restarted = (bench: Bench): readonly string[] =>
  bench.steps.flatMap((step) => (step.do === 'act' ? [step.action.unit ?? ''] : []));

describe('an action that restarts the applier itself', () => {
  it('is taken once, and the next process goes on with the other actions and confirms', () => {
    const bench = scene('applier.service');
    expect(starts(bench)).toBe(2);
    expect(restarted(bench)).toEqual(['applier.service', 'x.service']);
    expect(bench.last).toMatchObject({ verdict: 'applied', hash: A });
  });

  it('is taken once more when the change is rolled back', () => {
    const bench = scene('applier.service');
    bench.machine.probes = () => false;
    expect(starts(bench)).toBe(3);
    expect(restarted(bench)).toEqual(['applier.service', 'x.service', 'applier.service', 'x.service']);
    expect(bench.last).toMatchObject({ verdict: 'failed', restored: true });
    expect(bench.machine.files.get('/f')).toBeUndefined();
  });

  it('of another unit is taken again by the next process, which cannot know whether it was done', () => {
    const bench = scene(undefined);
    bench.machine.refusesAction = () => undefined;
    while (bench.steps.at(-1)?.do !== 'act') {
      bench.step();
      bench.takeReports();
    }
    bench.restart();
    bench.settle();
    expect(restarted(bench)).toEqual(['applier.service', 'applier.service', 'x.service']);
    expect(bench.last).toMatchObject({ verdict: 'applied', hash: A });
  });
});
