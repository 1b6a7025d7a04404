import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { rootCertificates } from 'node:tls';
import { describeOnKube, nodePath, podPath, until } from '#libs/testing';
import { Kube, KubeConfigError, KubeError, KubeUnreachableError, type KubeNode } from './index.js';

describeOnKube('an API server', (world) => {
  let kube: Kube;
  beforeAll(async () => {
    kube = await Kube.open({ kubeconfig: world.cluster.kubeconfig });
  });
  afterAll(() => kube.close());

  const nodeOf = async (name: string): Promise<KubeNode> => (await kube.node(name)) as KubeNode;
  const podOf = async (node: string, name: string) => (await kube.podsOn(node)).find((pod) => pod.name === name)!;

  it('reports an untrusted certificate as such, not as no answer', async () => {
    const { server } = world.cluster.access;
    const stranger = await Kube.open({
      kubeconfig: kubeconfig({ server, ca: rootCertificates[0] as string, token: 't' }),
    });
    await expect(stranger.node('n1')).rejects.toThrow(
      `${server} presents a certificate that the CA in the kubeconfig cannot verify: `,
    );
    await stranger.close();
  });

  describe('a Node', () => {
    it('is read in its current state, and is undefined if it does not exist', async () => {
      await world.scene.node('n1', { zone: 'a' });
      expect(await kube.node('n1')).toMatchObject({
        name: 'n1',
        unschedulable: false,
        unschedulableBy: [],
        ready: true,
      });
      expect((await nodeOf('n1')).labels['zone']).toBe('a');
      expect(await kube.node('n0')).toBeUndefined();
    });

    it('shows who cordoned it last', async () => {
      await world.scene.node('n2');
      await kube.writeNode(await nodeOf('n2'), { unschedulable: true, annotations: { 'sluice.dev/cordon': 'x' } });
      expect(await nodeOf('n2')).toMatchObject({
        unschedulable: true,
        unschedulableBy: ['sluice'],
        annotations: { 'sluice.dev/cordon': 'x' },
      });
      await world.scene.uncordon('n2');
      await world.scene.cordon('n2');
      expect(await nodeOf('n2')).toMatchObject({ unschedulable: true, unschedulableBy: ['kubectl'] });
    });

    it('is not changed if someone else changed it after it was read', async () => {
      await world.scene.node('n3');
      const read = await nodeOf('n3');
      await world.scene.api.patch(nodePath('n3'), { metadata: { labels: { touched: 'yes' } } });
      expect(await kube.writeNode(read, { unschedulable: true, annotations: {} })).toBe('overtaken');
      expect(await world.scene.isCordoned('n3')).toBe(false);
      expect(await kube.writeNode(await nodeOf('n3'), { unschedulable: true, annotations: {} })).toBe('written');
      expect(await kube.writeNode(await nodeOf('n3'), { unschedulable: false, annotations: {} })).toBe('written');
      expect(await world.scene.isCordoned('n3')).toBe(false);
    });

    it('is a different Node after it was deleted and created again with the same name', async () => {
      await world.scene.node('n4');
      const read = await nodeOf('n4');
      await world.scene.api.remove(nodePath('n4'));
      expect(await kube.writeNode(read, { unschedulable: true, annotations: {} })).toBe('gone');
      await world.scene.node('n4');
      expect(await kube.writeNode(read, { unschedulable: true, annotations: {} })).toBe('overtaken');
      expect(await world.scene.isCordoned('n4')).toBe(false);
    });
  });

  describe('a pod', () => {
    it('is read with the fields that decide about its eviction', async () => {
      await world.scene.node('p1');
      await world.scene.pod('full', {
        node: 'p1',
        labels: { app: 'full' },
        emptyDir: true,
        resources: ['example.com/nic'],
        graceSeconds: 7,
      });
      await world.scene.pod('lone', { node: 'p1', by: '' });
      await world.scene.pod('daemon', { node: 'p1', by: 'DaemonSet' });
      expect(await podOf('p1', 'full')).toMatchObject({
        namespace: 'default',
        labels: { app: 'full' },
        controller: 'ReplicaSet',
        emptyDir: true,
        resources: ['example.com/nic'],
        graceSeconds: 7,
        mirror: false,
        finished: false,
        ending: false,
      });
      expect(await podOf('p1', 'lone')).toMatchObject({ controller: undefined, emptyDir: false, resources: [] });
      expect((await podOf('p1', 'daemon')).controller).toBe('DaemonSet');
    });

    it('is evicted, but a new pod with its name is not', async () => {
      await world.scene.node('p2');
      await world.scene.pod('a', { node: 'p2' });
      const old = await podOf('p2', 'a');
      expect(await kube.evict(old)).toEqual({ outcome: 'accepted' });
      await until(async () => (await kube.podsOn('p2')).length === 0, 'the pod is gone');
      expect(await kube.evict(old)).toEqual({ outcome: 'gone' });
      await world.scene.pod('a', { node: 'p2' });
      expect(await kube.evict(old)).toEqual({ outcome: 'gone' });
      expect(await kube.delete(old)).toBe('gone');
      expect(await world.scene.podsOn('p2')).toEqual(['a']);
    });

    it('stays if a budget refuses its eviction, and the refusal names the budget and what it allows', async () => {
      await world.scene.node('p3');
      await world.scene.pod('held', { node: 'p3', labels: { app: 'held' } });
      await world.scene.budget('held', 'held', 0);
      const held = await kube.evict(await podOf('p3', 'held'));
      expect(held).toMatchObject({ outcome: 'refused', budgets: [{ name: 'default/held', allowed: 0 }] });
      expect(await world.scene.podsOn('p3')).toEqual(['held']);
      await world.scene.budget('held-too', 'held', 0);
      expect(await kube.evict(await podOf('p3', 'held'))).toMatchObject({
        outcome: 'refused',
        budgets: [{ name: 'default/held' }, { name: 'default/held-too' }],
      });
      expect(await kube.delete(await podOf('p3', 'held'), 0)).toBe('accepted');
      expect(await world.scene.api.get(podPath('held'))).toBeUndefined();
    });

    it('is listed even if the list needs several pages', async () => {
      await world.scene.node('p4');
      const spec = { nodeName: 'p4', containers: [{ name: 'c', image: 'x' }] };
      await Promise.all(
        Array.from({ length: 520 }, (_, i) =>
          world.scene.api.create('/api/v1/namespaces/default/pods', { metadata: { name: `many-${i}` }, spec }),
        ),
      );
      expect((await kube.podsOn('p4')).length).toBe(520);
    });
  });

  it('names the missing right', async () => {
    await world.scene.api.create('/api/v1/namespaces/default/serviceaccounts', { metadata: { name: 'nobody' } });
    const token = (
      (await world.scene.api.create('/api/v1/namespaces/default/serviceaccounts/nobody/token', { spec: {} }))
        .status as { token: string }
    ).token;
    const poor = await Kube.open({
      kubeconfig: kubeconfig({ server: world.cluster.access.server, ca: world.cluster.access.ca, token }),
    });
    const refused = await poor.node('n1').catch((error: unknown) => error as KubeError);
    expect(refused).toMatchObject({ name: 'KubeError', code: 403, reason: 'Forbidden' });
    expect((refused as KubeError).message).toMatch(/nodes "n1" is forbidden: .*nobody.* cannot get resource "nodes"/);
    await poor.close();
  });
});

