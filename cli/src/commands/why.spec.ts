import { OpsError } from '#libs/client';
import type { ChangeView, DrainView, PoolView, RolloutView } from '#libs/contracts';
import { changeView, cli, rolloutView } from '../fakes.fixture.js';
import { whyChange, whyDraining } from './why.js';

const why = (
  change: Partial<ChangeView>,
  rollout?: Partial<RolloutView>,
  pools: ReadonlyMap<string, PoolView> = new Map(),
) => whyChange(changeView(change), undefined, rollout === undefined ? undefined : rolloutView(rollout), pools);

test.each([
  [
    'waiting',
    { phase: 'waiting' as const, waitsFor: ['c3', 'c5'] },
    undefined,
    'waiting for c3, c5: they change some of the same nodes or fragments',
  ],
  [
    'waiting',
    { phase: 'waiting' as const, waitsFor: ['c3'], paused: 'by bob: not now' },
    undefined,
    'waiting for c3: it changes some of the same nodes or fragments; it is also paused by bob: not now: continue with sluice resume c7',
  ],
  [
    'needs',
    { phase: 'waiting' as const, needs: ['Vrf/red'], needsUntilMs: Date.UTC(2026, 10, 25) },
    undefined,
    'needs Vrf/red, which does not exist yet: apply it, or use sluice abort c7; it is rejected at 2026-11-25T00:00:00.000Z',
  ],
  [
    'rejected',
    {
      phase: 'rejected' as const,
      reasons: [{ fragment: 'File/a', field: 'spec.path', code: 'x', message: 'is taken', nodes: [] }],
    },
    undefined,
    'rejected: File/a spec.path: is taken',
  ],
  ['paused', {}, { paused: true, reason: 'by bob' }, 'paused: by bob; continue with sluice resume c7'],
  [
    'stalled',
    {},
    { stalledBy: ['n1', 'n2'] },
    'stalled: waits for n1, n2; bring the nodes back, or continue without one: sluice skip NODE, or sluice remove NODE if it is gone for good',
  ],
  ['reverting', {}, { phase: 'reverting' as const, reason: 'n1 is invalid' }, 'failed (n1 is invalid); rolling back'],
  [
    'stalled',
    {},
    { phase: 'reverting' as const, reason: 'n1 is invalid', stalledBy: ['n2'] },
    'failed (n1 is invalid); the rollback is stalled: waits for n2; bring the nodes back, or continue without one: ' +
      'sluice skip NODE, or sluice remove NODE if it is gone for good',
  ],
  [
    'under-way',
    {},
    { worst: [{ node: 'n1', pool: 'w', state: 'applying', reason: '', since: '' }] },
    '1 node in progress: n1',
  ],
  [
    'reverted',
    { phase: 'ended' as const, outcome: 'reverted', reason: 'n1 is invalid' },
    undefined,
    'rolled back: n1 is invalid',
  ],
  [
    'reverted',
    { phase: 'ended' as const, outcome: 'reverted', reason: 'n1 is failed: /etc/x is a mount point' },
    { phase: 'reverted' as const, nodes: 3, pools: { w: { nodes: 3, done: 3, active: 0, untouched: 3, degraded: 0 } } },
    'it ended before any node was changed: n1 is failed: /etc/x is a mount point',
  ],
  [
    'committed',
    { phase: 'committed' as const },
    { phase: 'succeeded' as const, deferred: 2 },
    'committed; 2 nodes are deferred and get it as soon as they can',
  ],
])('%s', (because, change, rollout, text) => {
  expect(why(change, rollout)).toMatchObject({ because, text });
});

