import { CHANGES, LEDGER } from '#libs/contracts';
import { connectBus, ensureTopology, Ledger, type Bus } from '#libs/nats';
import { committed, ended, factOf, file, natsFixture } from '#libs/testing';
import { publishRollback, retryChange } from './requests.js';

const DUPLICATE = factOf('config.deduplicated', { change: 'c5', source: 'me', duplicateOf: 'c1' });

describe('a retry', () => {
  const nats = natsFixture();
  let bus: Bus;

  beforeAll(async () => {
    bus = await connectBus({ servers: nats.server.url, name: 'spec' });
    await ensureTopology(bus);
    for (let i = 1; i <= 5; i += 1)
      await bus.publish('config.desired.me', JSON.stringify({ apply: [{ kind: 'File' }], message: `${i}` }));
    await new Ledger(bus).append([committed('c1'), ended('c2', 'superseded'), ended('c3', 'reverted'), DUPLICATE], 0);
  });
  afterAll(() => bus.close());

  const last = async (): Promise<number> => (await bus.streamInfo(CHANGES)).state.last_seq;

  it.each([
    ['c1', 'was committed', 'To undo it, run sluice rollback c1'],
    ['c2', 'was superseded', 'Run sluice apply with the manifests that you want'],
    ['c5', 'repeats c1', 'run sluice retry c1'],
  ])('of %s, which %s, is refused, names the alternative, and publishes nothing', async (change, why, instead) => {
    const before = await last();
    expect(await retryChange(bus, { change, by: 'me' })).toEqual({
      ok: false,
      code: 'conflict',
      message: expect.stringMatching(`^${change} ${why}: .*${instead}$`) as string,
    });
    expect(await last()).toBe(before);
  });

  it('of a change whose fragments later changes touched is refused with these', async () => {
    const before = await last();
    const message = 'later changes touched the same fragments (File/a by c4)';
    expect(await retryChange(bus, { change: 'c3', by: 'me' }, message)).toEqual({
      ok: false,
      code: 'conflict',
      message,
    });
    expect(await last()).toBe(before);
  });

  it.each(['c3', 'c4'])('of %s, which was reverted or is open, publishes it again', async (change) => {
    const next = `c${(await last()) + 1}`;
    expect(await retryChange(bus, { change, by: 'me' })).toEqual({ ok: true, body: { change: next, retryOf: change } });
    const stored = await bus.stored(CHANGES, { seq: Number(next.slice(1)) });
    expect(stored?.subject).toBe('config.desired.me');
    expect(stored?.json()).toEqual({
      apply: [{ kind: 'File' }],
      message: change.slice(1),
      author: 'me',
      retryOf: change,
    });
  });

  it('of a retry names the first change, because the content is as old as that one', async () => {
    const retried = `c${(await last()) + 1}`;
    await bus.publish('config.desired.me', JSON.stringify({ apply: [{ kind: 'File' }], message: '', retryOf: 'c3' }));
    expect(await retryChange(bus, { change: retried, by: 'me' })).toMatchObject({ ok: true, body: { retryOf: 'c3' } });
    expect((await bus.stored(CHANGES, { seq: await last() }))?.json()).toMatchObject({ retryOf: 'c3' });
  });

  it('of a change that was accepted and is no longer in the stream publishes what the ledger says', async () => {
    const change = 'c6';
    const facts = new Ledger(bus);
    const accepted = factOf('config.accepted', {
      change,
      source: 'ci',
      apply: [file('motd', 'hello')],
      delete: [{ kind: 'File', name: 'old' }],
      message: 'm',
      strategy: { maxFailures: 1, maxUnavailable: '2' },
      takeOver: true,
    });
    await facts.append([accepted, ended(change, 'reverted')], await facts.lastSequence());
    await bus.jsm.streams.purge(CHANGES);
    const answer = await retryChange(bus, { change, by: 'me' });
    expect(answer).toMatchObject({ ok: true, body: { retryOf: change } });
    const stored = await bus.stored(CHANGES, { seq: await last() });
    expect([stored?.subject, stored?.json()]).toEqual([
      'config.desired.ci',
      {
        apply: [
          {
            apiVersion: 'sluice.dev/v1alpha1',
            kind: 'File',
            metadata: { name: 'motd' },
            spec: { nodeSelector: {}, path: '/etc/motd', content: 'hello' },
          },
        ],
        delete: [{ kind: 'File', name: 'old' }],
        message: 'm',
        author: 'me',
        strategy: { maxFailures: 1, maxUnavailable: 2 },
        takeOver: true,
        retryOf: change,
      },
    ]);
  });

  it('of an unknown change is refused as not found', async () => {
    expect(await retryChange(bus, { change: 'c999', by: 'me' })).toMatchObject({ ok: false, code: 'not-found' });
  });

  it('of a change that is older than the ledger is refused, because it may have been committed', async () => {
    await bus.publish('config.desired.me', JSON.stringify({ apply: [{ kind: 'File' }] }));
    const change = `c${await last()}`;
    const facts = new Ledger(bus);
    await facts.append([committed(change)], await facts.lastSequence());
    await facts.append([ended('c3', 'reverted')], await facts.lastSequence());
    await bus.jsm.streams.purge(LEDGER, { seq: await facts.lastSequence() });
    expect(await retryChange(bus, { change, by: 'me' })).toMatchObject({ ok: false, code: 'not-found' });
    expect(`c${await last()}`).toBe(change);
  });
});

describe('a rollback', () => {
  const nats = natsFixture();

  it('is published for the source of the change, and takes over what has been given back since', async () => {
    const bus = await connectBus({ servers: nats.server.url, name: 'spec' });
    await ensureTopology(bus);
    const answer = await publishRollback(bus, 'ci', { change: 'c7', by: 'me' });
    expect(answer).toEqual({ ok: true, body: { change: 'c1', rollbackOf: 'c7' } });
    const stored = await bus.stored(CHANGES, { seq: 1 });
    expect([stored?.subject, stored?.json()]).toEqual([
      'config.desired.ci',
      { rollbackOf: 'c7', author: 'me', takeOver: true },
    ]);
    await bus.close();
  });
});
