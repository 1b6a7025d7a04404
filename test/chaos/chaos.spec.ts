import { Chaos, type Outcome } from './chaos.js';
import { scheduleOf } from './schedule.js';
import { SHORT } from './shape.js';

/**
 * A seed that freezes and kills the server, and kills appliers, and kills the drainer during a change that needs it.
 */
const SEED = 8;

test('after a round of faults and people on real processes, every file is complete, every change has ended, and no pool exceeds its budget', async () => {
  const [round] = scheduleOf(SEED, 1, SHORT);
  const chaos = await Chaos.start(SHORT);
  let outcome: Outcome | undefined;
  try {
    outcome = await chaos.round(round as NonNullable<typeof round>);
    expect({
      wrong: outcome.wrong,
      replay: `npm run chaos -- --rounds 1 --seed ${SEED} --short`,
      data: outcome.wrong.length > 0 ? chaos.fleet.data : '',
    }).toEqual({ wrong: [], replay: expect.any(String), data: '' });
    expect([...outcome.notes.keys()].filter((what) => what.startsWith('died '))).not.toEqual([]);
    expect(outcome.evidence?.acknowledged.size).toBeGreaterThan(0);
    expect(outcome.evidence?.works.length).toBeGreaterThan(40);
    const did = (what: string): number => outcome?.evidence?.drainer.filter((deed) => deed.did === what).length ?? 0;
    expect(did('drained')).toBeGreaterThan(0);
    // A node that could not restart its unit would refuse the change, and no node would be drained.
    expect(outcome.evidence?.facts.filter((fact) => fact.type === 'config.rejected')).toEqual([]);
    expect(
      outcome.evidence?.nodes.filter(({ restarts, runs }) => restarts && runs !== undefined).length,
    ).toBeGreaterThan(0);
  } finally {
    await chaos.close(outcome === undefined || outcome.wrong.length > 0);
  }
});
