import type { NewFact } from '#libs/contracts';
import { natsFixture, until } from '#libs/testing';
import { connectBus, type Bus } from './connection.js';
import { LedgerTail, type LedgerFollower } from './ledger-tail.js';
import { Ledger } from './ledger.js';
import { StreamReader } from './stream-reader.js';
import { ensureTopology } from './topology.js';

/** More than what is kept for followers that are behind. */
const MANY = 12_000;
const upTo = (last: number, after = 0): number[] => Array.from({ length: last - after }, (_, i) => after + 1 + i);

describe('the end of the ledger, read once', () => {
  const nats = natsFixture();
  const followings: LedgerFollower[] = [];
  let bus: Bus;
  let ledger: Ledger;

  beforeAll(async () => {
    bus = await connectBus({ servers: nats.server.url, name: 'tail' });
    await ensureTopology(bus);
    ledger = new Ledger(bus);
    await append(MANY);
  });
  afterEach(() => {
    for (const following of followings.splice(0)) following.close();
  });
  afterAll(() => bus.close());

  const append = async (count: number): Promise<number> => {
    for (let left = count; left > 0; left -= 1_000) {
      const facts = Array.from({ length: Math.min(left, 1_000) }, (): NewFact => ({ type: 'node.heard', node: 'n1' }));
      expect(await ledger.append(facts, await ledger.lastSequence())).toMatchObject({ outcome: 'appended' });
    }
    return ledger.lastSequence();
  };
  /** A follower and what it received; `hasRoom` is called after each message. */
  const follow = (
    tail: LedgerTail,
    after: number,
    hasRoom: () => boolean = () => true,
  ): { readonly got: number[]; readonly following: LedgerFollower } => {
    const got: number[] = [];
    const following = tail.follow(after, ({ seq }) => {
      got.push(seq);
      return hasRoom();
    });
    followings.push(following);
    return { got, following };
  };
  const consumers = async (): Promise<number> => (await bus.streamInfo('LEDGER')).state.consumer_count;

  it('is delivered to each follower from its own position, completely and in order', async () => {
    const tail = new LedgerTail(bus);
    const places = [0, MANY - 10, 6_000, MANY, 3];
    const all = places.map((after) => ({ after, ...follow(tail, after) }));
    const last = await append(500);
    await until(() => all.every(({ got }) => got.at(-1) === last) || undefined, 'all followers have read everything');
    for (const { after, got } of all) expect(got).toEqual(upTo(last, after));
  });

  it('needs one consumer, however many follow', async () => {
    const tail = new LedgerTail(bus);
    await until(async () => (await consumers()) === 0 || undefined, 'the old consumers are gone');
    const end = await ledger.lastSequence();
    const all = [0, end - 5, end].map((after) => follow(tail, after));
    const last = await append(1);
    await until(() => all.every(({ got }) => got.at(-1) === last) || undefined, 'all followers have read everything');
    await until(async () => (await consumers()) === 1 || undefined, 'only one consumer is left');
  });

  it('does not wait for a follower without room, which catches up later', async () => {
    const tail = new LedgerTail(bus);
    const after = await ledger.lastSequence();
    let isBusy = false;
    const quick = follow(tail, after);
    const slow = follow(tail, after, () => !isBusy);
    await append(1);
    await until(() => (quick.got.length === 1 && slow.got.length === 1) || undefined, 'both follow');
    isBusy = true;
    await append(MANY);
    const last = await ledger.lastSequence();
    await until(() => quick.got.at(-1) === last || undefined, 'the fast follower has read everything');
    expect([slow.got.length, quick.got.length]).toEqual([2, MANY + 1]);
    isBusy = false;
    slow.following.goOn();
    await until(() => slow.got.at(-1) === last || undefined, 'the slow follower has read everything');
    expect([slow.got, quick.got]).toEqual([upTo(last, after), upTo(last, after)]);
  });

  it('is read by each follower from its position if what was read is forgotten', async () => {
    const tail = new LedgerTail(bus);
    const end = await ledger.lastSequence();
    const all = [end - 2_000, end].map((after) => ({ after, ...follow(tail, after) }));
    let last = await append(10);
    await until(() => all.some(({ got }) => got.length > 0) || undefined, 'a message has arrived');
    tail.begin();
    last = await append(10);
    await until(() => all.every(({ got }) => got.at(-1) === last) || undefined, 'all followers have read everything');
    for (const { after, got } of all) expect(got).toEqual(upTo(last, after));
  });

  it('is delivered in order to followers that start over one after another', async () => {
    for (let round = 0; round < 15; round += 1) {
      const tail = new LedgerTail(bus);
      const end = await ledger.lastSequence();
      const before = [follow(tail, end), follow(tail, end)];
      await append(1);
      await until(() => before.every(({ got }) => got.length === 1) || undefined, 'both follow');
      const restarted: ReturnType<typeof follow>[] = [];
      for (const one of before) {
        one.following.close();
        tail.begin();
        restarted.push(follow(tail, end - 50));
        await new Promise((resolve) => setImmediate(resolve)); // the next begins while one is still opening
      }
      const counts = before.map(({ got }) => got.length);
      for (let n = 0; n < 10; n += 1) await append(1);
      const last = await ledger.lastSequence();
      await until(
        () => restarted.every(({ got }) => got.at(-1) === last) || undefined,
        'both followers have read everything',
      );
      for (const { got } of restarted) expect(got).toEqual(upTo(last, end - 50));
      // A closed follower receives nothing more, even if it was about to join.
      expect(before.map(({ got }) => got.length)).toEqual(counts);
      for (const { following } of restarted) following.close();
    }
  });

  it('continues after the reading fails', async () => {
    const opened = jest.spyOn(StreamReader, 'open');
    const { got } = follow(new LedgerTail(bus), await ledger.lastSequence());
    await append(1);
    await until(() => got.length === 1 || undefined, 'it follows');
    // As the client itself does after too many failures.
    const source = (await opened.mock.results[0]?.value) as unknown as {
      readonly current: { readonly messages: { stop(error: Error): void } };
    };
    opened.mockRestore();
    source.current.messages.stop(new Error('it broke'));
    const last = await append(1);
    await until(() => got.at(-1) === last || undefined, 'it continues');
  });

  it('leaves no consumer for a follower that was closed while it read alone', async () => {
    const tail = new LedgerTail(bus);
    await until(async () => (await consumers()) === 0 || undefined, 'the old consumers are gone');
    const end = await ledger.lastSequence();
    const ahead = follow(tail, end + 500); // it has folded more than a restored ledger contains
    await until(async () => (await consumers()) === 1 || undefined, 'it reads');
    const alone = follow(tail, end - 10);
    await until(() => alone.got.at(-1) === end || undefined, 'it has read everything');
    for (const { following } of [ahead, alone]) following.close();
    await until(async () => (await consumers()) === 0 || undefined, 'no consumer is left');
  });

  it('keeps only some of large facts, and none if there is only one follower', async () => {
    const tail = new LedgerTail(bus);
    const after = await ledger.lastSequence();
    const keptBytes = (): number =>
      (tail as unknown as { readonly messages: readonly { readonly data: Uint8Array }[] }).messages.reduce(
        (sum, { data }) => sum + data.length,
        0,
      );
    const [first, second] = [follow(tail, after), follow(tail, after)];
    const large = Array.from({ length: 20 }, (): NewFact => ({
      type: 'node.left',
      node: 'n1',
      because: 'removed',
      by: 'x',
      reason: 'x'.repeat(50_000),
    }));
    for (let n = 0; n < 25; n += 1)
      expect(await ledger.append(large, await ledger.lastSequence())).toMatchObject({ outcome: 'appended' });
    const last = await ledger.lastSequence();
    await until(
      () => (first.got.at(-1) === last && second.got.at(-1) === last) || undefined,
      'both followers have read everything',
    );
    expect(keptBytes()).toBeGreaterThan(1_000_000);
    expect(keptBytes()).toBeLessThan(17 * 2 ** 20);
    second.following.close();
    const next = await append(1);
    await until(() => first.got.at(-1) === next || undefined, 'the message has arrived');
    await until(() => keptBytes() === 0 || undefined, 'no messages are kept');
  });

  it('delivers nothing to a follower that has left, and leaves no consumer behind', async () => {
    const tail = new LedgerTail(bus);
    const after = await ledger.lastSequence();
    const [stays, leaves] = [follow(tail, after), follow(tail, after)];
    const last = await append(1);
    await until(() => (stays.got.length === 1 && leaves.got.length === 1) || undefined, 'both got it');
    leaves.following.close();
    await append(1);
    await until(() => stays.got.length === 2 || undefined, 'the other follower has received the next message');
    expect(leaves.got).toEqual([last]);
    stays.following.close();
    await until(async () => (await consumers()) === 0 || undefined, 'no consumer is left');
  });
});
