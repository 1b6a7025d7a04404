import type { NodeProgress } from '#libs/contracts';
import { ago, changeView, cli, rolloutView } from '../fakes.fixture.js';

describe('the rows of a change that was rolled back', () => {
  const row = (node: string): NodeProgress => ({
    node,
    pool: 'w',
    state: 'unknown',
    reason: 'no answer within 20 s',
    since: ago(9),
  });
  const status = { restored: true, hash: 'old', desired: 'old' };
  const views = {
    changes: { c7: [changeView({ phase: 'ended', outcome: 'reverted', endedAt: ago(5) })] },
    rollouts: {
      c7: [
        rolloutView({
          phase: 'reverted',
          endedAt: ago(5),
          pools: { w: { nodes: 2, done: 2, active: 0, untouched: 0, degraded: 0 } },
          worst: [row('n1'), row('n2')],
        }),
      ],
    },
    status: { n1: [status], n2: [status] },
    leases: { n1: [{ phase: 'settled', because: 'unknown' }], n2: [{ phase: 'released', because: 'unknown' }] },
  };

  test('say that a node is up to date now, unless it has not answered its lease', async () => {
    const { out } = await cli(['status', 'c7'], { views });
    const rows = out.split('\n').filter((line) => line.includes('unknown  9s'));
    expect(rows.map((line) => line.trim().replace(/^\S+ /, ''))).toEqual([
      'n1  ✖ unknown  9s  no answer within 20 s',
      'n2  ✖ unknown  9s  up to date now; no answer within 20 s',
    ]);
  });
});
