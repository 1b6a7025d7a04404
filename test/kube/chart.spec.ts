import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { EDGE_SERVICES, SERVICES } from '#libs/contracts';
import { KINDS, pluralOf } from '#libs/manifests';
import { describeOnKube, findHelm, until, type ApiGate } from '#libs/testing';
import { CHART, linesOf, render, VALUES, type RenderedChart, type Rule } from '../deploy/chart.js';
import { run, startFleet, type Fleet } from '../e2e/fleet.js';
import { file, health, manifest, pool } from '../e2e/manifests.js';
import { describeWith, testWith } from '../e2e/needs.js';
import { ChartInstallation, complaintAbout, labelled, rightsAsked } from './chart-installation.js';

const ALL = [...SERVICES, ...EDGE_SERVICES];
/** The services that use the API server. */
const CLIENTS = ['drain', 'inventory', 'gateway'] as const;
const BUILD_MS = 20 * 60_000;
const PLURALS = KINDS.map(({ name }) => pluralOf(name));
const RBAC = '/apis/rbac.authorization.k8s.io/v1';

describeWith(['helm'], 'the chart', () =>
  describeOnKube('on a real API server', (world) => {
    let helm = '';
    let installation: ChartInstallation;
    let everybody: readonly string[] = [];
    beforeAll(async () => {
      helm = await findHelm();
      installation = new ChartInstallation(helm, world.cluster);
      await world.scene.api.create('/api/v1/namespaces', { metadata: { name: 'sluice' } });
    }, BUILD_MS);

    test.each(Object.entries(VALUES))('the server accepts every object in a dry run: %s', async (_what, values) => {
      const complaints = await Promise.all(
        render(helm, values).map((object) => complaintAbout(world.scene.api, object)),
      );
      expect(complaints.length).toBeGreaterThan(10);
      expect(complaints.filter((complaint) => complaint !== undefined)).toEqual([]);
    });

    test('a dry run detects an unknown field', async () => {
      const [account] = render(helm, {});
      expect(
        await complaintAbout(world.scene.api, {
          ...(account as RenderedChart),
          automountServiceAccountTokens: false,
        } as RenderedChart),
      ).toContain('automountServiceAccountTokens');
    });

    test('it installs, and its pods are created (without a kubelet, none of them runs)', async () => {
      await world.scene.node('plain', { 'kubernetes.io/os': 'linux' });
      await installation.run('install', 'sluice', CHART, '--set', 'webhook.enabled=true');
      const pods = async (): Promise<Readonly<Record<string, number>>> => {
        const all = await world.scene.api.list('/api/v1/namespaces/sluice/pods');
        return Object.fromEntries(
          [...ALL, 'nats', 'applier'].map((component) => [component, labelled(all, component).length]),
        );
      };
      const wanted = { ...Object.fromEntries(ALL.map((name) => [name, 2])), nats: 1, applier: 1 };
      await until(
        async () => JSON.stringify(await pods()) === JSON.stringify(wanted) || undefined,
        'its pods are made',
      );
      expect(JSON.parse(await installation.run('list', '-o', 'json'))).toMatchObject([
        { name: 'sluice', status: 'deployed' },
      ]);
    });

    test('an upgrade keeps the certificate of the webhook, which the API server trusts', async () => {
      const certificates = async (): Promise<readonly unknown[]> => {
        const secret = (await world.scene.api.get('/api/v1/namespaces/sluice/secrets/sluice-webhook')) as unknown as {
          readonly data: Readonly<Record<string, string>>;
        };
        const hook = (await world.scene.api.get(
          '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/sluice-webhook-sluice',
        )) as unknown as { readonly webhooks: readonly { readonly clientConfig: { readonly caBundle: string } }[] };
        return [secret.data['tls.crt'], secret.data['ca.crt'], hook.webhooks[0]?.clientConfig.caBundle];
      };
      const before = await certificates();
      expect(before[1]).toBe(before[2]);
      await installation.run('upgrade', 'sluice', CHART, '--set', 'webhook.enabled=true', '--set', 'logLevel=debug');
      expect(await certificates()).toEqual(before);
      await installation.run('upgrade', 'sluice', CHART);
    });

    /** The rights that the chart gives to a service. */
    const ruled = (service: string): readonly Rule[] =>
      render(helm, {}).find(
        ({ kind, metadata }) => kind === 'ClusterRole' && metadata.labels?.['app.kubernetes.io/component'] === service,
      )?.rules ?? [];

    test.each([
      [
        'drain',
        [
          'get nodes',
          'list nodes',
          'watch nodes',
          'patch nodes',
          'list pods',
          'watch pods',
          'delete pods',
          'create pods/eviction',
          'list poddisruptionbudgets.policy',
          'watch poddisruptionbudgets.policy',
        ],
      ],
      ['inventory', ['list nodes', 'watch nodes']],
      [
        'gateway',
        [
          ...PLURALS.flatMap((plural) => ['list', 'watch', 'patch'].map((verb) => `${verb} ${plural}.sluice.dev`)),
          ...['list', 'watch', 'create', 'delete'].map((verb) => `${verb} rollouts.sluice.dev`),
          ...[...PLURALS, 'rollouts'].map((plural) => `patch ${plural}.sluice.dev/status`),
          'create subjectaccessreviews.authorization.k8s.io',
        ],
      ],
      ['merger', []],
      ['validator', []],
      ['scheduler', []],
      ['nats', []],
      ['applier', []],
    ] as const)('the service account of %s has the rights that it needs, and no others', async (service, must) => {
      if (everybody.length === 0) {
        await world.scene.api.create('/api/v1/namespaces/sluice/serviceaccounts', { metadata: { name: 'nobody' } });
        everybody = await installation.rightsOf('nobody');
      }
      const account = `sluice-${service}`;
      const answers = await Promise.all(
        must.map(
          async (right) =>
            [right, await installation.canI(account, ...(right.split(' ') as [string, string]))] as const,
        ),
      );
      expect(answers.filter(([, allowed]) => !allowed)).toEqual([]);
      expect(await installation.rightsOf(account, everybody)).toEqual([...must].sort());
      expect(await installation.rightsOf(account, everybody, 'default')).toEqual(
        [...must, ...(service === 'gateway' ? ['create events'] : [])].sort(),
      );
      for (const [verb, resource] of [
        ['get', 'secrets'],
        ['create', 'pods'],
        ['update', 'nodes'],
        ['*', '*'],
      ] as const)
        expect([verb, resource, await installation.canI(account, verb, resource)]).toEqual([verb, resource, false]);
    });

    test('the drain service may pause exactly the objects that the values name', async () => {
      await installation.run(
        'upgrade',
        'sluice',
        CHART,
        '--set-json',
        `drain=${JSON.stringify((VALUES['objects to pause'] as { readonly drain: object }).drain)}`,
      );
      const rights: (readonly [verb: string, resource: string, namespace: string, name: string])[] = [
        ['get', 'machineconfigpools.machineconfiguration.openshift.io', '', 'worker'],
        ['patch', 'machineconfigpools.machineconfiguration.openshift.io', '', 'infra'],
        ['patch', 'machinedeployments.cluster.x-k8s.io', 'default', 'edge'],
        ['patch', 'machineconfigpools.machineconfiguration.openshift.io', '', 'master'],
        ['list', 'machineconfigpools.machineconfiguration.openshift.io', '', ''],
        ['delete', 'machineconfigpools.machineconfiguration.openshift.io', '', 'worker'],
        ['patch', 'machinedeployments.cluster.x-k8s.io', 'sluice', 'edge'],
        ['patch', 'machinedeployments.cluster.x-k8s.io', 'default', 'other'],
      ];
      const may = (): Promise<readonly boolean[]> =>
        Promise.all(rights.map((right) => installation.canI('sluice-drain', ...right)));
      // The API server sees new rules a moment later.
      await until(async () => (await may()).slice(0, 3).every(Boolean), 'the rights are granted');
      expect(await may()).toEqual([true, true, true, false, false, false, false, false]);
      await installation.run('upgrade', 'sluice', CHART, '--reset-values');
      await until(async () => !(await may()).some(Boolean), 'the rights are gone');
    });

    testWith(['kubectl'], 'kubectl auth can-i says the same', async () => {
      const kubectl = async (...args: readonly string[]): Promise<string> =>
        (
          await run('kubectl', ['auth', 'can-i', ...args, '--as=system:serviceaccount:sluice:sluice-drain'], {
            env: { ...process.env, KUBECONFIG: world.cluster.kubeconfig },
          })
        ).stdout;
      expect(
        [
          await kubectl('patch', 'nodes'),
          await kubectl('create', 'pods', '--subresource=eviction'),
          await kubectl('create', 'pods'),
          await kubectl('delete', 'nodes'),
        ].map((text) => text.trim()),
      ).toEqual(['yes', 'yes', 'no', 'no']);
      expect(await kubectl('--list')).toMatch(/^nodes +\[\] +\[\] +\[get list watch patch\]$/m);
    });

    describe('with a fleet whose services have the rights of its service accounts', () => {
      let fleet: Fleet;
      const gates = new Map<string, ApiGate>();
      const bindings = CLIENTS.map((service) => `${RBAC}/clusterrolebindings/sluice-sluice-${service}`);
      const taken: object[] = [];
      beforeAll(async () => {
        for (const path of bindings) {
          const {
            metadata: { name, labels },
            ...rest
          } = (await world.scene.api.get(path))!;
          taken.push({ metadata: { name, labels }, ...rest });
          await world.scene.api.remove(path);
        }
        const envOf: Record<string, Record<string, string>> = {};
        for (const service of CLIENTS) {
          const gate = await installation.gateOf(`sluice-${service}`);
          gates.set(service, gate);
          envOf[service] = { KUBECONFIG: await world.cluster.kubeconfigBy(gate.url), SLUICE_LOG: 'info' };
        }
        envOf['gateway'] = { ...envOf['gateway'], SLUICE_DEBOUNCE_SECONDS: '0.3' };
        fleet = await startFleet({ sizes: [1, 0, 0], env: { SLUICE_DRAIN: 'kubernetes' }, envOf });
        for (const node of fleet.nodes) {
          await world.scene.node(node);
          await world.scene.pod(`${node.replaceAll('.', '-')}-web`, { node });
        }
        await fleet.ended(
          await fleet.apply(
            health(fleet.gate.url),
            manifest('DisruptionPolicy', 'drains', { nodeSelector: {}, default: [{ kind: 'drain' }] }),
          ),
        );
      });
      afterAll(async () => {
        await fleet?.close();
        for (const gate of gates.values()) await gate.close();
      });
      afterEach(() => fleet.gate.release());

      const rightLines = (service: string): readonly string[] =>
        readFileSync(join(fleet.data, `${service}.log`), 'utf8')
          .split('\n')
          .filter((line) => line !== '')
          .map((line) => (JSON.parse(line) as { readonly msg: string }).msg);
      const named = (service: string): readonly string[] =>
        rightLines(service).flatMap((line) => /^the permission to (.*) is missing/.exec(line)?.[1] ?? []);
      const back = (service: string): readonly string[] =>
        rightLines(service).flatMap((line) => /^the permission to (.*) was granted/.exec(line)?.[1] ?? []);
      const refusedAgain = (service: string, times: number): Promise<unknown> =>
        until(() => (gates.get(service)?.forbidden.length ?? 0) > times || undefined, `${service} asks again`);
      let change = '';

      test('each service logs a missing right once, and retries', async () => {
        change = await fleet.apply(file('app', 'v1\n', 'edge'));
        const view = await fleet.when('drains', fleet.nodesOf('edge')[0] as string, ({ reason }) =>
          reason.includes('cannot'),
        );
        expect(view.reason).toMatch(
          /^nodes "edge-01.dc1" is forbidden: User "system:serviceaccount:sluice:sluice-drain" cannot get resource "nodes"/,
        );
        fleet.processes.start('inventory-2', ['service', 'inventory'], {
          env: {
            KUBECONFIG: await world.cluster.kubeconfigBy(gates.get('inventory')!.url),
            SLUICE_INVENTORY: 'kubernetes',
          },
        });
        await fleet.processes.stop('inventory');
        fleet.startService('gateway');
        const lacked = {
          drain: ['get nodes', 'list nodes', 'list pods'],
          inventory: ['list nodes'],
          gateway: [...PLURALS, 'rollouts'].map((plural) => `list ${plural}.sluice.dev`),
        };
        for (const [service, log] of [
          ['drain', 'drain'],
          ['inventory', 'inventory-2'],
          ['gateway', 'gateway'],
        ] as const) {
          await until(
            () => lacked[service].every((right) => named(log).includes(right)) || undefined,
            `${service} names what it lacks`,
          );
          await refusedAgain(service, named(log).length * 2);
          expect([...named(log)].sort()).toEqual([...new Set(named(log))].sort());
        }
        expect(named('inventory-2')).toEqual(lacked.inventory);
      });

      test('each continues when the right is granted: the waiting change rolls out, with drains', async () => {
        for (const [i, path] of bindings.entries())
          await world.scene.api.create(path.slice(0, path.lastIndexOf('/')), taken[i] as object);
        expect(await fleet.ended(change)).toMatchObject({ phase: 'committed' });
        for (const node of fleet.nodes) await fleet.when('nodes', node, ({ uid }) => uid !== '');
        // The drain is over, and everything except that node is of no interest any more.
        expect(back('drain')).toContain('get nodes');
        for (const service of ['inventory-2', 'gateway'])
          await until(
            () => named(service).every((right) => back(service).includes(right)) || undefined,
            `${service} has what it lacked`,
          );
      });

      test('no request is refused from then on, and all rights are used', async () => {
        for (const gate of gates.values()) gate.forbidden.length = gate.requests.length = 0;
        for (const service of ['drain', 'inventory-2', 'gateway']) await fleet.processes.stop(service);
        for (const service of ['drain', 'gateway']) fleet.startService(service);
        fleet.processes.start('inventory-3', ['service', 'inventory'], {
          env: {
            KUBECONFIG: await world.cluster.kubeconfigBy(gates.get('inventory')!.url),
            SLUICE_INVENTORY: 'kubernetes',
          },
        });
        const [edge = ''] = fleet.nodesOf('edge');
        // A pod that never ends is deleted, because the pool allows it.
        await world.scene.pod('stubborn', { node: edge, annotations: { 'test/never-ends': '' } });
        await world.scene.budget('held', 'held', 0);
        const { metadata, ...rest } = pool('edge', 2, {
          drainTimeout: '8s',
          drain: { onTimeout: 'force', gracePeriod: '1s' },
        });
        // The pool with that name belongs to the fleet.
        const annotations = { 'sluice.dev/take-over': 'true' };
        const forceful = { ...rest, metadata: { ...metadata, annotations } };
        const api = '/apis/sluice.dev/v1alpha1';
        const apply = (one: ReturnType<typeof file>) =>
          world.scene.api.call(
            'PATCH',
            `${api}/${pluralOf(one.kind)}/${one.metadata.name}?fieldManager=kubectl&force=true`,
            one,
            'application/apply-patch+yaml',
          );
        const ready = (one: ReturnType<typeof file>) =>
          until(
            async () =>
              (await world.scene.api.get(`${api}/${pluralOf(one.kind)}/${one.metadata.name}`))?.status?.['phase'] ===
                'Ready' || undefined,
            `${one.metadata.name} is ready`,
          );
        for (const one of [forceful, file('by-kubectl', 'v1\n', 'edge')]) {
          await apply(one);
          await ready(one);
        }
        for (const node of fleet.nodesOf('edge'))
          expect(fleet.folders.files(node)['/etc/by-kubectl.conf']).toBe('v1\n');
        for (const [service, gate] of gates) expect([service, gate.forbidden]).toEqual([service, []]);
        /** Kinds are alike, so it is enough if one of them was requested. */
        const alike = (rights: readonly string[]): readonly string[] =>
          [
            ...new Set(
              rights.map((right) => PLURALS.reduce((text, plural) => text.replace(` ${plural}.`, ' KIND.'), right)),
            ),
          ].sort();
        const used = (service: string): readonly string[] => alike(rightsAsked(gates.get(service)!.requests));
        expect(used('inventory')).toEqual(alike(linesOf(ruled('inventory'))));
        expect(used('drain')).toEqual(alike(linesOf(ruled('drain'))));
        // Rollouts are deleted only when more than ten have ended.
        expect([...used('gateway'), 'delete rollouts.sluice.dev'].sort()).toEqual(
          alike([...linesOf(ruled('gateway')), 'create events']),
        );
      });
    });

    test('an uninstallation keeps the definitions, and with them every object', async () => {
      await installation.run('uninstall', 'sluice');
      const left = await world.scene.api.list('/apis/apiextensions.k8s.io/v1/customresourcedefinitions');
      expect(left.filter(({ metadata }) => metadata.name.endsWith('.sluice.dev'))).toHaveLength(PLURALS.length + 1);
      expect(await world.scene.api.get(`${RBAC}/clusterroles/sluice-sluice-drain`)).toBeUndefined();
    });
  }),
);
