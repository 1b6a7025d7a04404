import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { CORDON_ANNOTATION, type DrainView } from '#libs/contracts';
import { describeOnKube, establish, nodePath, Scheduler, until } from '#libs/testing';
import { startFleet, type Fleet } from '../e2e/fleet.js';
import { file, health, manifest, pool } from '../e2e/manifests.js';
import { ROOT } from '../e2e/processes.js';
import { LONG_ROLL, SHORT_ROLL, nodeState, Workload } from './roll-stage.js';

/** 30 nodes and 300 pods need minutes: `npm run test:kube`. */
const SHAPE = process.env['SLUICE_KUBE_LONG'] === undefined ? SHORT_ROLL : LONG_ROLL;
const BUDGETS = { edge: 2, core: 1, rest: '10%' } as const;
const POLICY = manifest('DisruptionPolicy', 'drains', { nodeSelector: {}, default: [{ kind: 'drain' }] });
/** Longer than an API server waits for its etcd before it cancels its own requests. */
const ETCD_FROZEN_MS = 4_000;
const KILLED = ['drain', 'drain-2', 'gateway', 'inventory', 'inventory-2'] as const;

describeOnKube(
  `${SHAPE.sizes.reduce((a, b) => a + b)} nodes of three pools with ${SHAPE.podsEach} pods each`,
  (world) => {
    let fleet: Fleet;
    let workload: Workload;
    let scheduler: Scheduler;
    beforeAll(async () => {
      await establish(world.scene.api, join(ROOT, 'deploy/crds'));
      fleet = await startFleet({
        sizes: SHAPE.sizes,
        env: {
          SLUICE_DRAIN: 'kubernetes',
          SLUICE_INVENTORY: 'kubernetes',
          SLUICE_DEBOUNCE_SECONDS: '0.3',
          KUBECONFIG: world.cluster.kubeconfig,
        },
      });
      for (const name of ['drain-2', 'inventory-2', 'gateway']) fleet.startService(name);
      for (const node of fleet.nodes) await world.scene.node(node, { role: roleOf(node) });
      scheduler = new Scheduler(world.scene.api).start();
      workload = new Workload(world.scene.api);
      const replicas = new Map(fleet.pools.map(({ pool: name, nodes }) => [name, nodes.length * SHAPE.podsEach]));
      for (const [app, count] of replicas) await workload.deploy(app, count, count - SHAPE.slack);
      await fleet.ended(
        await fleet.apply(
          health(fleet.gate.url),
          POLICY,
          ...Object.entries(BUDGETS).map(([name, budget]) => pool(name, budget, { drainTimeout: '10m' })),
        ),
      );
      await until(() => workload.isUp(replicas), 'all pods are running and counted by their budgets');
      workload.watch();
    });
    afterAll(async () => {
      scheduler?.stop();
      await workload?.stop();
      await fleet?.close();
    });

    const draining = async (): Promise<readonly DrainView[]> =>
      [...(await fleet.client.list('drains')).values()].filter(({ state }) => state === 'draining');
    const someDrain = (besides: readonly string[] = []): Promise<DrainView> =>
      until(
        async () => (await draining()).find(({ node }) => !besides.includes(node)),
        'a drain is under way',
        SHAPE.withinMs,
      );
    const kill = async (name: string): Promise<void> => {
      await fleet.processes.kill(name);
      fleet.startService(name);
    };

    test(
      'roll with drains while services, the API server and etcd are killed, a Node is recreated, and a person cordons',
      async () => {
        const { cluster, scene } = world;
        // It takes one of the two units of its pool.
        const [mine = ''] = fleet.nodesOf('edge');
        await scene.cordon(mine);
        const remade: string[] = [];
        const wrong: string[] = [];
        let looks = 0;
        fleet.gate.meanwhile = async (node, files) => {
          if (files['/etc/app.conf'] === undefined || remade.includes(node)) return;
          const now = await nodeState(scene, node);
          looks += now === undefined ? 0 : 1;
          if (now !== undefined && (!now.cordoned || !now.marked || now.pods > 0))
            wrong.push(`${node} changes: ${JSON.stringify(now)}`);
        };
        const applied = await scene.api.call(
          'PATCH',
          '/apis/sluice.dev/v1alpha1/files/app?fieldManager=kubectl&force=true',
          file('app', 'v1 on {{ node.name }}\n'),
          'application/apply-patch+yaml',
        );
        expect(applied.code).toBe(201);

        await someDrain();
        for (const name of KILLED.slice(0, 3)) await kill(name);
        await someDrain();
        cluster.killApiServer();
        await kill('inventory');
        await cluster.restartApiServer();
        const { node } = await someDrain([mine]);
        const uid = (await scene.api.get(nodePath(node)))?.metadata.uid;
        remade.push(node);
        await scene.api.remove(nodePath(node));
        await scene.node(node, { role: roleOf(node) });
        cluster.freezeEtcd();
        await sleep(ETCD_FROZEN_MS);
        cluster.thawEtcd();
        await someDrain().catch(() => undefined);
        await cluster.restartEtcd();
        await kill('inventory-2');

        const change = await until(
          async () =>
            [...(await fleet.client.list('changes')).keys()].sort((a, b) => Number(b.slice(1)) - Number(a.slice(1)))[0],
          'the change is known',
        );
        await until(
          async () =>
            ['committed', 'rejected', 'ended'].includes((await fleet.client.get('changes', change))?.phase ?? ''),
          'the change ends',
          SHAPE.withinMs,
        );
        expect(await fleet.client.get('changes', change)).toMatchObject({ phase: 'committed' });
        await until(
          () => fleet.nodes.every((one) => fleet.folders.files(one)['/etc/app.conf'] === `v1 on ${one}\n`),
          'every node has it',
          SHAPE.withinMs,
        );
        const cordoned = async (): Promise<readonly string[]> =>
          (await scene.api.list('/api/v1/nodes'))
            .filter(({ spec }) => spec?.['unschedulable'] === true)
            .map(({ metadata }) => metadata.name);
        await until(
          async () => (await cordoned()).join() === mine,
          'all are given back, but the one that a person cordoned',
          SHAPE.withinMs,
        );
        expect(
          (await scene.api.list('/api/v1/nodes')).filter(
            ({ metadata }) => metadata.annotations?.[CORDON_ANNOTATION] !== undefined,
          ),
        ).toEqual([]);
        expect((await scene.api.get(nodePath(node)))?.metadata.uid).not.toBe(uid);
        expect([wrong, workload.short, fleet.witness.exceeded]).toEqual([[], [], []]);
        expect([looks, workload.looks].every((count) => count > 3)).toBe(true);
        await until(
          async () => (await scene.api.get('/apis/sluice.dev/v1alpha1/files/app'))?.status?.['phase'] === 'Ready',
          'the object shows the reason',
        );
        expect(readFileSync(join(fleet.data, 'drain.log'), 'utf8')).not.toContain('"level":"fatal"');
      },
      SHAPE.withinMs + 120_000,
    );
  },
);

const roleOf = (node: string): string => node.split('-')[0] as string;
