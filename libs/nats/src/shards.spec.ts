import { SILENT } from '#libs/process';
import { natsFixture, until } from '#libs/testing';
import { connectBus, type Bus } from './connection.js';
import { Journals } from './journals.js';
import { preferred, Shards } from './shards.js';
import { ensureTopology } from './topology.js';

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

/** A copy and the shards that it leads now. */
async function copy(name: string) {
  const bus = await connect();
  const led = new Set<number>();
  const shards = new Shards({
    bus,
    name,
    count: COUNT,
    ttlMs: TTL_MS,
    logger: SILENT,
    onChange: (shard, leads) => void (leads ? led.add(shard) : led.delete(shard)),
  });
  await shards.start();
  return { bus, led, shards };
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
