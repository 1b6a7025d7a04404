import type { Fragment, PoolView } from '#libs/contracts';
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

describe('the status of a committed object', () => {
  const reachedWith = (shown: object): Status | undefined => {
    const world = new GatewayWorld().apply('a', '1').rest().show('c1', 'committed').rest();
    const { kind, name, labels, spec } = world.objects.get('File/a') as never as Fragment;
    world.state.showFragment({ fragment: { kind, name, labels, spec }, change: 'c1', gone: false, ...shown });
    world.rest();
    return world.objects.get('File/a')?.status;
  };
  const counts = { nodes: 3, upToDate: 2, applying: 0, failed: 0, deferred: 1, waiting: 0 };

  it('counts the nodes that have it', () => {
    expect(reachedWith({ counts, inSync: false })).toMatchObject({ phase: 'Ready', inSync: false, counts });
  });

  it('says which generation was applied and when, only while it is in sync', () => {
    const inSync = reachedWith({ counts: { ...counts, upToDate: 3, deferred: 0 }, inSync: true, appliedAt: 't2' });
    expect(inSync).toMatchObject({ inSync: true, appliedTime: 't2', counts: { upToDate: 3 } });
    expect(inSync?.['appliedGeneration']).toBe(inSync?.['observedGeneration']);
    const behind = reachedWith({ counts, inSync: false });
    expect([behind?.['appliedTime'], behind?.['appliedGeneration']]).toEqual([undefined, undefined]);
  });

  it('is not in sync while a newer version of it is published', () => {
    const world = new GatewayWorld().apply('a', '1').rest().show('c1', 'committed').rest();
    const { kind, name, labels, spec } = world.objects.get('File/a') as never as Fragment;
    world.state.showFragment({ fragment: { kind, name, labels, spec }, change: 'c1', gone: false, inSync: true });
    world.apply('a', '2').rest().show('c2', 'rolling').rest();
    expect(world.objects.get('File/a')?.status).toMatchObject({ inSync: false, change: 'c2' });
  });
});

describe('the status of a rollout that is stalled', () => {
  const world = (): GatewayWorld => new GatewayWorld().restart().apply('a', '1').rest().show('c1', 'rolling');
  const heldBy = (because: string): PoolView =>
    ({ unavailable: [{ node: 'n1', because, lease: '' }] }) as Partial<PoolView> as PoolView;

  it('says which nodes it waits for, why they are unavailable, and how to continue', () => {
    const stalled = world().rollout('c1', { stalledBy: ['n1', 'n2'] });
    stalled.state.pools.set('edge', heldBy('taken by kured: a new kernel'));
    const status = stalled.rest().objects.get('File/a')?.status;
    const message =
      'stalled: waits for n1 (taken by kured: a new kernel), n2; give taken nodes back with sluice give NODE --owner OWNER; ' +
      'bring the nodes back, or continue without one: sluice skip NODE, or sluice remove NODE if it is gone for good';
    expect(status).toMatchObject({ phase: 'Stalled', message });
    expect(stalled.rollouts.get('c1')?.status).toMatchObject({ phase: 'Stalled', message });
  });

  it('follows the reason', () => {
    const stalled = world().rollout('c1', { stalledBy: ['n1'] });
    stalled.state.pools.set('edge', heldBy('NotReady'));
    stalled.rest();
    stalled.state.pools.set('edge', heldBy('taken by kured'));
    expect(stalled.rest().objects.get('File/a')?.status?.message).toMatch(/^stalled: waits for n1 \(taken by kured\);/);
  });

  it('says in a rollback why the change failed, too', () => {
    const stalled = world().rollout('c1', { phase: 'reverting', reason: 'n3 is invalid', stalledBy: ['n1'] });
    stalled.state.pools.set('edge', heldBy('unknown'));
    expect(stalled.rest().objects.get('File/a')?.status).toMatchObject({
      phase: 'Reverting',
      message: expect.stringMatching(/^n3 is invalid; the rollback is stalled: waits for n1 \(unknown\); bring/),
    });
  });
});
