import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Blobs, connectBus, ensureTopology, readAll } from '#libs/nats';
import { connectFleet } from '#libs/client';
import { LEDGER } from '#libs/contracts';
import { until } from '#libs/testing';
import { gatherEvidence } from '../chaos/evidence.js';
import { judge } from '../chaos/oracles/index.js';
import { restless } from '../chaos/quiet.js';
import { startFleetOn, type Fleet } from '../e2e/fleet.js';
import { file, health } from '../e2e/manifests.js';
import { NatsCli } from '../e2e/nats-cli.js';
import type { Files } from '../e2e/node-folders.js';
import { NatsCluster } from './nats-cluster.js';

/** Elections, and consumers that are recreated, take seconds each. */
const QUIET_MS = 90_000;

describe('three nats-servers, three copies of every stream', () => {
  let fleet: Fleet<NatsCluster>;
  const acknowledged = new Map<string, { readonly apply: readonly never[] }>();
  beforeAll(async () => {
    fleet = await startFleetOn(clusterWithSingleCopies, {
      copies: 2,
      groups: 2,
      sizes: [4, 3, 6],
      applyTimeout: '5m',
      env: { SLUICE_REPLICAS: '3' },
    });
    await restartEach();
    // Nodes that are still joining would get what is rolled out by their join, after its commit.
    await quiet();
  }, 180_000);
  afterAll(() => fleet.close(), 60_000);

  const hasVersion =
    (version: string) =>
    (_node: string, files: Files): boolean =>
      files['/etc/app.conf'] === `${version}\n`;

  /** Publishes a version, and waits until a node of each pool is in the middle of it. */
  const begin = async (version: string): Promise<string> => {
    fleet.gate.hold(hasVersion(version));
    const apply = [health(fleet.gate.url), file('app', `${version}\n`)];
    const change = await fleet.apply(...apply);
    acknowledged.set(change, { apply: apply as never[] });
    await until(() => fleet.gate.held.size === 4, 'every unit is in use', QUIET_MS);
    return change;
  };

  const committed = async (change: string, version: string): Promise<void> => {
    fleet.gate.release();
    await until(
      async () => (await fleet.client.get('changes', change).catch(() => undefined))?.phase === 'committed',
      `${change} is committed`,
      QUIET_MS,
    );
    expect(fleet.files()).toEqual(fleet.filesWith(() => ({ '/etc/app.conf': `${version}\n` })));
  };

  const quiet = async (): Promise<void> => {
    let last = '';
    await until(async () => (last = await restless(fleet).catch(String)) === '', 'nothing goes on', QUIET_MS).catch(
      (error: unknown) => {
        throw new Error(`${String(error)}: ${last}`, { cause: error });
      },
    );
  };

  /**
   * As docs/reference/protocol.md says, after the copies became more: a server that is killed before it has noted them
   * answers for a moment as if it had the only copy, when it starts again (nats-server 2.12.15: two acknowledgements
   * for one message).
   */
  const restartEach = async (): Promise<void> => {
    const nats = await NatsCli.of(fleet);
    for (const index of [0, 1, 2]) {
      await until(
        async () => (await copiesOf(nats)).every(({ current }) => current),
        'every copy is up to date',
        QUIET_MS,
      );
      await fleet.server.server(index).stop();
      await fleet.server.server(index).restart();
    }
    await until(
      async () => (await copiesOf(nats)).every(({ current }) => current),
      'every copy is up to date',
      QUIET_MS,
    );
  };

  /** Waits until nothing goes on any more, and has the world judged. */
  const judged = async (): Promise<void> => {
    await quiet();
    expect(judge(await gatherEvidence(fleet, acknowledged, []))).toEqual([]);
  };

  const endWell = async (change: string, version: string): Promise<void> => {
    await committed(change, version);
    await judged();
  };

  test('SLUICE_REPLICAS says how many copies there are of every stream and bucket, also where they had one', async () => {
    const copies = await copiesOf(await NatsCli.of(fleet));
    expect(copies.length).toBeGreaterThan(15);
    expect(copies.filter(({ copies }) => copies !== 3)).toEqual([]);
  }, 60_000);

  test('no fact rests on the id of the one before, which each replica would judge for itself', async () => {
    const bus = await connectBus({ servers: fleet.server.url.split(','), name: 'cluster.spec' });
    try {
      await endWell(await begin('0'), '0');
      const found: string[] = [];
      await readAll(bus, { stream: LEDGER, headersOnly: true, ahead: 1_000 }, ({ subject, headers }) => {
        if (/^node\.lease\.(granted|settled)/.test(subject))
          found.push(headers?.get('Nats-Expected-Last-Msg-Id') ?? '');
      });
      expect(found.length).toBeGreaterThanOrEqual(26);
      expect([...new Set(found)]).toEqual(['']);
    } finally {
      await bus.close();
    }
  }, 240_000);

  test('a config that no server has yet is asked for again before it is taken for absent', async () => {
    const bus = await connectBus({ servers: fleet.server.url.split(','), name: 'cluster.spec' });
    try {
      const blobs = new Blobs(bus);
      const [late, never] = [blobs.config('n1', 'late'), blobs.config('n1', 'never')];
      expect(await fleet.client.config('n1', 'late')).toBeUndefined();
      await blobs.putConfigs([{ node: 'n1', hash: 'late', text: '{}' }]);
      expect([await late, await never]).toEqual(['{}', undefined]);
    } finally {
      await bus.close();
    }
  }, 60_000);

  test('a rollout goes on when any one server is killed in the middle of it', async () => {
    for (const index of [0, 1, 2]) {
      const change = await begin(`without ${index}`);
      fleet.server.server(index).kill();
      await committed(change, `without ${index}`);
      await fleet.server.server(index).restart();
      if (index === 2) await judged();
    }
  }, 300_000);

  test('without a majority all stands still and says so, and goes on by itself when the servers are back', async () => {
    const change = await begin('majority');
    fleet.server.server(0).kill();
    fleet.server.server(1).kill();
    fleet.gate.release();
    await until(
      async () => (await fleet.cli('doctor')).stderr.includes('too few servers of its cluster are up'),
      'doctor says it',
      QUIET_MS,
    );
    for (const args of [['doctor'], ['get', 'nodes'], ['status'], ['delete', 'File', 'app']]) {
      const { code, stderr } = await fleet.cli(...args);
      expect({ args, code, stderr }).toEqual({ args, code: 6, stderr: expect.stringMatching(/does not/) });
    }
    // One that starts meanwhile waits as well.
    await fleet.processes.kill('scheduler');
    fleet.startService('scheduler');
    const log = (name: string): string => readFileSync(join(fleet.data, `${name}.log`), 'utf8');
    await until(() => log('scheduler').includes('scheduler cannot start yet'), 'it waits', QUIET_MS);
    await until(() => /trying again|no sign of life|no longer the leader/.test(log('merger')), 'a service says it');
    expect(fleet.nodes.filter((node) => fleet.folders.files(node)['/etc/app.conf'] === 'majority\n').length).toBe(4);
    await Promise.all([fleet.server.server(0).restart(), fleet.server.server(1).restart()]);
    await endWell(change, 'majority');
    expect(fleet.processes.isRunning('scheduler')).toBe(true);
  }, 300_000);

  test('nothing is decided on the side of a server that is cut off, and all goes on when it is back', async () => {
    const change = await begin('cut off');
    const alone = await connectFleet({ servers: [fleet.server.server(2).url], timeoutMs: 2_000 });
    const others = await connectFleet({
      servers: [fleet.server.server(0).url, fleet.server.server(1).url],
      timeoutMs: 5_000,
    });
    try {
      const before = (await others.inspect()).ledger.last;
      await fleet.server.cutOff(2);
      fleet.gate.release();
      // Clients reach it as before, and it acknowledges nothing.
      await until(
        () =>
          alone.inspect().then(
            () => false,
            (error: Error) => error.message.includes('too few servers of its cluster are up'),
          ),
        'it says that it is alone',
        QUIET_MS,
      );
      await expect(alone.publishChange('alone', JSON.stringify({ apply: [file('alone', 'alone\n')] }))).rejects.toThrow(
        /does not/,
      );
      await fleet.server.mend();
      await endWell(change, 'cut off');
      // A stream that nothing was written to may still be electing its leader.
      await until(
        () =>
          others.inspect().then(
            ({ ledger }) => ledger.last > before,
            () => false,
          ),
        'every stream has a leader again, and the ledger went on',
        QUIET_MS,
      );
      // It was never acknowledged: it may have got through when the routes were mended, and is a change like any other
      // then.
      const late = await fleet.events('config.desired.alone');
      expect(late.length).toBeLessThanOrEqual(1);
      for (const { sequence } of late) expect(await fleet.ended(`c${sequence}`)).toMatchObject({ phase: 'committed' });
      await until(
        async () => (await others.list('changes')).size === (await fleet.events('config.desired.>')).length,
        'every change is known',
      );
    } finally {
      await Promise.all([alone.close(), others.close()]);
    }
  }, 300_000);
});

