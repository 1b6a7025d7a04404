import { headers } from '@nats-io/nats-core';
import { CONFIGS, TARGETS } from '#libs/contracts';
import type { SweepResult } from '#libs/engine';
import { SILENT } from '#libs/process';
import { natsFixture, until } from '#libs/testing';
import { sweepBlobs, type SweepOptions } from './blob-sweep.js';
import { Blobs } from './blobs.js';
import { connectBus, type Bus } from './connection.js';
import { readAll } from './stream-reader.js';
import { ensureTopology, kvStream, kvSubject } from './topology.js';

const WEEK_MS = 7 * 24 * 3_600_000;

describe('an unreferenced value', () => {
  const nats = natsFixture();
  let bus: Bus;
  let blobs: Blobs;
  const sweep = (named: readonly string[], more: Partial<SweepOptions> = {}): Promise<SweepResult> =>
    sweepBlobs({
      bus,
      bucket: CONFIGS,
      readReferences: async () => (key) => named.includes(key),
      unreferencedMs: WEEK_MS,
      settledMs: 0,
      logger: SILENT,
      ...more,
    });
  const ttl = async (key: string): Promise<string | undefined> =>
    (await bus.stored(kvStream(CONFIGS), { last_by_subj: kvSubject(CONFIGS, key) }))?.header.get('Nats-TTL');
  const put = (...hashes: readonly string[]): Promise<void> =>
    blobs.putConfigs(hashes.map((hash) => ({ node: 'n1', hash, text: `{"hash":"${hash}"}` })));

  beforeAll(async () => {
    bus = await connectBus({ servers: nats.server.url, name: 'spec' });
    blobs = new Blobs(bus);
  });
  beforeEach(async () => {
    for await (const { config } of bus.jsm.streams.list()) await bus.jsm.streams.delete(config.name);
    await ensureTopology(bus);
  });
  afterAll(() => bus.close());

  it('is marked once and keeps its content, and other values are unchanged', async () => {
    await put('a', 'b');
    expect(await sweep(['n1.a'])).toEqual({ marked: 1, unmarked: 0, looked: 2 });
    expect([await ttl('n1.a'), await ttl('n1.b')]).toEqual(['', String(7 * 24 * 3_600)]);
    expect([await blobs.config('n1', 'a'), await blobs.config('n1', 'b')]).toEqual(['{"hash":"a"}', '{"hash":"b"}']);
    expect(await sweep(['n1.a'])).toEqual({ marked: 0, unmarked: 0, looked: 2 });
  });

  it('is deleted by the server when its time is over, and referenced values are not', async () => {
    await put('a', 'b');
    await sweep(['n1.a'], { unreferencedMs: 1_000 });
    await until(async () => (await blobs.config('n1', 'b')) === undefined);
    expect(await blobs.config('n1', 'a')).toBe('{"hash":"a"}');
    expect(await sweep(['n1.a'])).toEqual({ marked: 0, unmarked: 0, looked: 1 });
  });

  it('stays if a later sweep finds a reference', async () => {
    await put('a');
    await sweep([]);
    expect(await sweep(['n1.a'])).toEqual({ marked: 0, unmarked: 1, looked: 1 });
    expect([await ttl('n1.a'), await blobs.config('n1', 'a')]).toEqual(['', '{"hash":"a"}']);
  });

  it('stays if it is rendered again', async () => {
    await put('a');
    await sweep([]);
    await put('a');
    expect(await ttl('n1.a')).toBe('');
  });

  it('is not marked if it was rendered again during the sweep', async () => {
    await put('a', 'b');
    const swept = await sweep([], {
      readReferences: async () => {
        await put('a');
        return () => false;
      },
    });
    expect(swept).toEqual({ marked: 1, unmarked: 0, looked: 2 });
    expect([await ttl('n1.a'), await ttl('n1.b')]).toEqual(['', expect.stringMatching(/^\d+$/)]);
  });

  it('is left alone while the fact that refers to it may still be written', async () => {
    await put('a');
    expect(await sweep([], { settledMs: 3_600_000 })).toMatchObject({ marked: 0 });
  });

  it('may be in either bucket; an empty bucket and a key that was deleted by hand are accepted', async () => {
    const [key] = await blobs.putTargets('c1', { n1: { from: '', to: 'a', recipe: 'r' } });
    expect(await sweep([], { bucket: TARGETS })).toMatchObject({ marked: 1 });
    expect(await blobs.targets([key as string])).toEqual({ n1: { from: '', to: 'a', recipe: 'r' } });
    expect(await sweep([])).toEqual({ marked: 0, unmarked: 0, looked: 0 });
    await put('a');
    await bus.js.publish(kvSubject(CONFIGS, 'n1.a'), '', { headers: deleted() });
    expect(await sweep([])).toEqual({ marked: 0, unmarked: 0, looked: 0 });
  });

  it('also expires in a bucket that was created before values could', async () => {
    const { config } = await bus.jsm.streams.info(kvStream(CONFIGS));
    await bus.jsm.streams.delete(kvStream(CONFIGS));
    await bus.jsm.streams.add({ ...config, allow_msg_ttl: false });
    await put('a');
    await ensureTopology(bus);
    expect(await sweep([])).toMatchObject({ marked: 1 });
  });

  it('a read to the end finishes, even if the last message was deleted meanwhile', async () => {
    await put('a', 'b');
    const { stored } = bus;
    const before = jest.spyOn(bus, 'stored').mockImplementationOnce(async (...args) => {
      const found = await stored.apply(bus, args);
      await bus.jsm.streams.purge(kvStream(CONFIGS), { filter: kvSubject(CONFIGS, 'n1.b') });
      return found;
    });
    const read: string[] = [];
    await readAll(bus, { stream: kvStream(CONFIGS), lastPerSubject: true }, (message) => read.push(message.subject));
    expect(read).toEqual([kvSubject(CONFIGS, 'n1.a')]);
    before.mockRestore();
  });
});

function deleted(): ReturnType<typeof headers> {
  const head = headers();
  head.set('KV-Operation', 'DEL');
  return head;
}
