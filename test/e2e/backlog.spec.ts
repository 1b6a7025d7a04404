import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectFleet, type FleetClient } from '#libs/client';
import { PROCESSES } from '#libs/process';
import { startNatsServer, until, type NatsServer } from '#libs/testing';
import { file } from './manifests.js';
import { Processes } from './processes.js';

const [SCHEDULER, OTHERS] = PROCESSES.map((services) => services.join('+')) as [string, string];
/** The maximum size of a change. */
const LARGE = 'x'.repeat(850 * 1024);
const NODES = ['a-1', 'b-1', 'b-2'];

/**
 * Publishes many changes while no merger runs. When it starts, it must not block the services in its process: none may
 * lose its leadership, or miss heartbeats.
 */
describe('a backlog of changes', () => {
  const data = mkdtempSync(join(tmpdir(), 'sluice-e2e-backlog-'));
  let server: NatsServer;
  let client: FleetClient;
  let processes: Processes;

  beforeAll(async () => {
    mkdirSync(join(data, 'nats'));
    server = await startNatsServer({ dataDir: join(data, 'nats') });
    client = await connectFleet({ servers: [server.url], timeoutMs: 5_000 });
    processes = new Processes(data, { ...process.env, NATS_URL: server.url, NO_COLOR: '1' });
    const nodes = NODES.map((name) => ({ name, labels: { role: name.slice(0, 1) } }));
    writeFileSync(join(data, 'inventory.json'), JSON.stringify({ nodes }));
    start(SCHEDULER);
    start(OTHERS);
    processes.start('appliers', ['appliers', '--inventory', join(data, 'inventory.json'), '--data', data]);
    await until(
      async () => (await client.list('status').catch(() => undefined))?.size === NODES.length || undefined,
      'every node has reported',
    );
  });
  afterAll(async () => {
    await client?.close().catch(() => undefined);
    await processes?.stopAll();
    await server?.stop();
    rmSync(data, { recursive: true, force: true });
  });

  const start = (name: string, log = name): void => processes.start(log, ['service', ...name.split('+')]);
  const publish = async (...manifests: readonly object[]): Promise<string> =>
    client.publishChange('e2e', JSON.stringify({ apply: manifests }), `${manifests.length}:${published++}`);
  let published = 0;

  /** Stops the process, publishes, starts it again, and waits until all changes are committed. Returns its new log. */
  async function afterBacklog(
    log: string,
    previous: string,
    publish: () => Promise<readonly string[]>,
  ): Promise<string> {
    await processes.stop(previous);
    const changes = await publish();
    start(OTHERS, log);
    await until(async () => {
      const views = await client.list('changes').catch(() => undefined);
      const ends = changes.map((change) => views?.get(change)?.phase);
      return ends.every((phase) => phase === 'committed') || undefined;
    }, 'all are committed');
    // Not every service is needed for that.
    await until(() => electionsIn(readLog(log)).length >= ONE_EACH.length, 'every service has had an election');
    return readLog(log);
  }
  const readLog = (log: string): string => readFileSync(join(data, `${log}.log`), 'utf8');
  const electionsIn = (log: string): readonly string[] =>
    log
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line) as { readonly msg: string; readonly service?: string })
      .flatMap(({ msg, service }) => (/^leads( no more)?$/.test(msg) ? [`${service} ${msg}`] : []))
      .toSorted();
  const ONE_EACH = OTHERS.split('+')
    .map((service) => `${service} leads`)
    .toSorted();

  test('of 850 KB each is committed without a change of leaders, and without silent nodes', async () => {
    const log = await afterBacklog('large', OTHERS, async () => {
      const changes: string[] = [];
      for (let i = 0; i < 40; i += 1)
        changes.push(await publish(file(`large-${i}`, `${i} ${LARGE}`, i === 0 ? 'a' : 'nobody')));
      return changes;
    });
    expect(electionsIn(log)).toEqual(ONE_EACH);
    expect((await client.list('fragments')).size).toBe(40);
    expect([...(await client.list('nodes')).values()].map(({ state }) => state)).toEqual(NODES.map(() => 'ready'));
  });

  test('of 300 small changes is committed without a change of leaders', async () => {
    const log = await afterBacklog('small', 'large', async () => {
      const changes: string[] = [];
      // Ten of them share nodes, and wait for each other.
      for (let i = 0; i < 300; i += 1)
        changes.push(await publish(file(`small-${i}`, `${i}`, i % 30 === 0 ? 'b' : `nobody-${i}`)));
      return changes;
    });
    expect(electionsIn(log)).toEqual(ONE_EACH);
  });
});
