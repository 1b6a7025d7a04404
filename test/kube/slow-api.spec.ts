import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CORDON_ANNOTATION } from '#libs/contracts';
import { ApiGate, describeOnKube, establish, until, type KubeObject } from '#libs/testing';
import { startFleet, type Fleet } from '../e2e/fleet.js';
import { file, health, manifest, pool } from '../e2e/manifests.js';
import { ROOT } from '../e2e/processes.js';
import { nodeState } from './roll-stage.js';

/** Takes minutes: `npm run test:kube`. */
const isLong = process.env['SLUICE_KUBE_LONG'] !== undefined;
const ANSWER_MS = 5_000;
const PODS_EACH = 3;
const WITHIN_MS = 600_000;
const FILES = '/apis/sluice.dev/v1alpha1/files';
const POLICY = manifest('DisruptionPolicy', 'drains', { nodeSelector: {}, default: [{ kind: 'drain' }] });

if (!isLong) test.skip('an API server that takes 5 s for each answer (minutes: npm run test:kube)', () => undefined);
else
  describeOnKube('an API server that takes 5 s for each answer', (world) => {
    let fleet: Fleet;
    let gate: ApiGate;
    beforeAll(async () => {
      await establish(world.scene.api, join(ROOT, 'deploy/crds'));
      gate = await ApiGate.before(world.cluster.access);
      fleet = await startFleet({
        sizes: [3, 1, 1],
        env: {
          SLUICE_DRAIN: 'kubernetes',
          SLUICE_INVENTORY: 'kubernetes',
          SLUICE_DEBOUNCE_SECONDS: '0.3',
          KUBECONFIG: await world.cluster.kubeconfigBy(gate.url),
        },
      });
      fleet.startService('gateway');
      for (const node of fleet.nodes) {
        await world.scene.node(node);
        for (let i = 0; i < PODS_EACH; i += 1) await world.scene.pod(`${node.replaceAll('.', '-')}-p${i}`, { node });
      }
      await fleet.ended(
        await fleet.apply(health(fleet.gate.url), POLICY, pool('edge', 2), pool('core', 1), pool('rest', 1)),
      );
    });
    afterAll(async () => {
      if (gate !== undefined) gate.mode = { does: 'pass' };
      await fleet?.close();
      await gate?.close();
    });

    const apply = async (content: string): Promise<void> => {
      expect(
        (
          await world.scene.api.call(
            'PATCH',
            `${FILES}/app?fieldManager=kubectl&force=true`,
            file('app', content),
            'application/apply-patch+yaml',
          )
        ).code,
      ).toBeLessThan(300);
    };
    const object = (): Promise<KubeObject | undefined> => world.scene.api.get(`${FILES}/app`);
    const logOf = (name: string): string => readFileSync(join(fleet.data, `${name}.log`), 'utf8');

    test(
      'delays a rollout with drains, its correction and its deletion, loses nothing, and operators see that it is slow',
      async () => {
        const wrong: string[] = [];
        fleet.gate.meanwhile = async (node, files) => {
          if (files['/etc/app.conf'] === undefined) return;
          const now = await nodeState(world.scene, node);
          if (now !== undefined && (!now.cordoned || !now.marked || now.pods > 0))
            wrong.push(`${node} changes: ${JSON.stringify(now)}`);
        };
        gate.mode = { does: 'delay', ms: ANSWER_MS };
        await apply('v1\n');
        await until(
          async () => [...(await fleet.client.list('drains')).values()].some(({ state }) => state === 'draining'),
          'a node is drained',
          WITHIN_MS,
        );
        // The answer to `sluice doctor` names what is slow.
        await until(
          async () => /answers slowly: \d\.\d s to /.test((await fleet.cli('doctor')).stdout),
          'doctor says that it is slow',
          WITHIN_MS,
        );
        await apply('v2\n');
        await until(
          async () => fleet.nodes.every((node) => fleet.folders.files(node)['/etc/app.conf'] === 'v2\n'),
          'every node has it',
          WITHIN_MS,
        );
        await until(
          async () => (await object())?.status?.['phase'] === 'Ready',
          'the object shows the reason',
          WITHIN_MS,
        );
        expect([wrong, fleet.witness.exceeded]).toEqual([[], []]);
        await world.scene.api.remove(`${FILES}/app`);
        await until(async () => (await object()) === undefined, 'the object is gone', WITHIN_MS);
        expect(fleet.nodes.filter((node) => fleet.folders.files(node)['/etc/app.conf'] !== undefined)).toEqual([]);
        await until(
          async () =>
            (await world.scene.api.list('/api/v1/nodes')).every(
              ({ spec, metadata }) =>
                spec?.['unschedulable'] !== true && metadata.annotations?.[CORDON_ANNOTATION] === undefined,
            ),
          'no node is cordoned',
          WITHIN_MS,
        );
        for (const name of ['drain', 'gateway', 'inventory'])
          expect(logOf(name)).not.toMatch(/"level":"(fatal|error)"/);
        expect(logOf('drain')).toMatch(/answers slowly: \d\.\d s to (get|patch|list) /);
        gate.mode = { does: 'pass' };
        await until(
          async () => !(await fleet.cli('doctor')).stdout.includes('answers slowly'),
          'doctor no longer mentions it',
          WITHIN_MS,
        );
      },
      2 * WITHIN_MS,
    );
  });
