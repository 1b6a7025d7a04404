import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectFleet, type FleetClient } from '#libs/client';
import type { ChangeView } from '#libs/contracts';
import { startNatsServer, until, type NatsServer } from '#libs/testing';
import { Replica } from '../functions/function-fleet.js';
import { run } from './fleet.js';
import { file, manifest } from './manifests.js';
import { NodeFolders } from './node-folders.js';
import { SERVICES_BESIDE, startOtherScheduler } from './other-scheduler.js';
import { Processes, SLUICE } from './processes.js';

const MACHINES = ['w-1.dc1', 'w-2.dc1', 'w-3'];

describe('the scheduler on the page about the protocol, instead of the one of Sluice', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-other-'));
  const folders = new NodeFolders(folder);
  let server: NatsServer;
  let replica: Replica;
  let client: FleetClient;
  let processes: Processes;
  let env: NodeJS.ProcessEnv;

  beforeAll(async () => {
    mkdirSync(join(folder, 'logs'));
    [server, replica] = await Promise.all([startNatsServer(), Replica.start('cnf-a')]);
    env = { ...process.env, NATS_URL: server.url, NO_COLOR: '1', SLUICE_DRAIN: 'external' };
    processes = new Processes(join(folder, 'logs'), env);
    client = await connectFleet({ servers: [server.url] });
    processes.start('services', ['service', ...SERVICES_BESIDE]);
    const nodes = MACHINES.map((name) => ({ name, labels: { role: 'worker' } }));
    writeFileSync(join(folder, 'nodes.json'), JSON.stringify({ nodes }));
    processes.start('appliers', ['appliers', '--inventory', join(folder, 'nodes.json'), '--data', folder]);
    writeFileSync(join(folder, 'password'), 'secret\n');
    const url = `http://127.0.0.1:${replica.proxy.port}`;
    const functions = [{ name: 'cnf-a', url, labels: { purpose: 'edge' }, passwordFile: 'password' }];
    writeFileSync(join(folder, 'functions.yaml'), JSON.stringify({ functions }));
    const place = ['--inventory', join(folder, 'functions.yaml'), '--state', join(folder, 'remote')];
    processes.start('remote', ['applier', '--targets', 'functions', ...place]);
    const joined = async (): Promise<number> => (await client.list('nodes').catch(() => new Map())).size;
    await until(async () => (await joined()) === MACHINES.length + 1, 'all nodes have joined');
    await startOtherScheduler(processes, folder, server.url);
  });
  afterAll(async () => {
    await processes.stopAll();
    await client.close();
    await Promise.all([replica.close(), server.stop()]);
    rmSync(folder, { recursive: true, force: true });
  });

  async function rolledOut(version: string): Promise<ChangeView> {
    const members = [{ network: 'wan1', metric: 1, weight: Number(version) }];
    const onReplica = { nodeSelector: { matchLabels: { purpose: 'edge' } }, members };
    const apply = [file('motd', version, 'worker'), manifest('Mwan3Policy', 'balanced', onReplica)];
    const change = await client.publishChange('me', JSON.stringify({ apply }), version);
    return until(async () => {
      const view = await client.get('changes', change);
      return view?.endedAt === '' ? undefined : view;
    }, `${change} ends`);
  }

  test.each(['1', '2'])('machines and a network function get change %s, and it is committed', async (version) => {
    expect(await rolledOut(version)).toMatchObject({ phase: 'committed', nodes: 4 });
    for (const node of MACHINES) expect(folders.files(node)).toEqual({ '/etc/motd.conf': version });
    const policies = replica.standIn.config.list('mwan3/v1/policies');
    expect(policies).toMatchObject([{ name: 'balanced', members: [{ weight: version }] }]);
    const { stdout } = await run(process.execPath, [SLUICE, 'get', 'fragments'], { env });
    expect(stdout).toMatch(/^File +motd +c\d+ +me +3\/3/m);
    expect(stdout).toMatch(/^Mwan3Policy +balanced +c\d+ +me +1\/1/m);
  });

  test('the config that a lease assigns to a node can be read in `configs`', async () => {
    const leases = await client.list('leases');
    expect([...leases.keys()].sort()).toEqual(['cnf-a', ...MACHINES]);
    for (const [node, { hash }] of leases) {
      const config = await client.config(node, hash);
      const [entry] = config?.fragments ?? [];
      expect([node, entry?.name]).toEqual([node, node === 'cnf-a' ? 'balanced' : 'motd']);
    }
  });
});