describe('a kubeconfig', () => {
  const problem = (kubeconfigFile: string): Promise<string> =>
    Kube.open({ kubeconfig: kubeconfigFile, env: {} }).then(
      () => 'none',
      (error: unknown) => (error instanceof KubeConfigError ? error.message : String(error)),
    );

  it('is refused by name if it does not exist, cannot be read or names no cluster', async () => {
    expect(await problem('/nowhere/config')).toBe(
      'the path of the kubeconfig names /nowhere/config, which does not exist',
    );
    expect(await problem(written('clusters: [oops'))).toMatch(/^\S+ cannot be used: /);
    expect(await problem(written(JSON.stringify({ apiVersion: 'v1', kind: 'Config' })))).toMatch(
      /cannot be used|names no cluster/,
    );
  });

  it('is reported as missing if there is none at all', async () => {
    const missing = await Kube.open({ env: { HOME: '/nowhere' } }).catch((error: unknown) => error as Error);
    expect((missing as Error).message).toBe(
      'found no kubeconfig: set KUBECONFIG, create /nowhere/.kube/config, or run in a pod with a service account',
    );
  });

  it('distinguishes an unreachable server from a refusal', async () => {
    const nowhere = await Kube.open({ kubeconfig: kubeconfig({ server: 'http://127.0.0.1:9', ca: '', token: 't' }) });
    await expect(nowhere.node('n1')).rejects.toBeInstanceOf(KubeUnreachableError);
    await expect(nowhere.node('n1')).rejects.toThrow(/^http:\/\/127\.0\.0\.1:9 does not answer: /);
    await nowhere.close();
  });
});

const folders: string[] = [];
afterAll(() => folders.forEach((folder) => rmSync(folder, { recursive: true })));

function written(text: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-kubeconfig-'));
  folders.push(folder);
  writeFileSync(join(folder, 'config'), text);
  return join(folder, 'config');
}

const kubeconfig = ({
  server,
  ca,
  token,
}: {
  readonly server: string;
  readonly ca: string;
  readonly token: string;
}): string =>
  written(
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 't',
      clusters: [
        {
          name: 't',
          cluster: {
            server,
            ...(ca === ''
              ? { 'insecure-skip-tls-verify': true }
              : { 'certificate-authority-data': Buffer.from(ca).toString('base64') }),
          },
        },
      ],
      users: [{ name: 'u', user: { token } }],
      contexts: [{ name: 't', context: { cluster: 't', user: 'u' } }],
    }),
  );
