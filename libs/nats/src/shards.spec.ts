import { LEADERS } from '#libs/contracts';
import { SILENT } from '#libs/process';
import { natsFixture, until } from '#libs/testing';
import { connectBus, type Bus } from './connection.js';
import { Journals } from './journals.js';
import { preferred, Shards } from './shards.js';
import { ensureTopology, kvStream, kvSubject } from './topology.js';

const nats = natsFixture();
const TTL_MS = 1_500;
const COUNT = 8;
const buses: Bus[] = [];

beforeAll(async () => ensureTopology(await connect(), { leaderTtlMs: TTL_MS }));
afterAll(async () => void (await Promise.all(buses.map((bus) => bus.close()))));

async function connect(): Promise<Bus> {
  const bus = await connectBus({ servers: [nats.server.url], name: 'spec' });
  buses.push(bus);
  return bus;
}

/** A copy, the shards that it leads now, and those that it has lost. */
async function copy(name: string, bus?: Bus) {
  bus ??= await connect();
  const led = new Set<number>();
  const lost: number[] = [];
  const shards = new Shards({
    bus,
    name,
    count: COUNT,
    ttlMs: TTL_MS,
    logger: SILENT,
    onChange: (shard, leads) => {
      if (leads) return void led.add(shard);
      led.delete(shard);
      lost.push(shard);
    },
  });
  await shards.start();
  return { bus, led, lost, shards };
}

/** The leader keys that the server has. */
async function keysOf(bus: Bus, name: string): Promise<readonly string[]> {
  const filter = kvSubject(LEADERS, `${name}-*`);
  const { state } = await bus.streamInfo(kvStream(LEADERS), { subjects_filter: filter });
  return Object.keys(state.subjects ?? {});
}

/** Calls of this connection wait until it is resumed, as those of a process that is paused. */
function pause(bus: Bus): { readonly resume: () => void } {
  let resume: () => void = () => undefined;
  const paused = new Promise<void>((resolve) => (resume = resolve));
  const { publish, stored, streamInfo } = bus;
  bus.publish = (...call) => paused.then(() => publish.apply(bus, call));
  bus.stored = (...call) => paused.then(() => stored.apply(bus, call));
  bus.streamInfo = (...call) => paused.then(() => streamInfo.apply(bus, call));
  return { resume };
}

describe('shards', () => {
  it('each have one leader; a second copy takes its share, and all when the first stops', async () => {
    const one = await copy('a');
    await until(() => one.led.size === COUNT);
    const two = await copy('a');
    await until(() => two.led.size > 0 && one.led.size + two.led.size === COUNT, 'the shards are shared');
    expect([...one.led].filter((shard) => two.led.has(shard))).toEqual([]);
    await one.shards.stop();
    await until(() => two.led.size === COUNT, 'the other copy leads all shards');
    await two.shards.stop();
  });

  it('of a copy that is killed are led by another one', async () => {
    const one = await copy('b');
    const two = await copy('b');
    await until(() => two.led.size > 0 && one.led.size > 0 && one.led.size + two.led.size === COUNT);
    // Its connection is cut, as after kill -9.
    await one.bus.nc.close();
    await until(() => two.led.size === COUNT, 'the other copy leads all shards');
    await one.shards.stop();
    await two.shards.stop();
  });

  it('stay with a copy whose process hangs until its keys have expired, if there is no other one', async () => {
    const one = await copy('c');
    await until(() => one.led.size === COUNT);
    // The keys are still missing when the process runs again. Nobody else has them.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2 * TTL_MS);
    const keys = await keysOf(one.bus, 'c');
    expect(keys).toEqual([]);
    await until(async () => (await keysOf(one.bus, 'c')).length === COUNT, 'it has all keys again');
    expect([one.lost, one.led.size]).toEqual([[], COUNT]);
    await one.shards.stop();
  });

  it('go to another copy while their leader is paused, which finds that when it continues', async () => {
    const one = await copy('d');
    await until(() => one.led.size === COUNT);
    const { resume } = pause(one.bus);
    const two = await copy('d');
    await until(() => two.led.size === COUNT, 'the other copy leads all shards');
    expect(one.led.size).toBe(COUNT);
    resume();
    await until(() => one.lost.length >= COUNT, 'the copy that hung has found that');
    await until(() => one.led.size > 0 && one.led.size + two.led.size === COUNT, 'they share the shards');
    await one.shards.stop();
    await two.shards.stop();
  });

  it('stay where they are when another copy joins or leaves, except for those of that copy', () => {
    const shards = Array.from({ length: 100 }, (_, shard) => `x-${shard}`);
    const before = shards.map((shard) => preferred(['a', 'b', 'c'], shard));
    const after = shards.map((shard) => preferred(['a', 'b', 'c', 'd'], shard));
    expect(after.filter((copy, i) => copy !== before[i]).every((copy) => copy === 'd')).toBe(true);
    expect(new Set(after)).toEqual(new Set(['a', 'b', 'c', 'd']));
    expect(preferred([], 'x-1')).toBeUndefined();
  });
});

describe('journals', () => {
  it('are replaced only by a write that names their revision', async () => {
    const journals = new Journals(await connect());
    expect(await journals.read('f-1.dc1')).toBeUndefined();
    const first = await journals.write('f-1.dc1', 'one', 0);
    expect(await journals.read('f-1.dc1')).toEqual({ text: 'one', revision: first });
    await expect(journals.write('f-1.dc1', 'two', 0)).rejects.toThrow(/f-1.dc1 is no longer at revision 0/);
    await journals.write('f-1.dc1', 'two', first);
    await expect(journals.write('f-1.dc1', 'three', first)).rejects.toMatchObject({ name: 'OvertakenError' });
    expect((await journals.read('f-1.dc1'))?.text).toBe('two');
  });

  it('are certainly not written without a connection', async () => {
    const bus = await connect();
    const journals = new Journals(bus);
    await bus.close();
    await expect(journals.write('f-2.dc1', 'one', 0)).rejects.toMatchObject({ name: 'NotSentError' });
  });
});
