import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findKubeBinaries, findKubectl, whyNoKubectl, type KubeApi } from '#libs/api-servers';
import { CLUSTER_API_DEFINITIONS, describeOnClusters, establish, until, type LeanCluster } from '#libs/testing';
import { CLUSTER_SPEC, controlPlaneStatus } from '../clusters/hub-fleet.js';
import { Deployments } from '../../cli/src/demo/clusters/deployments.js';
import { Guide, GuideReader, writeKubeconfig } from './guide.js';

const guide = new Guide('docs/guides/clusters.md');
const NAMES = ['prod-1', 'prod-2', 'prod-3'];
const CLUSTERS = '/apis/cluster.x-k8s.io/v1beta2/namespaces/default/clusters';

/** Why a block is not run, by its first words. */
const NOT_RUN: Readonly<Record<string, string>> = {
  'for name in prod-1 prod-2 prod-3; do kind create cluster':
    'kind needs Docker. API servers with the contexts that kind writes stand in for its clusters',
};
const whyNot = (block: string): string | undefined =>
  Object.entries(NOT_RUN).find(([words]) => block.startsWith(words))?.[1];

// The tests are the steps of a reader: each needs those before it.
const why = whyNoKubectl();
if (why !== undefined) test.skip(`the guide of clusters (${why})`, () => undefined);
else
  describeOnClusters('the guide of clusters', 4, (lean) => {
    const reader = new GuideReader();
    const players: Deployments[] = [];
    let prod: readonly LeanCluster[];
    let hub: KubeApi;
    beforeAll(async () => {
      await findKubeBinaries();
      await reader.settle({ kubectl: await findKubectl() });
      const [last] = lean().slice(-1) as [LeanCluster];
      prod = lean().slice(0, NAMES.length);
      hub = last.api;
      const named = new Map(NAMES.map((name, i) => [`kind-${name}`, prod[i] as LeanCluster]));
      writeKubeconfig(reader, named.set('hub', last), 'hub');
      writeFileSync(join(reader.home, 'clusters.yaml'), guide.file('clusters.yaml'));
      // No controllers run here.
      for (const { api } of prod) players.push(new Deployments(api, () => undefined).start());
    }, 20 * 60_000);
    afterAll(async () => {
      for (const player of players) player.stop();
      await reader.leave();
    });

    const blocks = guide.blocks.filter((block) => whyNot(block) === undefined);
    /** Runs the next block, which begins with these words. */
    async function next(words: string): Promise<string> {
      const block = blocks.shift() ?? '';
      expect(block).toContain(words);
      return reader.runBlock(block);
    }
    test('the control plane starts', () => next('sluice up'));

    test('each cluster gets a service account, and a kubeconfig with its token and nothing else', async () => {
      await next('create serviceaccount sluice');
      for (const name of NAMES) {
        const { users } = JSON.parse(
          await reader.sh(`kubectl --kubeconfig ${name}.kubeconfig config view -o json`),
        ) as {
          readonly users: readonly { readonly name: string }[];
        };
        expect(users.map((user) => user.name)).toEqual(['sluice']);
        const who = await reader.sh(
          `kubectl --kubeconfig ${name}.kubeconfig auth whoami -o jsonpath={.status.userInfo.username}`,
        );
        expect(who).toBe('system:serviceaccount:kube-system:sluice');
      }
    });

    test('the applier starts, and the clusters join', async () => {
      await next('sluice applier --targets clusters --inventory clusters.yaml');
      await reader.areReady(...NAMES);
    });

    test('a change is planned, and rolls out to three clusters', async () => {
      const output = await next('sluice get nodes');
      for (const name of NAMES) expect(output).toMatch(new RegExp(`^${name} +.*ready`, 'm'));
      expect(output).toMatch(/committed .*3\/3 applied/);
      for (const [i, { api }] of prod.entries()) {
        const found = await api.get('/api/v1/namespaces/podinfo/configmaps/podinfo');
        expect(found).toMatchObject({ data: { cluster: NAMES[i] } });
        const deployment = await api.get('/apis/apps/v1/namespaces/podinfo/deployments/podinfo');
        expect(deployment?.status).toMatchObject({ readyReplicas: 2 });
      }
    });

    test('an applier reads the clusters of a hub', async () => {
      await establish(hub, CLUSTER_API_DEFINITIONS);
      await hub.create(CLUSTERS, {
        apiVersion: 'cluster.x-k8s.io/v1beta2',
        kind: 'Cluster',
        metadata: { name: 'prod-1' },
        spec: CLUSTER_SPEC,
      });
      await hub.patch(`${CLUSTERS}/prod-1/status`, {
        status: controlPlaneStatus(true),
      });
      await next('deploy/targets/clusters-on-a-hub.yaml');
      await until(
        async () => (await reader.sh('sluice doctor || true')).includes('there is no Secret prod-1-kubeconfig'),
        'the applier misses a Secret',
        120_000,
        500,
      );
    });

    test('a Cluster with a Secret for Sluice joins', async () => {
      await next('kubectl create secret generic prod-1-sluice');
      await reader.areReady('prod-1.default');
    });

    test('the commands after that succeed too, and none was left out without a reason', async () => {
      for (const block of blocks.splice(0)) await reader.runBlock(block);
      expect(guide.blocks.filter((block) => whyNot(block) !== undefined)).toHaveLength(Object.keys(NOT_RUN).length);
    });
  });