/** Of every stream and bucket: how many copies it is to have, and whether there are so many that have all. */
async function copiesOf(
  nats: NatsCli,
): Promise<readonly { readonly name: string; readonly copies: number; readonly current: boolean }[]> {
  const names = JSON.parse((await nats.run('stream', 'ls', '-a', '-n', '-j')).stdout) as readonly string[];
  const found: { name: string; copies: number; current: boolean }[] = [];
  for (const name of names) {
    const { config, cluster } = JSON.parse((await nats.run('stream', 'info', name, '-j')).stdout) as StreamDescription;
    const others = cluster.replicas ?? [];
    found.push({
      name,
      copies: config.num_replicas,
      current:
        cluster.leader !== undefined &&
        others.length === config.num_replicas - 1 &&
        others.every(({ current }) => current),
    });
  }
  return found;
}

interface StreamDescription {
  readonly config: { readonly num_replicas: number };
  readonly cluster: { readonly leader?: string; readonly replicas?: readonly { readonly current: boolean }[] };
}

/** As somebody left it who had said nothing of copies. */
async function clusterWithSingleCopies(folder: string): Promise<NatsCluster> {
  const cluster = await NatsCluster.start(folder);
  const bus = await connectBus({ servers: cluster.url.split(','), name: 'cluster.spec' });
  await until(
    () =>
      ensureTopology(bus).then(
        () => true,
        () => false,
      ),
    'the streams are there',
    QUIET_MS,
  );
  const { config } = await bus.streamInfo(LEDGER);
  expect(config.num_replicas).toBe(1);
  await bus.close();
  return cluster;
}
