import { CHANGES } from '#libs/contracts';
import { connectBus, ensureTopology, Ledger, type Bus } from '#libs/nats';
import { committed, ended, natsFixture } from '#libs/testing';
import { retryChange } from './requests.js';

describe('a retry', () => {
  const nats = natsFixture();
  let bus: Bus;

  beforeAll(async () => {
    bus = await connectBus({ servers: nats.server.url, name: 'spec' });
    await ensureTopology(bus);
    for (let i = 1; i <= 4; i += 1)
      await bus.publish('config.desired.me', JSON.stringify({ apply: [{ kind: 'File' }], message: `${i}` }));
    await new Ledger(bus).append([committed('c1'), ended('c2', 'superseded'), ended('c3', 'reverted')], 0);
  });
  afterAll(() => bus.close());

  const last = async (): Promise<number> => (await bus.streamInfo(CHANGES)).state.last_seq;

  it.each([
    ['c1', 'was committed'],
    ['c2', 'was superseded'],
  ])('of %s, which %s, is refused, names the alternatives, and publishes nothing', async (change, why) => {
    const before = await last();
    expect(await retryChange(bus, { change, by: 'me' })).toEqual({
      ok: false,
      code: 'conflict',
      message: expect.stringMatching(
        `^${change} ${why}: .* run sluice apply with the manifests that you want$`,
      ) as string,
    });
    expect(await last()).toBe(before);
  });

  it.each(['c3', 'c4'])('of %s, which was reverted or is open, publishes it again', async (change) => {
    const next = `c${(await last()) + 1}`;
    expect(await retryChange(bus, { change, by: 'me' })).toEqual({ ok: true, body: { change: next, retryOf: change } });
    expect((await bus.stored(CHANGES, { seq: Number(next.slice(1)) }))?.json()).toEqual({
      apply: [{ kind: 'File' }],
      message: change.slice(1),
      author: 'me',
      retryOf: change,
    });
  });

  it('of an unknown change is refused as not found', async () => {
    expect(await retryChange(bus, { change: 'c999', by: 'me' })).toMatchObject({ ok: false, code: 'not-found' });
  });
});
