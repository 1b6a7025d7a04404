import { CHANGES } from '#libs/contracts';
import { SILENT } from '#libs/process';
import { natsFixture, until } from '#libs/testing';
import { connectBus, type Bus } from './connection.js';
import { InputStream } from './input-stream.js';
import { ensureTopology } from './topology.js';

const LARGE = 'x'.repeat(850 * 1024);
const MANY = 24;

describe('an input with large messages', () => {
  const nats = natsFixture();
  let bus: Bus;

  beforeAll(async () => {
    bus = await connectBus({ servers: nats.server.url, name: 'input' });
    await ensureTopology(bus);
    for (let i = 1; i <= MANY; i += 1) await bus.publish('config.desired.me', `${i} ${LARGE}`);
  });
  afterAll(() => bus.close());

  it('is delivered in order, in batches of a few megabytes', async () => {
    const batches: (readonly number[])[] = [];
    const input = new InputStream({
      bus,
      subject: 'config.desired.>',
      source: { stream: CHANGES, from: 'cursor' },
      cursor: 0,
      logger: SILENT,
      handle: async (batch) => {
        batches.push(batch.map(({ text }) => Number(text.split(' ')[0])));
        // More messages arrive during this request.
        await bus.streamInfo(CHANGES);
      },
    });
    input.start();
    await until(() => batches.flat().length >= MANY || undefined, 'all messages have arrived');
    input.stop();
    expect(batches.flat()).toEqual(Array.from({ length: MANY }, (_, i) => i + 1));
    expect(Math.max(...batches.map((batch) => batch.length))).toBeLessThanOrEqual(4);
  });
});

describe('an input of core NATS', () => {
  const nats = natsFixture();
  let bus: Bus;

  beforeAll(async () => {
    bus = await connectBus({ servers: nats.server.url, name: 'input' });
  });
  afterAll(() => bus.close());

  it('receives the subjects of its filters and nothing else', async () => {
    const received: string[] = [];
    const input = new InputStream({
      bus,
      subject: 'node.*.*',
      source: { core: true, filters: ['node.applied.*', 'node.failed.*'] },
      cursor: 0,
      logger: SILENT,
      handle: async (batch) => void received.push(...batch.map(({ subject }) => subject)),
    });
    input.start();
    for (const kind of ['reported', 'applied', 'joined', 'failed']) bus.nc.publish(`node.${kind}.w-1`);
    await until(() => received.includes('node.failed.w-1') || undefined, 'the last message has arrived');
    input.stop();
    expect(received).toEqual(['node.applied.w-1', 'node.failed.w-1']);
  });
});
