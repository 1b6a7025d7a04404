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
    'stalled: no report from n1, n2; to continue without a node, run sluice skip NODE, or sluice remove NODE if it is gone for good',
  ],
  ['reverting', {}, { phase: 'reverting' as const, reason: 'n1 is invalid' }, 'failed (n1 is invalid); rolling back'],
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
    'committed',
    { phase: 'committed' as const },
    { phase: 'succeeded' as const, deferred: 2 },
    'committed; 2 nodes are deferred and get it as soon as they can',
  ],
])('%s', (because, change, rollout, text) => {
  expect(why(change, rollout)).toMatchObject({ because, text });
});

test('a pool with no room names who takes it', () => {
  const pool = {
    pool: 'w',
    budget: 1,
    used: 1,
    unavailable: [{ node: 'n9', because: 'silent', lease: '' }],
  } as unknown as PoolView;
  expect(why({}, { pools: { w: { nodes: 3, done: 1, active: 0, untouched: 0 } } }, new Map([['w', pool]]))).toEqual({
    because: 'budget',
    holders: ['n9'],
    text: 'the budget of pool w is used up: 1 unavailable, 1 allowed: n9 (silent)',
  });
});

test('of a node the scheduler is asked', async () => {
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

test('of a node that drains it is told how far that is, and what holds it up since when', () => {
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

test('of a change whose drains are blocked it is told which, since when and by what', () => {
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
