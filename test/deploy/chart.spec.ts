import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'yaml';
import { EDGE_SERVICES, SERVICES } from '#libs/contracts';
import { findNatsServer } from '#libs/process';
import { KUBE_SERVICES, rightsOf, rightWords } from '#libs/kube';
import { findHelm } from '#libs/testing';
import { describeWith } from '../e2e/needs.js';
import { CHART, helmWith, linesOf, podOf, render, ROOT, VALUES, type Container, type RenderedChart } from './chart.js';
import { manifestsOf } from './manifests.js';

const text = (file: string): string => readFileSync(join(ROOT, file), 'utf8');
const textsIn = (folder: string): Readonly<Record<string, string>> =>
  Object.fromEntries(readdirSync(join(ROOT, folder)).map((name) => [name, text(join(folder, name))]));
const { version } = JSON.parse(text('package.json')) as { readonly version: string };
const ALL = [...SERVICES, ...EDGE_SERVICES];
const BUILD_MS = 20 * 60_000;

interface Need {
  readonly dropIn?: string;
  readonly paths?: readonly string[];
  readonly pathsIfThere?: readonly string[];
  readonly capabilities?: readonly string[];
}
const { enteringHost: _, ...needs } = parse(text(`${CHART}/files/backends.yaml`)) as Readonly<Record<string, Need>>;

describe('what the chart copies from elsewhere', () => {
  test('the definitions and the webhook match those of deploy: npm run schemas', () => {
    expect(textsIn(`${CHART}/files/crds`)).toEqual(textsIn('deploy/crds'));
    expect(text(`${CHART}/files/webhook.yaml`)).toBe(text('deploy/admission/webhook.yaml'));
  });

  test('its version, and those of its images, match the package', () => {
    expect(parse(text(`${CHART}/Chart.yaml`))).toMatchObject({ version, appVersion: version });
    const { nats, image } = parse(text(`${CHART}/values.yaml`)) as {
      readonly image: { readonly repository: string };
      readonly nats: { readonly embedded: { readonly image: { readonly repository: string; readonly tag: string } } };
    };
    const compose = parse(text('docker-compose.yml'), { merge: true }) as {
      readonly services: Readonly<Record<'nats' | 'merger', { readonly image: string }>>;
    };
    expect([`${nats.embedded.image.repository}:${nats.embedded.image.tag}`, `${image.repository}:${version}`]).toEqual([
      compose.services.nats.image,
      compose.services.merger.image,
    ]);
  });

  test.each(Object.entries(needs).filter(([name]) => name !== 'units'))(
    'what %s needs from a node matches the systemd unit',
    (_name, { dropIn, paths = [], pathsIfThere = [], capabilities = [] }) => {
      const unit = text(
        dropIn === undefined ? 'deploy/applier/sluice-applier.service' : `deploy/applier/backends/${dropIn}`,
      );
      const valuesOf = (key: string): readonly string[] =>
        unit
          .split('\n')
          .filter((line) => line.startsWith(`${key}=`))
          .flatMap((line) => line.slice(key.length + 1).split(' '));
      expect(
        valuesOf('ReadWritePaths')
          .map((path) => path.replace(/^-/, ''))
          .sort(),
      ).toEqual([...paths, ...pathsIfThere].sort());
      expect(
        valuesOf('CapabilityBoundingSet')
          .map((name) => name.replace(/^CAP_/, ''))
          .sort(),
      ).toEqual([...capabilities].sort());
    },
  );

  test("every drop-in except for the network is one of the chart's backends", () => {
    const named = Object.values(needs).flatMap(({ dropIn }) => dropIn ?? []);
    expect(readdirSync(join(ROOT, 'deploy/applier/backends')).filter((name) => !named.includes(name))).toEqual([
      'network.conf',
    ]);
  });
});

