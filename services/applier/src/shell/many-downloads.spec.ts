import { createHash, randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectNodeBus } from '#libs/client';
import { connectBus, ensureTopology, Objects, type Bus } from '#libs/nats/lean';
import { natsFixture } from '#libs/testing';
import { fetchObject } from './object-fetch.js';
import { OriginalStore } from './state/original-store.js';

const MIB = 2 ** 20;
const NODES = 50;
const CONTENT = randomBytes(20 * MIB + 1);
const CHUNK_BYTES = 256 * 1024;
/** For each node. All of the content would be more than 1,000 MiB. */
const MOST_BYTES = MIB;
/** On their way to all nodes of the process. */
const MOST_CHUNKS = 16;

describe('nodes that share a process', () => {
  const nats = natsFixture();
  const folder = mkdtempSync(join(tmpdir(), 'sluice-downloads-'));
  let bus: Bus;

  beforeAll(async () => {
    bus = await connectBus({ servers: nats.server.url, name: 'spec' });
    await ensureTopology(bus);
  });
  afterAll(async () => {
    await bus.close();
    rmSync(folder, { recursive: true });
  });

  it('download the same object at once, over one connection, with at most 16 chunks on their way', async () => {
    const sha256 = createHash('sha256').update(CONTENT).digest('hex');
    await new Objects(bus).put({
      sha256,
      object: 'x.tar',
      bytes: CONTENT.length,
      chunks: async function* (chunkBytes) {
        for (let at = 0; at < CONTENT.length; at += chunkBytes) yield CONTENT.subarray(at, at + chunkBytes);
      },
    });
    /** What each node has requested, and not yet written to its disk. */
    const buffered = new Map<number, number>();
    let underWay = 0;
    const peak = { bytes: 0, chunks: 0, nodes: 0 };

    async function download(node: number): Promise<string> {
      const own = await connectNodeBus({ node: `n${node}`, connection: bus });
      const contents = new OriginalStore(join(folder, String(node)));
      let requestedBytes = 0;
      const trouble = await fetchObject({
        ref: { object: 'x.tar', sha256 },
        contents,
        ask: async (what, ask) => {
          if (what !== 'chunk') return ask(own);
          requestedBytes = Math.min(CONTENT.length, requestedBytes + CHUNK_BYTES);
          buffered.set(node, requestedBytes - statSync(`${contents.pathOf(sha256)}.part`).size);
          underWay += 1;
          peak.bytes = Math.max(peak.bytes, ...buffered.values());
          peak.chunks = Math.max(peak.chunks, underWay);
          peak.nodes = Math.max(peak.nodes, buffered.size);
          return ask(own).finally(() => (underWay -= 1));
        },
        requireSpace: async () => undefined,
        isOver: () => false,
      });
      expect(trouble).toBeUndefined();
      buffered.delete(node);
      await own.close();
      return contents.pathOf(sha256);
    }

    const files = await Promise.all(Array.from({ length: NODES }, (_, node) => download(node)));
    expect(files.map((file) => statSync(file).size)).toEqual(files.map(() => CONTENT.length));
    expect(readFileSync(files.at(-1) as string).equals(CONTENT)).toBe(true);
    expect(peak.nodes).toBe(NODES);
    expect(peak.bytes).toBeLessThanOrEqual(MOST_BYTES);
    expect(peak.chunks).toBeLessThanOrEqual(MOST_CHUNKS);
  });
});
