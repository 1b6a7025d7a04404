import type { FleetClient } from '#libs/client';
import type { NodeProgress } from '#libs/contracts';
import type { Session } from '../connection/session.js';
import { ago, ALL_WELL, changeView, cli, NOW, PLAIN, rolloutView } from '../fakes.fixture.js';
import { status } from './status.js';

const lost = (): Error => Object.assign(new Error('nats://fake does not answer'), { name: 'NoConnectionError' });

/** Watches until every answer was given. */
async function watched(...answers: readonly (Error | readonly string[])[]): Promise<readonly string[]> {
  const printed: string[] = [];
  const end = new AbortController();
  const left = [...answers];
  const list = (bucket: string): Promise<ReadonlyMap<string, object>> => {
    if (bucket !== 'changes') return Promise.resolve(new Map());
    const next = left.shift() ?? [];
    if (left.length === 0) end.abort();
    return next instanceof Error
      ? Promise.reject(next)
      : Promise.resolve(new Map(next.map((change) => [change, changeView({ change, message: '' })])));
  };
  const io = {
    out: (text: string) => void printed.push(text),
    say: (text: string) => void printed.push(text),
    colours: PLAIN,
    isTerminal: false,
    interrupted: end.signal,
    now: () => NOW,
  } as unknown as Session['io'];
  const fleet = { list } as unknown as FleetClient;
  await status({ io, isJson: false, fleet: () => Promise.resolve(fleet) } as unknown as Session, undefined, {
    watch: true,
  });
  return printed;
}

describe('watching the fleet', () => {
  test('goes on when NATS does not answer for a while, and says so once', async () => {
    const printed = await watched(['c1'], lost(), lost(), ['c1'], lost(), ['c2']);
    expect(printed).toEqual([
      expect.stringContaining('c1 '),
      expect.stringMatching(/^warning: nats:\/\/fake does not answer\. What is shown is from before; trying again$/),
      expect.stringMatching(/^warning: /),
      expect.stringContaining('c2 '),
    ]);
  });

  test('ends with the error if nothing ever answered, or if it is another error', async () => {
    await expect(watched(lost(), ['c1'])).rejects.toThrow('does not answer');
    await expect(watched(['c1'], new Error('broken'), ['c1'])).rejects.toThrow('broken');
  });
});

describe('a change that was paused while it waits for its turn', () => {
  const paused = { phase: 'waiting', waitsFor: ['c6'], paused: 'by bob: not now' } as const;
  const views = { changes: { c7: [changeView({ ...paused, nodes: 0, message: '' })] } };

  test.each([
    [['status', 'c7'], 'c7  ⏸ waiting,paused  waits for c6; paused by bob: not now'],
    [['status'], /^c7 +⏸ waiting,paused .*waits for c6; paused by bob: not now$/m],
    [['get', 'changes'], /^c7 +⏸ waiting,paused /m],
    [['why', 'c7'], /^waiting for c6: .*; it is also paused by bob: not now: continue with sluice resume c7$/m],
  ])('is shown as paused by %j', async (argv, words) => {
    expect((await cli(argv, { views })).out).toEqual(
      typeof words === 'string' ? expect.stringContaining(words) : expect.stringMatching(words),
    );
  });

  test('has by whom and why as a field, and is still waiting, for programs', async () => {
    const { out } = await cli(['get', 'changes', 'c7', '-o', 'json'], { views });
    expect(JSON.parse(out)).toMatchObject({ state: 'waiting', paused: 'by bob: not now' });
  });

  test('is not shown as such once its rollout says whether it is paused', async () => {
    const { out } = await cli(['get', 'changes'], { views: { ...views, rollouts: { c7: [rolloutView()] } } });
    expect(out).not.toContain('waiting,paused');
  });
});

test('status lists pools by name for programs, too, and leaves out those that are gone', async () => {
  const pools = Object.fromEntries(
    ['worker', 'gone', 'canary', 'default'].map((pool) => [
      pool,
      [{ ...ALL_WELL, pool, members: 0, gone: pool === 'gone' }],
    ]),
  );
  const { out } = await cli(['status', '-o', 'json'], { views: { pools } });
  const shown = JSON.parse(out) as { readonly pools: readonly { readonly pool: string }[] };
  expect(shown.pools.map(({ pool }) => pool)).toEqual(['canary', 'default', 'worker']);
});

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
