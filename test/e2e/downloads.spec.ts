import { createHash, randomBytes } from 'node:crypto';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { OBJECTS, objectSubject } from '#libs/contracts';
import { connectBus, type Bus } from '#libs/nats/lean';
import { until } from '#libs/testing';
import { fleetFixture } from './fleet.js';
import { manifest } from './manifests.js';

const NODE = 'edge-01.dc1';
const CHUNK_BYTES = 256 * 1024;
const CHUNKS = 96;

describe('an applier that downloads', () => {
  const stage = fleetFixture({ sizes: [1, 1, 1], own: [NODE], applyTimeout: '2m' });
  let bus: Bus;
  /** The chunks that were requested, in order, as the server hears it. */
  const chunks: number[] = [];

  beforeAll(async () => {
    bus = await connectBus({ servers: stage.fleet.server.url, name: 'spec' });
    bus.nc.subscribe(`$JS.API.DIRECT.GET.${OBJECTS}.blobs.>`, {
      callback: (_, { subject }) => {
        const chunk = subject.split('.').at(-1) ?? '';
        if (/^\d+$/.test(chunk)) chunks.push(Number(chunk));
      },
    });
  });
  afterAll(() => bus.close());

  test('and is killed continues where it was, and the content is right', async () => {
    const { fleet } = stage;
    const content = randomBytes(CHUNKS * CHUNK_BYTES);
    const sha256 = createHash('sha256').update(content).digest('hex');
    const local = join(fleet.data, 'image.bin');
    writeFileSync(local, content);
    expect(await fleet.cli('upload', local)).toMatchObject({ code: 0 });
    // The download cannot end before the applier is killed, however fast it is.
    const last = objectSubject(sha256, CHUNKS - 1);
    await bus.jsm.streams.purge(OBJECTS, { filter: last });

    const path = '/opt/image.bin';
    const image = {
      nodeSelector: { matchLabels: { role: 'edge' } },
      path,
      contentFrom: { object: 'image.bin', sha256 },
    };
    const change = await fleet.apply(manifest('File', 'image', image));
    const originals = join(fleet.folders.state(NODE), 'originals');
    const partBytes = (): number => statSync(join(originals, `${sha256}.part`), { throwIfNoEntry: false })?.size ?? 0;
    await until(() => partBytes() > 2 * CHUNK_BYTES, 'a part is downloaded', undefined, 1);
    await fleet.processes.kill(NODE);
    const whole = Math.floor(partBytes() / CHUNK_BYTES);
    await bus.publish(last, content.subarray(-CHUNK_BYTES));
    chunks.length = 0;
    fleet.startApplier(NODE, 'edge');
    expect(await fleet.ended(change)).toMatchObject({ phase: 'committed' });

    const onNode = readFileSync(join(fleet.folders.root(NODE), path));
    expect(createHash('sha256').update(onNode).digest('hex')).toBe(sha256);
    await until(() => chunks.length >= CHUNKS - whole, 'the server has reported every request');
    expect(chunks).toEqual(Array.from({ length: CHUNKS - whole }, (_, i) => whole + i));
    await until(
      () => statSync(join(originals, sha256), { throwIfNoEntry: false }) === undefined,
      'the copy is deleted',
    );
  });
});