test('names what the changes need that it waits for, and how to go on without them', () => {
  const needs = { phase: 'waiting' as const, needs: ['Vrf/red', 'Vrf/blue'] };
  const others = [changeView({ change: 'c3', phase: 'rolling' }), changeView({ change: 'c5', ...needs })];
  const waiting = changeView({ phase: 'waiting', waitsFor: ['c3', 'c5'] });
  expect(whyChange(waiting, undefined, undefined, new Map(), [], others)).toEqual({
    because: 'waiting',
    holders: ['c3', 'c5'],
    text:
      'waiting for c3, c5: they change some of the same nodes or fragments; ' +
      'c5 needs Vrf/red, Vrf/blue, which do not exist yet: apply them, or use sluice abort c5, ' +
      'or publish a change of all fragments of c5, which replaces it',
  });
});

test('reads the changes that a change waits for', async () => {
  const views = {
    changes: {
      c7: [changeView({ phase: 'waiting', waitsFor: ['c5', 'c6'] })],
      c5: [changeView({ change: 'c5', phase: 'waiting', needs: ['Vrf/red'] })],
    },
  };
  expect((await cli(['why', 'c7'], { views })).out).toMatch(/; c5 needs Vrf\/red, which does not exist yet: apply it/);
});

test('a node that waits for a change to start says what the change needs', async () => {
  const why = { node: 'n1', because: 'not-started', text: 'it waits for c5 to start', change: 'c5', holders: [] };
  const shown = async (needs: readonly string[]): Promise<string> => {
    const views = { changes: { c5: [changeView({ change: 'c5', phase: 'waiting', needs: [...needs] })] } };
    return (await cli(['why', 'n1'], { views, answers: { 'ops.node.why': () => why } })).out;
  };
  expect(await shown(['Vrf/red'])).toMatch(
    /^it waits for c5 to start; c5 needs Vrf\/red, which does not exist yet: apply/,
  );
  expect(await shown([])).toBe('it waits for c5 to start\n');
});

test('says for the first nodes that a committed change has deferred why they do not have it', async () => {
  const row = (node: string, state = 'deferred') => ({ node, pool: 'w', state, reason: '', since: '' });
  const worst = [row('n0', 'failed'), ...['n1', 'n2', 'n3', 'n4'].map((node) => row(node))];
  const views = {
    changes: { c7: [changeView({ phase: 'committed' })] },
    rollouts: { c7: [rolloutView({ phase: 'succeeded', deferred: 4, worst })] },
  };
  const texts: Readonly<Record<string, string>> = {
    n1: 'it reported this config as invalid (no nft)',
    n3: 'it is silent',
  };
  const answers = {
    'ops.node.why': ({ node }: Record<string, unknown>) => {
      const text = texts[String(node)];
      if (text === undefined) throw new OpsError('not-found', 'there is no such node');
      return { node, because: 'x', text, holders: [] };
    },
  };
  expect((await cli(['why', 'c7'], { views, answers })).out).toBe(
    'committed; 4 nodes are deferred and get it as soon as they can; ' +
      'n1: it reported this config as invalid (no nft); n3: it is silent; and 1 more\n',
  );
});

test('a stalled rollout waits for nodes, each for its reason, and the way out fits the reasons', () => {
  const unavailable = [
    { node: 'n1', because: 'taken by me: bios', lease: '' },
    { node: 'n2', because: 'silent', lease: '' },
  ];
  const text = (...stalledBy: string[]): string =>
    why({}, { stalledBy }, new Map([['w', { unavailable } as unknown as PoolView]])).text;
  expect(text('n1')).toBe(
    'stalled: waits for n1 (taken by me: bios); give taken nodes back with sluice give NODE --owner OWNER',
  );
  expect(text('n1', 'n2')).toContain('n2 (silent); give taken nodes back');
  expect(text('n1', 'n2')).toContain('; bring the nodes back, or continue without one: sluice skip NODE');
});

test('names the nodes that use up the budget of a pool', () => {
  const pool = {
    pool: 'w',
    budget: 1,
    used: 1,
    unavailable: [{ node: 'n9', because: 'silent', lease: '' }],
  } as unknown as PoolView;
  expect(
    why({}, { pools: { w: { nodes: 3, done: 1, active: 0, untouched: 0, degraded: 0 } } }, new Map([['w', pool]])),
  ).toEqual({
    because: 'budget',
    holders: ['n9'],
    text: 'the budget of pool w is used up: 1 unavailable, 1 allowed: n9 (silent)',
  });
});

