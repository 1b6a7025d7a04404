import { connect } from 'node:net';
import { decodeReport, REPORTS } from '#libs/contracts';
import { SILENT } from '#libs/process';
import { natsFixture } from '#libs/testing';
import { Blobs } from './blobs.js';
import { connectBus, type Bus } from './connection.js';
import { connectFleet } from '#libs/client';
import { Ledger } from './ledger.js';
import { Poison } from './poison.js';
import { newestSnapshot, putSnapshot } from './snapshots.fixture.js';
import { Snapshots } from './snapshots.js';
import { busMessage, type BusMessage } from './messages.js';
import { readAll } from './stream-reader.js';
import { ensureTopology, kvSubject, POISON } from './topology.js';

/** Sends what the client library would refuse to send: a header with a name that is not ASCII. */
function publishRaw(url: string, subject: string, body: string): Promise<void> {
  const { hostname, port } = new URL(url);
  const head = 'NATS/1.0\r\nünïcode: ✓\r\n\r\n';
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname);
    socket.on('error', reject);
    socket.on('data', (chunk) => {
      if (!chunk.toString().includes('PONG')) return;
      socket.destroy();
      resolve();
    });
    socket.write(
      `CONNECT {"verbose":false,"headers":true}\r\nHPUB ${subject} ${Buffer.byteLength(head)} ${Buffer.byteLength(head + body)}\r\n${head}${body}\r\nPING\r\n`,
    );
  });
}

describe('hostile input', () => {
  const nats = natsFixture();
  let bus: Bus;

  beforeAll(async () => {
    bus = await connectBus({ servers: nats.server.url, name: 'spec' });
    await ensureTopology(bus);
  });
  afterAll(() => bus.close());

  const messages = async (stream: string): Promise<BusMessage[]> => {
    const found: BusMessage[] = [];
    await readAll(bus, { stream }, (message) => found.push(busMessage(message)));
    return found;
  };

  test('an unreadable header hides neither its message nor later ones', async () => {
    await publishRaw(nats.server.url, 'node.applied.x', '{"a":1}');
    await bus.publish('node.applied.y', '{}');
    expect(await messages(REPORTS)).toMatchObject([
      { subject: 'node.applied.x', text: '{"a":1}', headers: {} },
      { subject: 'node.applied.y', headers: {} },
    ]);
  });

  test('a value with an unreadable header is still read', async () => {
    const hash = 'ab'.repeat(32);
    await publishRaw(nats.server.url, kvSubject('configs', `x.${hash}`), '{"fragments":[]}');
    expect(await new Blobs(bus).config('x', hash)).toBe('{"fragments":[]}');
  });

  test('an error that quotes a whole message is set aside with the beginning of the quote', async () => {
    const poison = new Poison(bus, SILENT);
    const node = '"'.repeat(400_000);
    const message = { subject: 'node.applied.x', sequence: 7, text: JSON.stringify({ node }), time: '', headers: {} };
    expect(await poison.decoded(REPORTS, [message], ({ subject, text }) => decodeReport(subject, text))).toEqual([]);
    const text = (await bus.stored('KV_poison', { last_by_subj: kvSubject(POISON, 'REPORTS.7') }))?.string() ?? '';
    expect(JSON.parse(text)).toMatchObject({
      stream: 'REPORTS',
      sequence: 7,
      subject: 'node.applied.x',
      reason: expect.stringMatching(/^.{1,1000}$/s) as string,
    });
  });

  test('a foreign message next to the poison hides none of it', async () => {
    await bus.publish(kvSubject(POISON, 'foreign'), 'not JSON');
    await bus.publish(kvSubject(POISON, 'other'), '{"stream":7}');
    const fleet = await connectFleet({ servers: [nats.server.url] });
    expect((await fleet.inspect()).poison).toMatchObject([{ stream: 'REPORTS', sequence: 7 }]);
    await fleet.close();
  });

  test('snapshots that are not snapshots are skipped and overwritten', async () => {
    const snapshots = new Snapshots(bus);
    const newest = () => newestSnapshot(snapshots, 'merger');
    await putSnapshot(snapshots, { service: 'merger', version: 1 }, { sequence: 5, state: { a: 1 } });
    await bus.publish(`$O.snapshots.M.${Buffer.from('merger.v1.b').toString('base64')}`, 'not JSON');
    expect(await newest()).toMatchObject({ sequence: 5, state: { a: 1 } });
    const info =
      (
        await bus.stored('OBJ_snapshots', {
          last_by_subj: `$O.snapshots.M.${Buffer.from('merger.v1.a').toString('base64')}`,
        })
      )?.string() ?? '{}';
    const { nuid } = JSON.parse(info) as { nuid: string };
    expect(nuid).not.toBe('');
    await bus.publish(
      `$O.snapshots.M.${Buffer.from('merger.v1.a').toString('base64')}`,
      info.replace('"sequence":"5"', '"sequence":"many"'),
    );
    expect(await newest()).toBeUndefined();
    await putSnapshot(snapshots, { service: 'merger', version: 1 }, { sequence: 6, state: { a: 2 } });
    expect(await newest()).toMatchObject({ sequence: 6, state: { a: 2 } });
  });

  test('a fact is void only if it was declared void after it was appended', async () => {
    const ledger = new Ledger(bus);
    const next = (await ledger.lastSequence()) + 2;
    await bus.publish(`ledger.voided.${next}`, '{}');
    await bus.publish('node.heard.x', '{}');
    expect([await ledger.lastSequence(), await ledger.isVoided(next)]).toEqual([next, false]);
    await bus.publish(`ledger.voided.${next}`, '{}');
    expect(await ledger.isVoided(next)).toBe(true);
  });
});
