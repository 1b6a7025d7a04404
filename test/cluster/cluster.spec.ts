import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Blobs, connectBus, ensureTopology, readAll } from '#libs/nats';
import { connectFleet, type FleetClient, type FleetEvent } from '#libs/client';
import { LEDGER } from '#libs/contracts';
import { until } from '#libs/testing';
import { gatherEvidence } from '../chaos/evidence.js';
import { judge } from '../chaos/oracles/index.js';
import { workInProgress } from '../chaos/quiet.js';
import { startFleetOn, type Fleet } from '../e2e/fleet.js';
import { file, health } from '../e2e/manifests.js';
import { NatsCli } from '../e2e/nats-cli.js';
import type { Files } from '../e2e/node-folders.js';
import { NatsCluster } from './nats-cluster.js';

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
    // Nodes that are still joining would get the config when they join, after the commit.
    await quiet();
  });
  afterAll(() => fleet.close());

  const hasVersion =
    (version: string) =>
    (_node: string, files: Files): boolean =>
      files['/etc/app.conf'] === `${version}\n`;

  /** Publishes a version, and waits until a node of each pool is applying it. */
  const begin = async (version: string): Promise<string> => {
    fleet.gate.hold(hasVersion(version));
    const apply = [health(fleet.gate.url), file('app', `${version}\n`)];
    const change = await fleet.apply(...apply);
    acknowledged.set(change, { apply: apply as never[] });
    await until(() => fleet.gate.held.size === 4, 'every unit is in use');
    return change;
  };

  const committed = async (change: string, version: string): Promise<void> => {
    fleet.gate.release();
    await until(
      async () => (await fleet.client.get('changes', change).catch(() => undefined))?.phase === 'committed',
      `${change} is committed`,
    );
    expect(fleet.files()).toEqual(fleet.filesWith(() => ({ '/etc/app.conf': `${version}\n` })));
  };

  const quiet = async (): Promise<void> => {
    let last = '';
    await until(async () => (last = await workInProgress(fleet).catch(String)) === '', 'nothing is in progress').catch(
      (error: unknown) => {
        throw new Error(`${String(error)}: ${last}`, { cause: error });
      },
    );
  };

  /**
   * As described in docs/reference/protocol.md, for the time after the number of copies was increased: if a server is
   * killed before it has stored the new number, it acknowledges for a moment after its restart as if it had the only
   * copy (nats-server 2.12.15: two acknowledgements for one message).
   */
  const restartEach = async (): Promise<void> => {
    for (const index of [0, 1, 2]) {
      await everyCopyCurrent();
      await fleet.server.server(index).stop();
      await fleet.server.server(index).restart();
    }
    await everyCopyCurrent();
  };

  const everyCopyCurrent = async (): Promise<void> => {
    const nats = await NatsCli.of(fleet);
    // A stream that is electing its leader does not answer.
    await until(
      () =>
        copiesOf(nats).then(
          (copies) => copies.every(({ current }) => current),
          () => false,
        ),
      'every copy is up to date',
    );
  };

  /** Waits until nothing is in progress, and runs the oracles. They also read streams that nothing was written to. */
  const judged = async (): Promise<void> => {
    await quiet();
    await everyCopyCurrent();
    expect(judge(await gatherEvidence(fleet, acknowledged, []))).toEqual([]);
  };

  const endWell = async (change: string, version: string): Promise<void> => {
    await committed(change, version);
    await judged();
  };

  test('SLUICE_REPLICAS sets the number of copies of every stream and bucket, also of existing ones', async () => {
    const nats = await NatsCli.of(fleet);
    // A stream that is electing its leader does not answer.
    const copies = await until(() => copiesOf(nats).catch(() => undefined), 'every stream answers');
    expect(copies.length).toBeGreaterThan(15);
    expect(copies.filter(({ copies }) => copies !== 3)).toEqual([]);
  });

  test('no fact relies on the id of the previous fact, which each replica would judge on its own', async () => {
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
  });

  test('a config that no server has yet is requested again before it counts as missing', async () => {
    const bus = await connectBus({ servers: fleet.server.url.split(','), name: 'cluster.spec' });
    try {
      const blobs = new Blobs(bus);
      const { stored } = bus;
      // It arrives after the first request for it has found nothing.
      const first = jest.spyOn(bus, 'stored').mockImplementationOnce(async (...args) => {
        const found = await stored.apply(bus, args);
        await blobs.putConfigs([{ node: 'n1', hash: 'late', text: '{}' }]);
        return found;
      });
      expect(await blobs.config('n1', 'late')).toBe('{}');
      expect(await first.mock.results[0]?.value).toBeNull();
      first.mockRestore();
      expect(await blobs.config('n1', 'never')).toBeUndefined();
    } finally {
      await bus.close();
    }
  });

  test('a rollout continues when any one server is killed during it', async () => {
    for (const index of [0, 1, 2]) {
      const change = await begin(`without ${index}`);
      fleet.server.server(index).kill();
      await committed(change, `without ${index}`);
      await fleet.server.server(index).restart();
      if (index === 2) await judged();
    }
  });

  test('without a majority everything stops and says so, and continues on its own when the servers return', async () => {
    const change = await begin('majority');
    fleet.server.server(0).kill();
    fleet.server.server(1).kill();
    fleet.gate.release();
    await until(
      async () => (await fleet.cli('doctor')).stderr.includes('too few servers of its cluster are up'),
      'doctor says it',
    );
    for (const args of [['doctor'], ['get', 'nodes'], ['status'], ['delete', 'File', 'app']]) {
      const { code, stderr } = await fleet.cli(...args);
      expect({ args, code, stderr }).toEqual({ args, code: 6, stderr: expect.stringMatching(/does not/) });
    }
    const patient = await connectFleet({ servers: [fleet.server.server(2).url], timeoutMs: 120_000 });
    const read = Promise.all([patient.list('nodes'), patient.get('changes', change), firstEvent(patient)]);
    read.catch(() => undefined);
    // A process that is started meanwhile waits too.
    await fleet.processes.kill('scheduler');
    fleet.startService('scheduler');
    const log = (name: string): string => readFileSync(join(fleet.data, `${name}.log`), 'utf8');
    await until(() => log('scheduler').includes('scheduler cannot start yet'), 'it waits');
    await until(
      () => /trying again|no sign of life|no longer the leader/.test(log('merger')),
      'a service logs the lost connection',
    );
    expect(fleet.nodes.filter((node) => fleet.folders.files(node)['/etc/app.conf'] === 'majority\n').length).toBe(4);
    await Promise.all([fleet.server.server(0).restart(), fleet.server.server(1).restart()]);
    // A read that was started without a leader gets its answer from the next one.
    const [nodes, shown, { stream, sequence }] = await read.finally(() => patient.close());
    expect([nodes.size, shown?.change, stream, sequence]).toEqual([fleet.nodes.length, change, 'REPORTS', 1]);
    await endWell(change, 'majority');
    expect(fleet.processes.isRunning('scheduler')).toBe(true);
  });

  test('a server that is cut off decides nothing, and everything continues when it returns', async () => {
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
      // Clients still reach it, but it acknowledges nothing.
      await until(
        () =>
          alone.inspect().then(
            () => false,
            (error: Error) => error.message.includes('too few servers of its cluster are up'),
          ),
        'it says that it is alone',
      );
      await expect(alone.publishChange('alone', JSON.stringify({ apply: [file('alone', 'alone\n')] }))).rejects.toThrow(
        /does not/,
      );
      await fleet.server.restore();
      await endWell(change, 'cut off');
      expect((await others.inspect()).ledger.last).toBeGreaterThan(before);
      // It was never acknowledged. It may have arrived when the routes were restored, and is then a normal change.
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
  });
});

/** The oldest event that the streams have. */
async function firstEvent(client: FleetClient): Promise<FleetEvent> {
  for await (const event of client.events({ follow: false, signal: new AbortController().signal })) return event;
  throw new Error('there is no event');
}

/** For every stream and bucket: the configured number of copies, and whether that many exist and are up to date. */
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

/** A cluster as it is left by somebody who did not configure the number of copies. */
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
  );
  // It may still be electing its leader.
  const { config } = await until(() => bus.streamInfo(LEDGER).catch(() => undefined), 'the ledger has a leader');
  expect(config.num_replicas).toBe(1);
  await bus.close();
  return cluster;
}
