import { createHash } from 'node:crypto';
import { OBJECTS, objectSubject } from '#libs/contracts';
import { SILENT } from '#libs/process';
import { natsFixture } from '#libs/testing';
import { connectBus, type Bus } from './connection.js';
import { Objects, ObjectStoreFullError, sweepObjects, type NewObject } from './objects.js';
import { ensureTopology } from './topology.js';

const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');
/** Three chunks, the last of them short. */
const CONTENT = Buffer.alloc(600 * 1024, 'some content, ');

const objectOf = (content: Buffer, more: Partial<NewObject> = {}): NewObject => ({
  object: 'x.tar',
  sha256: sha256(content),
  bytes: content.length,
  chunks: async function* (chunkBytes) {
    for (let at = 0; at < content.length; at += chunkBytes) yield content.subarray(at, at + chunkBytes);
  },
  ...more,
});

describe('the object store', () => {
  const nats = natsFixture();
  let bus: Bus;
  let objects: Objects;

  beforeAll(async () => {
    bus = await connectBus({ servers: nats.server.url, name: 'spec' });
    objects = new Objects(bus);
  });
  beforeEach(async () => {
    for await (const { config } of bus.jsm.streams.list()) await bus.jsm.streams.delete(config.name);
    await ensureTopology(bus);
  });
  afterAll(() => bus.close());

  const read = async (hash: string): Promise<Buffer> => {
    const info = await objects.find(hash);
    if (info === undefined) throw new Error(`no object ${hash}`);
    const chunks = Array.from({ length: Math.ceil(info.bytes / info.chunkBytes) }, (_, n) => objects.chunk(hash, n));
    return Buffer.concat((await Promise.all(chunks)).map((chunk) => chunk ?? Buffer.from('missing')));
  };
  const messages = async (): Promise<number> => (await bus.streamInfo(OBJECTS)).state.messages;
  const sweep = (named: readonly string[], unreferencedMs = 0): Promise<number> =>
    sweepObjects({
      bus,
      unreferencedMs,
      readReferences: async () => (hash) => named.includes(hash),
      logger: SILENT,
    });

  it('gives back what was uploaded, in chunks under the sha256 of the content', async () => {
    expect(await objects.put(objectOf(CONTENT))).toBe(true);
    const hash = sha256(CONTENT);
    expect(await read(hash)).toEqual(CONTENT);
    expect(await objects.find(hash)).toMatchObject({ object: 'x.tar', bytes: CONTENT.length });
    const { state } = await bus.jsm.streams.info(OBJECTS, { subjects_filter: '>' });
    expect(Object.keys(state.subjects ?? {}).toSorted()).toEqual([
      `blobs.${hash}.0`,
      `blobs.${hash}.1`,
      `blobs.${hash}.2`,
      `blobs.${hash}.info`,
    ]);
  });

  it('keeps an empty object', async () => {
    await objects.put(objectOf(Buffer.alloc(0)));
    expect(await read(sha256(Buffer.alloc(0)))).toEqual(Buffer.alloc(0));
  });

  it('stores the same content once, whatever its name', async () => {
    await objects.put(objectOf(CONTENT));
    const unread = (): AsyncIterable<Uint8Array> => {
      throw new Error('it must not be read');
    };
    expect(await objects.put(objectOf(CONTENT, { object: 'other', chunks: unread }))).toBe(false);
    expect(await messages()).toBe(4);
    expect((await objects.list()).map(({ object, isWhole }) => ({ object, isWhole }))).toEqual([
      { object: 'x.tar', isWhole: true },
    ]);
  });

  it('stores nothing of a file that was changed while it was uploaded', async () => {
    const changed = { ...objectOf(CONTENT), sha256: 'a'.repeat(64) };
    await expect(objects.put(changed)).rejects.toThrow('the file was changed while it was uploaded');
    expect(await objects.find('a'.repeat(64))).toBeUndefined();
    const both = ['a'.repeat(64), 'b'.repeat(64)];
    expect(await objects.missing(both)).toEqual(new Set(both));
  });

  it('takes an upload that was cut off before', async () => {
    const cut = objectOf(CONTENT, {
      chunks: async function* () {
        yield CONTENT.subarray(0, 256 * 1024);
        throw new Error('cut off');
      },
    });
    await expect(objects.put(cut)).rejects.toThrow('cut off');
    expect(await objects.put(objectOf(CONTENT))).toBe(true);
    expect(await read(sha256(CONTENT))).toEqual(CONTENT);
  });

  it('takes an object again that has lost a chunk', async () => {
    await objects.put(objectOf(CONTENT));
    await bus.jsm.streams.purge(OBJECTS, { filter: objectSubject(sha256(CONTENT), 1) });
    expect(await objects.put(objectOf(CONTENT))).toBe(true);
    expect(await read(sha256(CONTENT))).toEqual(CONTENT);
  });

  it('refuses what exceeds the limit of the stream, which operators may change', async () => {
    await bus.jsm.streams.update(OBJECTS, { max_bytes: 400 * 1024 });
    await ensureTopology(bus);
    await expect(objects.put(objectOf(CONTENT))).rejects.toThrow(ObjectStoreFullError);
    await bus.jsm.streams.update(OBJECTS, { max_bytes: 4 * 2 ** 20 });
    expect(await objects.put(objectOf(CONTENT))).toBe(true);
  });

  it('deletes objects that nothing refers to, and no others', async () => {
    const other = Buffer.alloc(300 * 1024, 'other');
    await objects.put(objectOf(CONTENT));
    await objects.put(objectOf(other));
    expect(await sweep([sha256(other)], 60_000)).toBe(0);
    expect(await sweep([sha256(other)])).toBe(1);
    expect(await objects.find(sha256(CONTENT))).toBeUndefined();
    expect(await read(sha256(other))).toEqual(other);
    expect(await messages()).toBe(3);
  });

  it('does not delete an object that is uploaded again at that moment', async () => {
    await objects.put(objectOf(CONTENT));
    const removed = await sweepObjects({
      bus,
      unreferencedMs: 0,
      readReferences: async () => {
        await objects.put(objectOf(CONTENT));
        return () => false;
      },
      logger: SILENT,
    });
    expect(removed).toBe(0);
    expect(await read(sha256(CONTENT))).toEqual(CONTENT);
  });

  it('ignores messages that others wrote into the stream', async () => {
    await bus.publish(`blobs.${'c'.repeat(64)}.info`, 'not JSON');
    await bus.publish('blobs.x.info', '{"object":"x","bytes":1,"chunkBytes":1,"isWhole":true}');
    expect(await objects.list()).toEqual([]);
    expect(await objects.find('c'.repeat(64))).toBeUndefined();
  });
});
