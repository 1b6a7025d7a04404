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

  it('is handed over in order, in batches of a few megabytes', async () => {
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
    await until(() => batches.flat().length >= MANY || undefined, 'all have come');
    input.stop();
    expect(batches.flat()).toEqual(Array.from({ length: MANY }, (_, i) => i + 1));
    expect(Math.max(...batches.map((batch) => batch.length))).toBeLessThanOrEqual(4);
  });
});