test('asks the scheduler about a node', async () => {
  const answers = {
    'ops.node.why': ({ node }: Record<string, unknown>) => ({
      node,
      because: 'silent',
      text: 'it is silent',
      holders: [],
    }),
  };
  expect(await cli(['why', 'w-1.dc1'], { answers })).toEqual({ exit: 0, out: 'it is silent\n', err: '' });
  expect(JSON.parse((await cli(['why', 'w-1.dc1', '-o', 'json'], { answers })).out)).toMatchObject({
    node: 'w-1.dc1',
    because: 'silent',
  });
});

test("shows the progress of a node's drain, and what has blocked it since when", () => {
  const answer = { because: 'draining', text: 'it is being drained', holders: [] };
  const drain = {
    state: 'draining',
    total: 5,
    evicted: 3,
    waitingFor: ['default/web-1', 'default/web-2'],
    reason: '',
    blockedSince: '',
  } as unknown as DrainView;
  expect(whyDraining(answer, undefined)).toEqual(answer);
  expect(whyDraining(answer, drain).text).toBe(
    'draining: 3 of 5 pods evicted, waiting for default/web-1, default/web-2',
  );
  const held = {
    ...drain,
    waitingFor: ['default/web-1'],
    reason: 'the budget default/web allows 0 evictions',
    blockedSince: '2026-01-02T03:04:05.678Z',
  };
  expect(whyDraining(answer, held).text).toBe(
    'draining: 3 of 5 pods evicted, waiting for default/web-1; blocked since 2026-01-02T03:04:05.678Z: the budget default/web allows 0 evictions',
  );
});

test('lists the blocked drains of a change, what blocks them, and since when', () => {
  const blocked = (node: string, change = 'c7') =>
    ({
      node,
      change,
      state: 'draining',
      blockedSince: '2026-01-02T03:04:05.678Z',
      reason: 'the budget default/web allows 0 evictions',
    }) as unknown as DrainView;
  const rollout = rolloutView({ worst: [{ node: 'n1', pool: 'w', state: 'draining', reason: '', since: '' }] });
  const text = (...drains: readonly DrainView[]): string =>
    whyChange(changeView({}), undefined, rollout, new Map(), drains).text;
  expect(text(blocked('n1'), blocked('n9', 'c8'))).toBe(
    '1 node in progress: n1; the drain of n1 has been blocked since 2026-01-02T03:04:05.678Z: the budget default/web allows 0 evictions',
  );
  expect(text(...['n1', 'n2', 'n3', 'n4', 'n5'].map((node) => blocked(node)))).toMatch(
    /n3 has been blocked .*; and 2 more$/,
  );
});

test('a node with the name of a change is told apart from it', async () => {
  const views = {
    changes: { c1: [changeView({ change: 'c1', phase: 'committed' })] },
    nodes: { c1: [{ node: 'c1', state: 'ready' }] },
  };
  const answers = {
    'ops.node.why': ({ node }: Record<string, unknown>) => ({ node, because: 'x', text: 'it is silent', holders: [] }),
  };
  const hint = 'there is also a node c1: see sluice why node/c1\n';
  expect(await cli(['why', 'c1'], { views, answers })).toEqual({ exit: 0, out: 'committed\n', err: hint });
  expect(await cli(['why', 'change/c1'], { views, answers })).toEqual({ exit: 0, out: 'committed\n', err: '' });
  expect(await cli(['why', 'node/c1'], { views, answers })).toEqual({ exit: 0, out: 'it is silent\n', err: '' });
  expect(await cli(['why', 'change/w-1'], { views, answers })).toMatchObject({ exit: 2 });
});
