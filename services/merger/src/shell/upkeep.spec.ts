import { createHash } from 'node:crypto';
import { CHANGES, CONFIGS, configKey, encodeView, TARGETS } from '#libs/contracts';
import { Blobs, connectBus, ensureTopology, kvStream, kvSubject, Ledger, LedgerService, type Bus } from '#libs/nats';
import { SILENT } from '#libs/process';
import { joined, natsFixture, until } from '#libs/testing';
import { mergerCore, type GatherResult, type Input, type RenderNeed, type State } from '../core/index.js';
import { Upkeep } from './upkeep.js';

const MANIFEST = {
  apiVersion: 'sluice.dev/v1alpha1',
  kind: 'File',
  metadata: { name: 'motd' },
  spec: { nodeSelector: {}, path: '/etc/motd', content: 'hello\n' },
};

describe('the upkeep of a leading merger', () => {
  const nats = natsFixture();
  let bus: Bus;
  let blobs: Blobs;
  let ledger: LedgerService<State, Input, RenderNeed, GatherResult>;
  let upkeep: Upkeep;

  beforeAll(async () => {
    bus = await connectBus({ servers: nats.server.url, name: 'spec' });
    await ensureTopology(bus);
    blobs = new Blobs(bus);
    ledger = new LedgerService(
      { core: mergerCore((text) => createHash('sha256').update(text).digest('hex')) },
      { bus },
    );
    upkeep = new Upkeep(
      bus,
      ledger as unknown as LedgerService<State, Input>,
      { ledgerMs: 0, unreferencedMs: 3_000, cleanupMs: 50, settledMs: 0, keptChangesBytes: 0 },
      SILENT,
    );
    upkeep.onModuleInit();
    await ledger.start();
    await until(() => ledger.leading);
  });
  afterAll(async () => {
    upkeep.onModuleDestroy();
    await ledger.stop();
    await bus.close();
  });

  /** The values of a bucket without a time to live. */
  const kept = async (bucket: string): Promise<readonly string[]> => {
    const subjects = Object.keys(
      (await bus.jsm.streams.info(kvStream(bucket), { subjects_filter: '>' })).state.subjects ?? {},
    );
    const stored = await Promise.all(
      subjects.map(async (subject) => ({
        subject,
        message: await bus.stored(kvStream(bucket), { last_by_subj: subject }),
      })),
    );
    return stored
      .filter(({ message }) => message?.header.get('Nats-TTL') === '')
      .map(({ subject }) => subject.slice(kvSubject(bucket, '').length))
      .toSorted();
  };
  const keys = async (bucket: string): Promise<readonly string[]> =>
    Object.keys((await bus.jsm.streams.info(kvStream(bucket), { subjects_filter: '>' })).state.subjects ?? {})
      .map((subject) => subject.slice(kvSubject(bucket, '').length))
      .toSorted();

  it('keeps what a node has, should have, will get, or a fact refers to, and lets the rest expire', async () => {
    const facts = new Ledger(bus);
    await facts.append([joined('w-1.dc1')], await facts.lastSequence());
    const desired = await until(() => ledger.query((state) => state.desired.get('w-1.dc1')?.hash));
    await ledger.submit({ type: 'published', sequence: 1, source: 'me', text: JSON.stringify(MANIFEST), storedMs: 0 });
    const target = (await until(() => ledger.query((state) => state.targets.get('c1'))))['w-1.dc1'];
    await bus.publish(kvSubject('status', 'w-1_dc1'), encodeView('status', statusOf('w-1.dc1', 'in-force')));
    await blobs.putConfigs(
      ['in-force', 'long-ago'].map((hash) => ({ node: 'w-1.dc1', hash, text: '{"fragments":[]}' })),
    );
    await blobs.putTargets('c9', { 'w-1.dc1': { from: '', to: 'x', recipe: 'r' } });
    const named = [desired, target?.to ?? '', 'in-force'].map((hash) => configKey('w-1.dc1', hash)).toSorted();
    await until(async () => (await keys(CONFIGS)).length <= 3 && (await keys(TARGETS)).length <= 1);
    // What was written before its fact may be marked until the next look.
    await until(async () => (await kept(CONFIGS)).length >= 3 && (await kept(TARGETS)).length >= 1);
    expect([await keys(CONFIGS), await kept(CONFIGS)]).toEqual([named, named]);
    expect(await kept(TARGETS)).toEqual([expect.stringMatching(/^c1\./)]);
  });

  it('deletes the changes that the merger has read, and no other', async () => {
    for (let i = 1; i <= 3; i += 1) await bus.publish('config.desired.me', JSON.stringify(MANIFEST));
    expect(await ledger.query((state) => state.cursor.get())).toBe(1);
    await until(async () => (await bus.streamInfo(CHANGES)).state.first_seq === 2);
    expect((await bus.streamInfo(CHANGES)).state.messages).toBe(2);
  });
});

const statusOf = (node: string, hash: string): Parameters<typeof encodeView<'status'>>[1] => ({
  ledger: 1,
  node,
  incarnation: 1,
  nonce: 1,
  seq: 1,
  hash,
  lease: '',
  verdict: '',
  reason: '',
  restored: false,
  desired: '',
  pool: '',
  deferred: '',
  incompatible: false,
  incompatibleReasons: [],
  drifted: [],
  driftedSince: '',
  failingProbes: [],
  notUndone: [],
  leftovers: [],
  skipped: '',
  change: '',
  leaseLedger: 0,
});
