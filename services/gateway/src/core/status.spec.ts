import type { PoolView } from '#libs/contracts';
import { GatewayWorld } from './gateway.fixture.js';
import { publishedStateOf } from './published-state.js';
import { statusOf } from './status.js';
import type { Resource, Status } from './resource.js';

describe('the status of a pool', () => {
  const statusBeside = (nodes: readonly string[]): Status | undefined => {
    const world = new GatewayWorld().apply('edge', '1').rest().show('c1', 'committed').rest();
    const unavailable = nodes.map((node) => ({ node, because: 'taken by me: disk', lease: '' }));
    world.state.pools.set('edge', {
      pool: 'edge',
      members: 20,
      budget: 2,
      unavailable,
      used: nodes.length,
      waiting: 3,
      gone: false,
    } as Partial<PoolView> as PoolView);
    const resource = world.state.resources.get('File/edge') as Resource;
    return statusOf(world.state, { ...resource, kind: 'Pool' }, publishedStateOf(world.state, resource), 't1');
  };

  it('names the nodes that use up its budget, and why', () => {
    expect(statusBeside(['n1', 'n2'])).toMatchObject({
      members: 20,
      budget: 2,
      unavailable: 2,
      usedBy: 'n1 (taken by me: disk), n2 (taken by me: disk)',
      waiting: 3,
    });
    expect(statusBeside([])).toMatchObject({ unavailable: 0, usedBy: '' });
  });

  it('names the first ten of many', () => {
    expect(statusBeside(Array.from({ length: 12 }, (_, i) => `n${i}`))?.['usedBy']).toMatch(
      /^n0 .* n9 \(taken by me: disk\) and 2 more$/,
    );
  });
});