describeWith(['helm'], 'the chart', () => {
  let helm = '';
  beforeAll(async () => void (helm = await findHelm()), BUILD_MS);
  const of = (objects: readonly RenderedChart[], kind: string): readonly RenderedChart[] =>
    objects.filter((one) => one.kind === kind);
  const containerOf = (object: RenderedChart): Container => podOf(object).containers[0] as Container;
  const nameOf = ({ metadata }: RenderedChart): string => metadata.labels?.['app.kubernetes.io/component'] ?? '';
  const applierWith = (applier: object): RenderedChart =>
    of(render(helm, { applier }), 'DaemonSet')[0] as RenderedChart;

  test('deploy/manifests is up to date: npm run manifests', () => {
    expect(text('deploy/manifests/sluice.yaml')).toBe(
      manifestsOf((args) => execFileSync(helm, args, { cwd: ROOT, encoding: 'utf8' })),
    );
  });

  test.each(Object.entries(VALUES))('is valid with %s', (_what, values) => {
    expect(helmWith(helm, ['lint', '--strict', CHART], values)).toContain('0 chart(s) failed');
    const objects = render(helm, values);
    const ids = objects.map(({ kind, metadata }) => `${kind} ${metadata.name}`);
    expect(new Set(ids).size).toBe(ids.length);
    // Each workload references its own service account, and selects its own pods.
    for (const object of objects.filter(({ kind }) => ['Deployment', 'StatefulSet', 'DaemonSet'].includes(kind))) {
      const { selector, template } = object.spec as unknown as {
        readonly selector: { readonly matchLabels: object };
        readonly template: { readonly metadata: { readonly labels: object } };
      };
      expect(template.metadata.labels).toMatchObject(selector.matchLabels);
      expect(of(objects, 'ServiceAccount').map(({ metadata }) => metadata.name)).toContain(
        podOf(object).serviceAccountName,
      );
    }
  });

  test.each([
    ['a missing NATS URL', { nats: { embedded: { enabled: false } } }, 'nats.url is needed'],
    [
      'two identities',
      { nats: { tokenSecret: { name: 'x' }, userSecret: { name: 'y' } } },
      'nats.tokenSecret and nats.userSecret cannot be used together',
    ],
    ['two NATS servers', { nats: { embedded: { replicas: 2 } } }, /embedded.replicas|embedded\/replicas/],
    ['an unknown field', { gateway: { enable: true } }, /enable/],
    ['an unknown strategy', { drain: { strategy: 'kubectl' } }, /strategy/],
    ['a restart without systemd', { applier: { reboot: true } }, 'applier.reboot needs applier.backends.units'],
    ['an unknown backend', { applier: { backends: { network: true } } }, /network/],
    [
      'a webhook without a gateway',
      { webhook: { enabled: true }, gateway: { enabled: false } },
      'webhook.enabled needs gateway.enabled',
    ],
    [
      'a certificate without a secret',
      { webhook: { enabled: true, certificate: { from: 'secret' } } },
      'webhook.certificate.secretName is needed',
    ],
    [
      'a certificate without a CA',
      { webhook: { enabled: true, certificate: { from: 'secret', secretName: 'x' } } },
      'webhook.certificate.ca is needed',
    ],
    [
      'an issuer without a name',
      { webhook: { enabled: true, certificate: { from: 'cert-manager' } } },
      'webhook.certificate.issuer.name is needed',
    ],
  ] as const)('refuses %s, and says what is wrong', (_what, values, message) => {
    expect(() => render(helm, values)).toThrow(message);
  });

  test.each([{}, { backends: { units: true, sysctl: true } }, { credentialsSecret: { name: 'nodes' } }])(
    'the guard of an applier with %j reaches what the applier reaches, and has no credentials',
    (applier) => {
      const pod = podOf(applierWith(applier));
      const [own, guard] = pod.containers as readonly [Container, Container];
      expect(guard.securityContext).toEqual(own.securityContext);
      expect(guard.image).toBe(own.image);
      const mounts = ({ volumeMounts = [] }: Container) =>
        volumeMounts.filter(({ name }) => name !== 'nats-credentials');
      expect(guard.volumeMounts).toEqual(mounts(own));
      const state = (one: Container) => one.env.find(({ name }) => name === 'SLUICE_STATE');
      expect(guard.env).toEqual([state(own)]);
      expect(pod.hostPID === true || pod.shareProcessNamespace === true).toBe(true);
    },
  );

  test("the image of the applier has the guard's program", () => {
    const command = '/usr/local/lib/sluice/stand-guard';
    expect(podOf(applierWith({})).containers[1]).toMatchObject({ name: 'guard', command: [command] });
    const dockerfile = text('deploy/applier/Dockerfile');
    expect(dockerfile).toContain('deploy/applier/stand-guard /usr/local/lib/sluice/');
    expect(dockerfile).toMatch(/chmod 0755 .*\/usr\/local\/lib\/sluice\/stand-guard/);
    // The program that it starts if nothing else is set.
    const [, program = ''] = /SLUICE_APPLIER:-node (\S+)\}/.exec(text('deploy/applier/stand-guard')) ?? [];
    expect(dockerfile).toContain(`/app/build/applier.cjs ${program}`);
  });

  test('connects services and appliers with their own secrets, which are files', () => {
    const objects = render(helm, VALUES['your own NATS, with TLS and users'] as object);
    const files = (object: RenderedChart): unknown => {
      const env = containerOf(object).env.filter(({ name }) => /^(NATS|SLUICE_(NATS|CREDS|TOKEN))/.test(name));
      const volume = podOf(object).volumes?.find(({ name }) => name === 'nats-credentials');
      return [env, volume];
    };
    // Kubernetes reads the modes as octal numbers, and this parser as decimal ones.
    const item = (key: string, path = key): object => ({ key, path });
    const tls = [
      { name: 'SLUICE_NATS_CERT', value: '/etc/sluice/nats/tls.crt' },
      { name: 'SLUICE_NATS_KEY', value: '/etc/sluice/nats/tls.key' },
      { name: 'SLUICE_NATS_CA', value: '/etc/sluice/nats/ca.crt' },
      { name: 'SLUICE_NATS_TLS_FIRST', value: 'true' },
    ];
    const certificate = (name: string): object => ({ secret: { name, items: [item('tls.crt'), item('tls.key')] } });
    const ca = { secret: { name: 'ca', items: [item('ca.crt')] } };
    for (const service of of(objects, 'Deployment'))
      expect(files(service)).toEqual([
        [
          { name: 'NATS_URL', value: 'tls://a:4222' },
          { name: 'SLUICE_NATS_USER', valueFrom: { secretKeyRef: { name: 'services', key: 'username' } } },
          { name: 'SLUICE_NATS_PASSWORD_FILE', value: '/etc/sluice/nats/password' },
          ...tls,
        ],
        {
          name: 'nats-credentials',
          projected: {
            defaultMode: 440,
            sources: [{ secret: { name: 'services', items: [item('password')] } }, certificate('services-tls'), ca],
          },
        },
      ]);
    expect(of(objects, 'DaemonSet').map(files)).toEqual([
      [
        [
          { name: 'NATS_URL', value: 'tls://a:4222' },
          { name: 'SLUICE_NATS_NKEY', value: '/etc/sluice/nats/nkey' },
          ...tls,
        ],
        {
          name: 'nats-credentials',
          projected: {
            defaultMode: 400,
            sources: [{ secret: { name: 'nodes', items: [item('nkey')] } }, certificate('nodes-tls'), ca],
          },
        },
      ],
    ]);
  });

  test('runs each service twice, ready only after it has read the ledger, and keeps at least one during node drains', () => {
    const objects = render(helm, {});
    expect(
      of(objects, 'Deployment').map((one) => [nameOf(one), one.spec?.['replicas'], containerOf(one).args]),
    ).toEqual(ALL.map((name) => [name, 2, ['service', name]]));
    for (const one of [...of(objects, 'Deployment'), ...of(objects, 'StatefulSet')])
      expect([Object.keys(containerOf(one)), nameOf(one)]).toEqual([
        expect.arrayContaining(['livenessProbe', 'readinessProbe', 'resources']),
        nameOf(one),
      ]);
    for (const kind of ['PodDisruptionBudget', 'NetworkPolicy'])
      expect(of(objects, kind).map(nameOf).sort()).toEqual([...ALL, 'nats'].sort());
    expect(of(objects, 'PodDisruptionBudget').map(({ spec }) => spec?.['maxUnavailable'])).toEqual(
      Array.from({ length: ALL.length + 1 }, () => 1),
    );
  });

  test.each(Object.entries(VALUES))('grants minimal privileges with %s', (_what, values) => {
    const objects = render(helm, values);
    for (const one of [...of(objects, 'Deployment'), ...of(objects, 'StatefulSet')]) {
      expect([nameOf(one), podOf(one).securityContext]).toEqual([
        nameOf(one),
        expect.objectContaining({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } }),
      ]);
      expect([nameOf(one), containerOf(one).securityContext]).toEqual([
        nameOf(one),
        { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } },
      ]);
      // An emptyDir would block the drain of its node, unless the pool allows its deletion.
      expect(
        (podOf(one).volumes ?? []).filter(({ emptyDir, hostPath }) => emptyDir !== undefined || hostPath !== undefined),
      ).toEqual([]);
    }
  });

  test.each([
    ['all three by default', {}, ['drain', 'inventory', 'gateway']],
    ['without drains', { drain: { strategy: 'none' } }, ['inventory', 'gateway']],
    ['without Kubernetes nodes', VALUES['without Kubernetes nodes'] as object, []],
  ] as const)('lets services use the API server only if they need it: %s', (_what, values, clients) => {
    const objects = render(helm, values);
    for (const kind of ['ClusterRole', 'ClusterRoleBinding']) expect(of(objects, kind).map(nameOf)).toEqual(clients);
    const workloads = ['Deployment', 'StatefulSet', 'DaemonSet'].flatMap((kind) => of(objects, kind));
    expect(workloads.filter((one) => podOf(one).automountServiceAccountToken).map(nameOf)).toEqual(clients);
  });

  test.each(KUBE_SERVICES)('grants %s the rights that it declares', (service) => {
    const roles = ['ClusterRole', 'Role']
      .flatMap((kind) => of(render(helm, {}), kind))
      .filter((one) => nameOf(one) === service);
    const lines = roles.flatMap(({ metadata, rules = [] }) =>
      linesOf(rules).map((line) =>
        metadata.namespace === undefined ? line : `${line} in the namespace ${metadata.namespace}`,
      ),
    );
    expect([...lines].sort()).toEqual(rightsOf(service).map(rightWords).sort());
  });

  test('mounts into an applier what its backends need, and no more', () => {
    const seen = (applier: object) => {
      const daemonSet = applierWith(applier);
      const pod = podOf(daemonSet);
      return {
        paths: (pod.volumes ?? []).map(({ hostPath }) => hostPath?.path),
        add: containerOf(daemonSet).securityContext.capabilities.add,
        pid: pod.hostPID === true,
        network: pod.hostNetwork === true,
      };
    };
    const [paths, add] = [
      ['/etc', '/opt', '/srv', '/tmp', '/var', '/usr/local'],
      ['CHOWN', 'FOWNER', 'FSETID', 'DAC_OVERRIDE'],
    ];
    expect(seen({})).toEqual({ paths, add, pid: false, network: false });
    expect(seen({ backends: { sshKeys: true } })).toEqual({
      paths: [...paths, '/root', '/home'],
      add,
      pid: false,
      network: false,
    });
    expect(seen({ backends: { sysctl: true } })).toEqual({
      paths: [...paths, '/proc'],
      add: [...add, 'NET_ADMIN', 'SYS_ADMIN', 'SYS_RESOURCE'],
      pid: false,
      network: true,
    });
    expect(seen({ backends: { units: true } })).toEqual({
      paths,
      add: [...add, 'SYS_ADMIN', 'SYS_CHROOT', 'SYS_PTRACE'],
      pid: true,
      network: false,
    });
    expect(seen({ backends: { kernelArguments: true }, paths: ['/efi'] })).toEqual({
      paths: ['/efi', ...paths, '/boot', '/proc'],
      add: [...add, 'SYS_ADMIN', 'SYS_RAWIO', 'SYS_CHROOT', 'SYS_PTRACE'],
      pid: true,
      network: false,
    });
    expect(containerOf(applierWith({})).env).toContainEqual({ name: 'SLUICE_REBOOT_COMMAND', value: '' });
  });

  test.each([
    ['one server', {}, '1'],
    ['three servers', { nats: { embedded: { replicas: 3 } } }, '3'],
    ['three servers, and one replica', { nats: { embedded: { replicas: 3 }, streamReplicas: 1 } }, '1'],
    ['your own NATS', { nats: { embedded: { enabled: false }, url: 'nats://a:4222' } }, undefined],
  ] as const)('replicates streams as often as there are servers: %s', (_what, values, copies) => {
    const replicas = of(render(helm, values), 'Deployment').map(
      (one) => containerOf(one).env.find(({ name }) => name === 'SLUICE_REPLICAS')?.value,
    );
    expect(replicas).toEqual(ALL.map(() => copies));
  });

  test('sets no variable that no process reads', () => {
    const documented = text('docs/reference/settings.md');
    const set = Object.values(VALUES)
      .flatMap((values) => render(helm, values))
      .filter(({ kind }) => ['Deployment', 'DaemonSet'].includes(kind))
      .flatMap((one) => containerOf(one).env.map(({ name }) => name));
    expect([...new Set(set)].filter((name) => !name.startsWith('POD_') && !documented.includes(name))).toEqual([]);
  });

  test.each([
    ['one server', 1],
    ['three servers', 3],
  ])('generates a valid configuration for NATS: %s', async (_what, replicas) => {
    const { data } = of(
      render(helm, { nats: { embedded: { replicas }, tokenSecret: { name: 'bus' } } }),
      'ConfigMap',
    )[0] as RenderedChart;
    const folder = mkdtempSync(join(tmpdir(), 'sluice-nats-conf-'));
    try {
      writeFileSync(join(folder, 'nats.conf'), data?.['nats.conf'] ?? '');
      const server = await findNatsServer();
      const run = (env: object): string =>
        execFileSync(server, ['-t', '--config', join(folder, 'nats.conf')], {
          encoding: 'utf8',
          stdio: 'pipe',
          env: { ...env },
        });
      expect(() => run({ POD_NAME: 'nats-0', SLUICE_TOKEN: 'secret' })).not.toThrow();
      expect(() => run({ POD_NAME: 'nats-0' })).toThrow(/SLUICE_TOKEN/);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
