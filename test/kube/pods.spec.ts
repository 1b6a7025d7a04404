import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { get } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectFleet, type FleetClient } from '#libs/client';
import { freePort } from '#libs/process';
import { describeOnKube, establish, findHelm, until, startNatsServer, type NatsServer } from '#libs/testing';
import { render, ROOT, type RenderedChart } from '../deploy/chart.js';
import { file, manifest } from '../e2e/manifests.js';
import { describeWith } from '../e2e/needs.js';
import { ChartInstallation } from './chart-installation.js';
import { PodProcess } from './pod-process.js';

const BUILD_MS = 20 * 60_000;
const SERVICES = ['merger', 'validator', 'scheduler', 'drain', 'inventory', 'gateway'] as const;

/**
 * Runs without a kubelet and images: the same programs, with the user, capabilities, environment and mounts of the
 * chart's templates.
 */
describeWith(['helm', 'mount-namespaces'], 'the processes of the chart', () =>
  describeOnKube('as its pods would run them', (world) => {
    const folder = mkdtempSync(join(tmpdir(), 'sluice-pods-'));
    const pods = new Map<string, PodProcess>();
    const ports = new Map<string, number>();
    let server: NatsServer;
    let client: FleetClient;
    let objects: readonly RenderedChart[];
    let admission: { readonly port: number; readonly ca: string };
    beforeAll(async () => {
      await establish(world.scene.api, join(ROOT, 'deploy/crds'));
      await world.scene.api.create('/api/v1/namespaces', { metadata: { name: 'sluice' } });
      await world.scene.node('worker', { role: 'edge' });
      server = await startNatsServer({ dataDir: join(folder, 'nats') });
      client = await connectFleet({ servers: [server.url], timeoutMs: 5_000 });
      const helm = await findHelm();
      const services: Record<string, object> = {};
      for (const service of SERVICES) {
        ports.set(service, await freePort());
        services[service] = { env: { SLUICE_HEALTH_PORT: ports.get(service) } };
      }
      // Its secret is mounted somewhere else, because the mount point cannot be created in the root folder.
      const [tls, webhook] = [join(folder, 'tls'), await freePort()];
      services['gateway'] = {
        env: {
          SLUICE_HEALTH_PORT: ports.get('gateway'),
          SLUICE_WEBHOOK_PORT: webhook,
          SLUICE_WEBHOOK_CERT_FILE: join(tls, 'tls.crt'),
          SLUICE_WEBHOOK_KEY_FILE: join(tls, 'tls.key'),
        },
      };
      objects = render(helm, {
        nats: { embedded: { enabled: false }, url: server.url },
        services,
        gateway: { debounceSeconds: 0.2 },
        webhook: { enabled: true },
      });
      mkdirSync(tls);
      chmodSync(folder, 0o755);
      for (const [name, text] of Object.entries(objects.find(({ kind }) => kind === 'Secret')?.data ?? {}))
        writeFileSync(join(tls, name), Buffer.from(text, 'base64'));
      admission = { port: webhook, ca: readFileSync(join(tls, 'ca.crt'), 'utf8') };
      const installation = new ChartInstallation(helm, world.cluster);
      for (const object of objects.filter(({ kind }) =>
        /^(ServiceAccount|ClusterRole|ClusterRoleBinding|Role|RoleBinding)$/.test(kind),
      ))
        await installation.apply(object);
      for (const name of [...SERVICES, 'applier']) await start(name, await installation.tokenOf(`sluice-${name}`));
    }, BUILD_MS);
    afterAll(async () => {
      await client?.close();
      for (const pod of pods.values()) await pod.stop();
      await server?.stop();
      rmSync(folder, { recursive: true, force: true });
    });

    async function start(name: string, token: string): Promise<void> {
      const workload = objects.find(
        ({ kind, metadata }) =>
          /^(Deployment|DaemonSet)$/.test(kind) && metadata.labels?.['app.kubernetes.io/component'] === name,
      ) as RenderedChart;
      const entry = name === 'applier' ? ['dist/services/applier/src/main.js'] : ['bin/sluice'];
      mkdirSync(join(folder, name));
      pods.set(
        name,
        new PodProcess(workload, {
          folder: join(folder, name),
          node: 'worker',
          token,
          cluster: world.cluster,
          entry,
        }).start(),
      );
    }

    test.each(SERVICES)('%s runs without root and without write access, and becomes ready', async (service) => {
      const get = async (path: string): Promise<number> =>
        (await fetch(`http://127.0.0.1:${ports.get(service)}${path}`)).status;
      await until(
        async () => (await get('/readyz').catch(() => 0)) === 200 || undefined,
        `${service} is ready: ${pods.get(service)?.output}`,
      );
      expect(await get('/healthz')).toBe(200);
      expect(pods.get(service)?.output).not.toMatch(
        /EROFS|EACCES|EPERM|the permission to .* is missing|"level":"error"/,
      );
    });

    test("the webhook answers clients that trust the chart's authority, under the name of its Service", async () => {
      const hook = objects.find(({ kind }) => kind === 'ValidatingWebhookConfiguration') as unknown as {
        readonly webhooks: readonly {
          readonly clientConfig: {
            readonly caBundle: string;
            readonly service: { readonly name: string; readonly namespace: string };
          };
        }[];
      };
      const { caBundle, service } = hook.webhooks[0]!.clientConfig;
      expect(Buffer.from(caBundle, 'base64').toString()).toBe(admission.ca);
      const request = (servername: string): Promise<number | string> =>
        new Promise((resolve) => {
          get(
            { host: '127.0.0.1', port: admission.port, path: '/healthz', ca: admission.ca, servername, agent: false },
            (answer) => resolve(answer.resume().statusCode ?? 0),
          ).once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
        });
      await until(
        async () => (await request(`${service.name}.${service.namespace}.svc`)) === 200 || undefined,
        `it answers: ${pods.get('gateway')?.output}`,
      );
      expect(await request('another.sluice.svc')).toBe('ERR_TLS_CERT_ALTNAME_INVALID');
    });

    test('an applied object reaches the node, with an applier that has only the capabilities and folders for files', async () => {
      const apply = async (one: ReturnType<typeof file>, plural: string) => {
        const { code, body } = await world.scene.api.call(
          'PATCH',
          `/apis/sluice.dev/v1alpha1/${plural}/${one.metadata.name}?fieldManager=kubectl`,
          one,
          'application/apply-patch+yaml',
        );
        if (code >= 300) throw new Error(JSON.stringify(body));
      };
      const phaseOf = async (name: string): Promise<unknown> =>
        (await world.scene.api.get(`/apis/sluice.dev/v1alpha1/files/${name}`))?.status?.['phase'];
      await until(
        async () => (await client.get('nodes', 'worker'))?.labels['role'] === 'edge' || undefined,
        `the node is known with its labels: ${pods.get('applier')?.output}`,
      );
      await apply(
        manifest('DisruptionPolicy', 'drains', { nodeSelector: {}, default: [{ kind: 'drain' }] }),
        'disruptionpolicies',
      );
      await apply(
        manifest('File', 'app', {
          nodeSelector: { matchLabels: { role: 'edge' } },
          path: '/etc/app/app.conf',
          content: 'v1\n',
          mode: '0640',
        }),
        'files',
      );
      await until(async () => (await phaseOf('app')) === 'Ready' || undefined, 'it is ready');
      const node = (pods.get('applier') as PodProcess).node;
      expect(readFileSync(join(node, 'etc/app/app.conf'), 'utf8')).toBe('v1\n');
      expect(await world.scene.isCordoned('worker')).toBe(false);
      // A folder that no backend needs is not mounted.
      await apply(
        manifest('File', 'neighbour', { nodeSelector: {}, path: '/home/neighbour', content: 'v1\n' }),
        'files',
      );
      await until(
        async () => /^(Rejected|Reverted)$/.test(String(await phaseOf('neighbour'))) || undefined,
        'it is refused by the node',
      );
      expect([
        existsSync(join(node, 'home')),
        (await world.scene.api.get('/apis/sluice.dev/v1alpha1/files/neighbour'))?.status?.['message'],
      ]).toEqual([false, expect.stringMatching(/EROFS|read-only/)]);
    });
  }),
);
