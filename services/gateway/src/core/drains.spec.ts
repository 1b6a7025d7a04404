import type { DrainView, PoolView } from '#libs/contracts';
import { drainTroubles } from './drains.js';
import { GatewayWorld, sha256 } from './gateway.fixture.js';
import { eventsOf, type Status } from './index.js';

const drainOf = (node: string, more: Partial<DrainView> = {}): DrainView => ({
  node,
  pool: 'edge',
  change: 'c1',
  lease: `l-${node}`,
  state: 'draining',
  strategy: 'kubernetes',
  since: '2026-01-01T00:00:00.000Z',
  ledger: 1,
  total: 3,
  evicted: 1,
  waitingFor: ['default/web-1'],
  reason: '',
  budget: '',
  allowed: 0,
  blocked: [],
  blockedSince: '',
  ...more,
});
const blockedBy = (budget: string, more: Partial<DrainView> = {}): Partial<DrainView> => ({
  blockedSince: '2026-01-01T00:01:00.000Z',
  budget,
  reason: `the budget ${budget} allows 0 evictions: it would be violated`,
  blocked: ['default/web-1', 'default/web-2'],
  ...more,
});
const wordsOf = (...drains: readonly DrainView[]): string | undefined =>
  drainTroubles(
    drains.map((view) => ({ view, sinceMs: 0 })),
    60_000,
  ).ofChange.get('c1')?.words;

describe('drains without progress', () => {
  it('are shown with node, budget, pods, and time', () => {
    expect(wordsOf(drainOf('n1', blockedBy('default/web')))).toBe(
      'the drain of n1 has been blocked since 2026-01-01T00:01:00.000Z: the budget default/web allows 0 evictions: it would be violated (default/web-1, default/web-2)',
    );
    expect(
      wordsOf(
        drainOf('n1', {
          blockedSince: 't',
          reason: 'the emptyDir volumes of default/a would be lost',
          blocked: ['default/a'],
        }),
      ),
    ).toBe('the drain of n1 has been blocked since t: the emptyDir volumes of default/a would be lost');
    expect(wordsOf(drainOf('n1'))).toBe(
      'the drain of n1 has been waiting since 2026-01-01T00:00:00.000Z for default/web-1',
    );
  });

  it('show only the first few of many, the longest blocked first', () => {
    const many = Array.from({ length: 40 }, (_, i) =>
      drainOf(
        `n${i}`,
        i < 2
          ? {}
          : blockedBy('default/web', {
              blockedSince: `2026-01-01T00:${59 - i}:00.000Z`,
              reason: 'x'.repeat(5_000),
              blocked: Array.from({ length: 10 }, (_unused, pod) => `default/web-${pod}`),
            }),
      ),
    );
    const words = wordsOf(...many) ?? '';
    expect(words.match(/the drain of n\d+ has been blocked/g)).toEqual(
      [39, 38, 37, 36, 35].map((i) => `the drain of n${i} has been blocked`),
    );
    expect(words).toMatch(/; and 35 more$/);
    expect(words.length).toBeLessThan(2_500);
  });

  it('are shown after a while: a refusal after 5 s, pods that are ending after a minute', () => {
    const troubles = (nowMs: number): readonly unknown[] => {
      const { ofChange, wakeAtMs } = drainTroubles(
        [
          { view: drainOf('n1', blockedBy('default/web')), sinceMs: 1_000 },
          { view: drainOf('n2'), sinceMs: 1_000 },
        ],
        nowMs,
      );
      return [ofChange.get('c1')?.blocked, wakeAtMs];
    };
    expect([troubles(5_999), troubles(6_000), troubles(61_000)]).toEqual([
      [undefined, 6_000],
      [1, 61_000],
      [1, Infinity],
    ]);
  });
});

describe('a rollout whose drain is blocked', () => {
  let world: GatewayWorld;
  const see = (view: DrainView): void => world.state.showDrain(view, world.nowMs);
  const status = (): Status => world.rollouts.get('c1')?.status ?? {};
  const drained = (of = status()) => of.conditions?.find(({ type }) => type === 'Drained');
  beforeEach(() => {
    world = new GatewayWorld().restart();
    world
      .show(world.publish({ apply: [] }), 'rolling')
      .rollout('c1', {})
      .rest();
    see(drainOf('n1', blockedBy('default/web')));
    world.rest();
  });

  it('shows that, and stops when the drain makes progress', () => {
    expect(status()).toMatchObject({
      phase: 'Rolling',
      blocked: 1,
      message: expect.stringMatching(
        /^the drain of n1 has been blocked since .* the budget default\/web allows 0 evictions/,
      ) as string,
    });
    expect(drained()).toMatchObject({ status: 'False', reason: 'DrainBlocked', message: status()['message'] });
    see(drainOf('n1', { state: 'drained' }));
    world.rest();
    expect([drained(), status()['blocked'], status()['message']]).toEqual([undefined, 0, '']);
  });

  it('keeps its other conditions', () => {
    world.rollout('c1', { paused: true, reason: 'lunch' }).rest();
    expect(status()).toMatchObject({
      phase: 'Paused',
      message: expect.stringMatching(/^lunch; the drain of n1 has been blocked/) as string,
    });
  });

  it('has an event when that begins, but not for each further drain', () => {
    const first = status();
    see(drainOf('n2', blockedBy('default/db')));
    world.rest();
    const object = { name: 'c1', uid: 'u' };
    expect(eventsOf(object, { ...first, conditions: [] }, first, sha256)).toMatchObject([
      { type: 'Warning', reason: 'DrainBlocked', message: drained(first)?.message },
    ]);
    expect([status()['blocked'], eventsOf(object, first, status(), sha256)]).toEqual([2, []]);
  });

  it('does not affect another rollout', () => {
    see(drainOf('n1', { change: 'c2', ...blockedBy('default/web') }));
    expect(drained(world.rest().rollouts.get('c1')?.status)).toBeUndefined();
  });
});

it('a pool shows which of its nodes have blocked drains, even if nothing else has changed', () => {
  const world = new GatewayWorld()
    .apply('edge', '1', { kind: 'Pool', spec: { content: undefined, path: undefined } })
    .rest();
  const [resource] = [...world.state.resources.values()];
  world.state.pools.set('edge', {
    pool: 'edge',
    members: 3,
    budget: 1,
    unavailable: [],
    waiting: 0,
    gone: false,
  } as Partial<PoolView> as PoolView);
  expect(resource?.id).toBe('Pool/edge');
  const conditionOf = (): string | undefined =>
    world
      .rest()
      .objects.get('File/edge')
      ?.status?.conditions?.find(({ type }) => type === 'Drained')?.reason;
  const before = conditionOf();
  world.state.showDrain(drainOf('n1', blockedBy('default/web')), 0);
  const during = conditionOf();
  world.state.showDrain(drainOf('n1', { state: 'uncordoned' }), 0);
  expect([before, during, conditionOf()]).toEqual([undefined, 'DrainBlocked', undefined]);
});
