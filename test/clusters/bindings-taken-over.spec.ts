import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ApiGate, describeOnClusters, until, type LeanCluster } from '#libs/testing';
import { plainKubeconfig } from '../../services/applier/src/shell/clusters/cluster.fixture.js';
import { bindingChanges } from './binding-changes.js';
import { ClusterFleet } from './cluster-fleet.js';

const CONFIG_MAPS = '/api/v1/namespaces/default/configmaps';
const READS_IT = /^GET .*\/configmaps\/about$/;
const about = { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'default', name: 'about', fieldPath: 'data.region' };
const fragment = {
  apiVersion: 'sluice.dev/v1alpha1',
  kind: 'KubeObjects',
  metadata: { name: 'x' },
  spec: {
    nodeSelector: {},
    bindings: [{ name: 'REGION', object: about }],
    objects: [
      {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: 'x', namespace: 'default' },
        data: { region: '{{ bindings.REGION }}' },
      },
    ],
  },
};

/** Each copy reaches the cluster through a gate of its own, so what it asks shows which one owns the cluster. */
describeOnClusters('two copies of the applier of a cluster with bindings', 1, (lean) => {
  let fleet: ClusterFleet;
  let cluster: LeanCluster;
  const gates = new Map<string, ApiGate>();
  /** The copy that has read the object last. */
  let owner = '';
  let onRead: (name: string) => void = () => undefined;
  beforeAll(async () => {
    [cluster] = lean() as [LeanCluster];
    await cluster.api.create(CONFIG_MAPS, { metadata: { name: 'about' }, data: { region: 'v0' } });
    fleet = await ClusterFleet.start([cluster], { startApplier: false });
    for (const name of ['one', 'two']) {
      const gate = await ApiGate.before(cluster.access);
      gates.set(name, gate);
      gate.onRequest = (line) => {
        if (!READS_IT.test(line)) return;
        owner = name;
        onRead(name);
      };
      writeFileSync(join(fleet.folder, `c-1-by-${name}.kubeconfig`), plainKubeconfig(gate.url));
      fleet.writeInventory(['c-1'], { file: `${name}.yaml`, suffix: `-by-${name}` });
      start(name);
    }
    const joined = async (): Promise<boolean> => (await fleet.client.list('nodes').catch(() => new Map())).has('c-1');
    await until(joined, 'the cluster has joined');
  });
  afterAll(async () => {
    await fleet?.close();
    for (const gate of gates.values()) await gate.close();
  });

  const start = (name: string): void => fleet.startApplier(name, `${name}.yaml`);
  const change = (region: string): Promise<unknown> =>
    cluster.api.patch(`${CONFIG_MAPS}/about`, { data: { region } }, 'somebody');
  const has = async (region: string): Promise<void> => {
    let found: unknown;
    await until(async () => {
      found = await cluster.api.get(`${CONFIG_MAPS}/x`);
      return (found as { readonly data?: { readonly region?: string } } | undefined)?.data?.region === region;
    }, `it has ${region}`).catch((error: Error) => {
      const logs = [...gates.keys()].map((name) => `${name}: ${fleet.log(name)}`).join('\n');
      throw new Error(`${error.message}, but ${JSON.stringify(found)}\n${logs}`);
    });
  };
  const isOver = async (): Promise<boolean> =>
    [...(await fleet.client.list('changes')).values()].every(({ phase }) => phase === 'committed');
  const published: string[] = [];
  const expectPublished = async (from: string, to: string): Promise<void> => {
    published.push(`binding REGION of c-1 changed from "${from}" to "${to}": data.region of ConfigMap default/about`);
    await until(isOver, 'its rollout is over');
    expect(await bindingChanges(fleet.client)).toEqual(published);
  };

  test('one of them publishes a value', async () => {
    const pool = { apiVersion: 'sluice.dev/v1alpha1', kind: 'Pool', metadata: { name: 'all' } };
    // A copy takes a cluster over once the lease of a killed one is over.
    await fleet.ended(await fleet.apply({ ...pool, spec: { nodeSelector: {}, applyTimeout: '20s' } }));
    expect((await fleet.ended(await fleet.apply(fragment))).outcome).toBe('committed');
    await has('v0');
    published.push('binding REGION of c-1 is "v0": data.region of ConfigMap default/about');
    await change('v1');
    await has('v1');
    await expectPublished('v0', 'v1');
  });

  test('it is killed before a value changes: the other one publishes that, once', async () => {
    const killed = owner;
    await fleet.processes.kill(killed);
    await change('v2');
    await has('v2');
    await expectPublished('v1', 'v2');
    expect(owner).not.toBe(killed);
    start(killed);
  });

  test('it is killed when it asks for the new value: the other one publishes that, once', async () => {
    const killed: string[] = [];
    onRead = (name) => {
      if (killed.length > 0) return;
      killed.push(name);
      void fleet.processes.kill(name);
    };
    await change('v3');
    await has('v3');
    await expectPublished('v2', 'v3');
    expect(killed).not.toContain(owner);
    start(killed[0] as string);
  });

  test('it is killed once the value is published: the other one rolls it out, and nobody publishes it again', async () => {
    await change('v4');
    await until(async () => (await bindingChanges(fleet.client)).length > published.length, 'it is published');
    await fleet.processes.kill(owner);
    await has('v4');
    await expectPublished('v3', 'v4');
    await change('v5');
    await has('v5');
    await expectPublished('v4', 'v5');
  });
});
