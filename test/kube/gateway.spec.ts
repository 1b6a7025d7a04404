import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '#libs/process';
import { KINDS, pluralOf, WEBHOOK_PATH, webhookConfiguration } from '#libs/manifests';
import { ApiGate, describeOnKube, establish, testAuthority, until, type KubeObject } from '#libs/testing';
import { ROOT } from '../e2e/processes.js';
import { run, startFleet, type Fleet } from '../e2e/fleet.js';
import { file, health, manifest, pool, type Manifest } from '../e2e/manifests.js';
import { testWith } from '../e2e/needs.js';

const FINALIZER = 'sluice.dev/rollout';
const GONE = 'core-02.dc2';

interface ObservedResource extends KubeObject {
  readonly metadata: KubeObject['metadata'] & {
    readonly finalizers?: readonly string[];
    readonly generation: number;
    readonly managedFields?: readonly { readonly manager: string; readonly subresource?: string }[];
  };
  readonly status?: Readonly<Record<string, unknown>> & {
    readonly conditions?: readonly {
      readonly type: string;
      readonly status: string;
      readonly reason: string;
      readonly message: string;
    }[];
  };
}

describeOnKube('custom resources, with a fleet of real processes', (world) => {
  let fleet: Fleet;
  /** Between the gateway and the API server. */
  let gate: ApiGate;
  beforeAll(async () => {
    await establish(world.scene.api, join(ROOT, 'deploy/crds'));
    gate = await ApiGate.before({ ...world.cluster.access, token: await tokenOfGateway() });
    fleet = await startFleet({
      sizes: [3, 2, 1],
      own: [GONE],
      env: { KUBECONFIG: await world.cluster.kubeconfigBy(gate.url), SLUICE_DEBOUNCE_SECONDS: '0.5' },
    });
    fleet.startService('gateway');
    await until(
      () => readFileSync(join(fleet.data, 'gateway.log'), 'utf8').includes('cannot list resource \\"files\\"'),
      'it says which right it lacks',
    );
    await grantRights();
  });
  afterAll(async () => {
    await fleet?.close();
    await gate?.close();
  });

  /** A service account without rights. */
  async function tokenOfGateway(): Promise<string> {
    const accounts = '/api/v1/namespaces/default/serviceaccounts';
    await world.scene.api.create(accounts, { metadata: { name: 'gateway' } });
    return (
      (await world.scene.api.create(`${accounts}/gateway/token`, { spec: {} })).status as { readonly token: string }
    ).token;
  }

  /** Grants the rights that the README of the service lists. All tests in this file run with only these. */
  async function grantRights(): Promise<void> {
    const kinds = KINDS.map(({ name }) => pluralOf(name));
    const rules = [
      { apiGroups: ['sluice.dev'], resources: kinds, verbs: ['list', 'watch', 'patch'] },
      { apiGroups: ['sluice.dev'], resources: ['rollouts'], verbs: ['list', 'watch', 'create', 'delete'] },
      {
        apiGroups: ['sluice.dev'],
        resources: [...kinds, 'rollouts'].map((plural) => `${plural}/status`),
        verbs: ['patch'],
      },
      { apiGroups: [''], resources: ['events'], verbs: ['create'] },
    ];
    const rbac = '/apis/rbac.authorization.k8s.io/v1';
    await world.scene.api.create(`${rbac}/clusterroles`, { metadata: { name: 'gateway' }, rules });
    await world.scene.api.create(`${rbac}/clusterrolebindings`, {
      metadata: { name: 'gateway' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'gateway' },
      subjects: [{ kind: 'ServiceAccount', namespace: 'default', name: 'gateway' }],
    });
  }

  const pathOf = (kind: string, name: string): string => `/apis/sluice.dev/v1alpha1/${pluralOf(kind)}/${name}`;
  const get = (kind: string, name: string): Promise<ObservedResource | undefined> =>
    world.scene.api.get(pathOf(kind, name)) as Promise<ObservedResource | undefined>;
  /** Like `kubectl apply --server-side`. */
  const apply = async (...all: readonly Manifest[]): Promise<void> => {
    for (const one of all) {
      const { code, body } = await world.scene.api.call(
        'PATCH',
        `${pathOf(one.kind, one.metadata.name)}?fieldManager=kubectl&force=true`,
        one,
        'application/apply-patch+yaml',
      );
      if (code >= 300) throw new Error(JSON.stringify(body));
    }
  };
  const remove = async (kind: string, name: string): Promise<void> =>
    void (await world.scene.api.call('DELETE', pathOf(kind, name)));
  const when = (kind: string, name: string, phase: string): Promise<ObservedResource> =>
    until(async () => {
      const found = await get(kind, name);
      const current = found?.status?.['observedGeneration'] === found?.metadata.generation;
      return current && found?.status?.['phase'] === phase ? found : undefined;
    }, `${kind} ${name} is ${phase}`);
  const isGone = (kind: string, name: string): Promise<unknown> =>
    until(async () => (await get(kind, name)) === undefined, `${kind} ${name} is gone`);
  const condition = (seen: ObservedResource, type: string): string => {
    const found = seen.status?.conditions?.find((one) => one.type === type);
    return `${found?.status} ${found?.reason}`;
  };
  /** The changes that came from Kubernetes. */
  const published = async (): Promise<
    readonly { readonly apply: readonly Manifest[]; readonly delete: readonly object[] }[]
  > => (await fleet.events('config.desired.kubernetes')).map(({ body }) => body as never);

  test('an applied object rolls out, and its status says so', async () => {
    await apply(file('motd', 'v1\n', 'edge'));
    const seen = await when('File', 'motd', 'Ready');
    for (const node of fleet.nodesOf('edge')) expect(fleet.folders.files(node)['/etc/motd.conf']).toBe('v1\n');
    expect(['Accepted', 'Validated', 'Progressing', 'Ready'].map((type) => condition(seen, type))).toEqual([
      'True Accepted',
      'True Validated',
      'False Committed',
      'True Committed',
    ]);
    expect(seen.status).toMatchObject({
      nodes: 3,
      applied: 3,
      failed: 0,
      deferred: 0,
      hash: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
    expect(seen.metadata.finalizers).toEqual([FINALIZER]);
    expect(
      seen.metadata.managedFields?.filter(({ subresource }) => subresource === 'status').map(({ manager }) => manager),
    ).toEqual(['sluice-gateway']);
    const rollout = await until(async () => {
      const found = await get('Rollout', String(seen.status?.['change']));
      return found?.status?.['phase'] === 'Ready' ? found : undefined;
    }, 'the Rollout says so too');
    expect(rollout.status).toMatchObject({
      progress: '3/3',
      source: 'kubernetes',
      paused: false,
      pools: { edge: { nodes: 3, done: 3 } },
    });
  });

  test('what belongs to another source is changed once the object may take it over', async () => {
    const annotate = (value: string | null): Promise<unknown> =>
      world.scene.api.patch(pathOf('Pool', 'edge'), { metadata: { annotations: { 'sluice.dev/take-over': value } } });
    await apply(pool('edge', 1));
    const refused = await when('Pool', 'edge', 'Rejected');
    expect(condition(refused, 'Validated')).toBe('False OwnedBy');
    expect(refused.status?.['message']).toMatch(/^belongs to the source e2e: .*sluice\.dev\/take-over=true/);
    await annotate('true');
    await when('Pool', 'edge', 'Ready');
    expect((await fleet.client.get('fragments', 'Pool.edge'))?.source).toBe('kubernetes');
    await annotate(null);
  });

  test('what a person rolled back stays so until the object is edited', async () => {
    const content = (): readonly string[] =>
      fleet.nodesOf('core').map((node) => fleet.folders.files(node)['/etc/back.conf'] ?? '');
    await apply(file('back', 'v1\n', 'core'));
    await when('File', 'back', 'Ready');
    await apply(file('back', 'v2\n', 'core'));
    const change = String((await when('File', 'back', 'Ready')).status?.['change']);
    expect(await fleet.cli('rollback', change, '--wait')).toMatchObject({ code: 0 });
    const seen = await when('File', 'back', 'RolledBack');
    expect(seen.status?.['message']).toMatch(`${change} was rolled back by ${String(seen.status?.['change'])}; edit`);
    expect(new Set(content())).toEqual(new Set(['v1\n']));
    await apply(file('back', 'v3\n', 'core'));
    await when('File', 'back', 'Ready');
    expect(new Set(content())).toEqual(new Set(['v3\n']));
  });

  test('what comes together is one change, and what comes again without a difference is none', async () => {
    const before = (await published()).length;
    const all = [file('one', 'v1\n', 'edge'), file('two', 'v1\n', 'core'), pool('edge', 3)];
    await apply(...all);
    const seen = await Promise.all([
      when('File', 'one', 'Ready'),
      when('File', 'two', 'Ready'),
      when('Pool', 'edge', 'Ready'),
    ]);
    expect(new Set(seen.map(({ status }) => status?.['change'])).size).toBe(1);
    await until(async () => (await get('Pool', 'edge'))?.status?.['budget'] === 3, 'the pool shows its budget');
    const revisions = async (): Promise<readonly (string | undefined)[]> =>
      Promise.all(all.map(async ({ kind, metadata }) => (await get(kind, metadata.name))?.metadata.resourceVersion));
    const then = await revisions();
    await apply(...all);
    expect(await revisions()).toEqual(then);
    await world.scene.api.patch(pathOf('File', 'one'), { metadata: { annotations: { note: 'a person' } } });
    // The result of that comes before the result of this.
    await apply(file('three', 'v1\n', 'core'));
    await when('File', 'three', 'Ready');
    expect(
      (await published()).slice(before).map(({ apply: documents }) => documents.map(({ metadata }) => metadata.name)),
    ).toEqual([['one', 'two', 'edge'], ['three']]);
  });

  test('a refused object has the reasons of the validators in its status, and what was refused with it is published again without it', async () => {
    await apply(manifest('Probe', 'no-pattern', { nodeSelector: {}, file: { path: '/a', matches: '(' } }));
    const malformed = await when('Probe', 'no-pattern', 'Rejected');
    expect(condition(malformed, 'Accepted')).toBe('False BadPattern');
    expect(malformed.status?.['message']).toMatch(/spec\.file\.matches: must be a regular expression/);
    await remove('Probe', 'no-pattern');
    await isGone('Probe', 'no-pattern');
    const twin = {
      ...file('twin', 'v1\n', 'core'),
      spec: { nodeSelector: {}, path: '/etc/two.conf', content: 'other\n' },
    };
    await apply(twin, file('innocent', 'v1\n', 'core'));
    const refused = await when('File', 'twin', 'Rejected');
    expect(condition(refused, 'Validated')).toBe('False Conflict');
    expect(refused.status?.['message']).toMatch(/\/etc\/two\.conf/);
    expect(condition(await when('File', 'innocent', 'Rejected'), 'Validated')).toBe('False RefusedWithOthers');
    await remove('File', 'twin');
    await isGone('File', 'twin');
    await when('File', 'innocent', 'Ready');
    for (const node of fleet.nodesOf('core'))
      expect(fleet.folders.files(node)).toMatchObject({ '/etc/two.conf': 'v1\n', '/etc/innocent.conf': 'v1\n' });
  });

  test('a change that fails on a node rolls back, and the status says so', async () => {
    await apply(health(fleet.gate.url));
    await when('Probe', 'health', 'Ready');
    fleet.gate.isUnhealthy = (_, files) => files['/etc/innocent.conf'] === 'bad\n';
    await apply(file('innocent', 'bad\n', 'core'));
    const seen = await when('File', 'innocent', 'Reverted');
    expect([condition(seen, 'Ready'), condition(seen, 'Progressing')]).toEqual(['False Reverted', 'False Reverted']);
    expect(seen.status?.['message']).toMatch(/core-0\d/);
    fleet.gate.isUnhealthy = () => false;
    await apply(file('innocent', 'v1\n', 'core'));
    await when('File', 'innocent', 'Ready');
  });

  test('the history of an object is in its events, each once', async () => {
    const eventsOf = async (kind: string, name: string): Promise<readonly string[]> => {
      const uid = (await get(kind, name))?.metadata.uid;
      const events = (await world.scene.api.list('/api/v1/namespaces/default/events')) as readonly (KubeObject & {
        readonly involvedObject: { readonly uid?: string };
        readonly type: string;
        readonly reason: string;
        readonly message: string;
      })[];
      return events
        .filter(({ involvedObject }) => involvedObject.uid === uid)
        .map(({ type, reason, message }) => `${type} ${reason} ${message}`);
    };
    const lines = await until(async () => {
      const all = await eventsOf('File', 'innocent');
      return ['Rejected', 'Ready', 'Reverted'].every((reason) => all.some((line) => line.split(' ')[1] === reason))
        ? all
        : undefined;
    }, 'all events exist');
    expect(lines.filter((line) => line.includes(' Reverted '))).toEqual([
      expect.stringMatching(/^Warning Reverted c\d+: .*core-0\d/),
    ]);
    expect(lines.filter((line) => line.startsWith('Normal Ready'))[0]).toMatch(/^Normal Ready c\d+: 2 of 2 nodes$/);
    expect(lines.filter((line) => / (Pending|Reviewing) /.test(line))).toEqual([]);
    const change = String((await get('File', 'innocent'))?.status?.['change']);
    await until(
      async () => (await eventsOf('Rollout', change)).some((line) => line.startsWith('Normal Ready')),
      'the Rollout has its events, too',
    );
  });

  test('a Rollout accepts spec.paused, and leaves other fields to others', async () => {
    fleet.gate.hold((node, files) => node.startsWith('core') && files['/etc/paused.conf'] !== undefined);
    await apply(file('paused', 'v1\n', 'core'));
    await until(() => fleet.gate.held.size === 1, 'a node is applying');
    const change = String((await when('File', 'paused', 'Rolling')).status?.['change']);
    const pause = (paused: boolean): Promise<unknown> =>
      world.scene.api.patch(pathOf('Rollout', change), { spec: { paused } });
    await pause(true);
    expect((await when('Rollout', change, 'Paused')).status).toMatchObject({ paused: true, nodes: 2 });
    expect(await fleet.client.request('ops.rollout.resume', { change, by: 'a person' })).toMatchObject({
      paused: false,
    });
    await when('Rollout', change, 'Rolling');
    await pause(false);
    await pause(true);
    await when('Rollout', change, 'Paused');
    fleet.gate.release();
    await when('File', 'paused', 'Paused');
    await pause(false);
    await when('File', 'paused', 'Ready');
  });

  test('a deletion removes the files from the nodes before the object is gone', async () => {
    fleet.gate.hold((node, files) => node.startsWith('edge') && files['/etc/one.conf'] === undefined);
    await remove('File', 'one');
    await until(() => fleet.gate.held.size > 0, 'a node is applying');
    const seen = await until(async () => {
      const found = await get('File', 'one');
      return found?.status?.['phase'] === 'Deleting' ? found : undefined;
    }, 'it says that it goes');
    expect(condition(seen, 'Ready')).toBe('False Deleting');
    fleet.gate.release();
    await isGone('File', 'one');
    for (const node of fleet.nodesOf('edge')) expect(fleet.folders.files(node)['/etc/one.conf']).toBeUndefined();
  });

  test('a deletion that fails on a node keeps the object and the files, says why, and is completed when a person clears it', async () => {
    await apply(file('held', 'v1\n', 'core'));
    await when('File', 'held', 'Ready');
    fleet.gate.isUnhealthy = (node, files) => node.startsWith('core') && files['/etc/held.conf'] === undefined;
    await remove('File', 'held');
    const seen = await until(async () => {
      const found = await get('File', 'held');
      return found?.status?.['phase'] === 'DeletionFailed' ? found : undefined;
    }, 'it says that its deletion failed');
    expect([seen.metadata.finalizers, seen.metadata.deletionTimestamp === undefined]).toEqual([[FINALIZER], false]);
    expect(condition(seen, 'Ready')).toBe('False DeletionFailed');
    expect(seen.status?.['message']).toMatch(/core-0\d/);
    for (const node of fleet.nodesOf('core')) expect(fleet.folders.files(node)['/etc/held.conf']).toBe('v1\n');
    fleet.gate.isUnhealthy = () => false;
    const failed = String(seen.status?.['change']);
    const knownBad = [...(await fleet.client.list('known-bad')).values()].filter(
      (bad) => bad.change === failed && !bad.gone,
    );
    for (const { hash } of knownBad)
      expect(
        await fleet.client.request('ops.known-bad.clear', { hash, by: 'a person', reason: 'the probe was wrong' }),
      ).toBeDefined();
    await isGone('File', 'held');
    for (const node of fleet.nodesOf('core')) expect(fleet.folders.files(node)['/etc/held.conf']).toBeUndefined();
  });

  test('a deletion does not wait for a node that is gone for good', async () => {
    await fleet.processes.kill(GONE);
    await remove('File', 'two');
    await until(
      async () => (await get('File', 'two'))?.status?.['phase'] === 'Deleting',
      'the deletion is in progress',
    );
    expect(await fleet.cli('remove', GONE, '--force')).toMatchObject({ code: 0 });
    await isGone('File', 'two');
  });

  test('a kill between publishing and writing the status does not publish twice', async () => {
    const before = (await published()).length;
    gate.about = /PATCH .*\/status/;
    gate.mode = { does: 'stall' };
    await apply(file('killed', 'v1\n', 'edge'));
    await until(async () => (await published()).length === before + 1, 'it is published');
    await fleet.processes.kill('gateway');
    gate.mode = { does: 'pass' };
    fleet.startService('gateway');
    await when('File', 'killed', 'Ready');
    expect((await published()).length).toBe(before + 1);
  });

  test('everything that changed during an outage is one change when the gateway returns', async () => {
    const before = (await published()).length;
    await fleet.processes.stop('gateway');
    await apply(file('motd', 'v2\n', 'edge'), file('added', 'v1\n', 'edge'));
    await remove('File', 'killed');
    await apply(file('passing', 'v1\n'));
    await remove('File', 'passing');
    fleet.startService('gateway');
    await Promise.all([when('File', 'motd', 'Ready'), when('File', 'added', 'Ready'), isGone('File', 'killed')]);
    const [change, ...more] = (await published()).slice(before);
    expect([change?.apply.map(({ metadata }) => metadata.name), change?.delete, more]).toEqual([
      ['added', 'motd'],
      [{ kind: 'File', name: 'killed' }],
      [],
    ]);
    for (const node of fleet.nodesOf('edge'))
      expect(fleet.folders.files(node)).toMatchObject({ '/etc/motd.conf': 'v2\n', '/etc/added.conf': 'v1\n' });
    for (const node of fleet.nodesOf('edge')) expect(fleet.folders.files(node)['/etc/killed.conf']).toBeUndefined();
  });

  test('another copy continues when one pauses, and that one repeats nothing when it wakes', async () => {
    const before = (await published()).length;
    fleet.startService('gateway-2');
    fleet.processes.freeze('gateway');
    await apply(file('motd', 'v3\n', 'edge'));
    await when('File', 'motd', 'Ready');
    fleet.processes.thaw('gateway');
    await apply(file('motd', 'v4\n', 'edge'));
    await when('File', 'motd', 'Ready');
    expect((await published()).length).toBe(before + 2);
    await fleet.processes.stop('gateway-2');
  });

  test('trouble of the API server and the gateway causes delays, and loses nothing', async () => {
    gate.about = /./;
    gate.mode = { does: 'refuse', code: 500, reason: 'InternalError' };
    const before = gate.requests.length;
    gate.cut();
    try {
      await apply(file('motd', 'v5\n', 'edge'));
      // Each watch retries after growing intervals. Among all requests meanwhile, some of these are repeated.
      await until(() => gate.requests.length - before > 5 || undefined, 'it asks again');
    } finally {
      gate.mode = { does: 'pass' };
    }
    world.cluster.killApiServer();
    await world.cluster.restartApiServer();
    await when('File', 'motd', 'Ready');
    for (const node of fleet.nodesOf('edge')) expect(fleet.folders.files(node)['/etc/motd.conf']).toBe('v5\n');
  });

  testWith(['kubectl'], 'kubectl applies the example of the guide, waits, shows and deletes', async () => {
    const kubectl = async (...args: readonly string[]): Promise<string> => {
      const { code, stdout, stderr } = await run('kubectl', args, {
        env: { ...process.env, KUBECONFIG: world.cluster.kubeconfig, HOME: fleet.data },
      });
      if (code !== 0) throw new Error(stderr);
      return stdout;
    };
    const rows = (text: string): readonly (readonly string[])[] =>
      text
        .trimEnd()
        .split('\n')
        .map((line) => line.trimEnd().split(/ {2,}/));
    const path = join(fleet.data, 'motd.yaml');
    const example = /```yaml\n(# motd\.yaml\n.*?)```/s.exec(
      readFileSync(join(ROOT, 'docs/guides/kubernetes.md'), 'utf8'),
    )?.[1] as string;
    // The nodes here have a role, but no zone.
    writeFileSync(path, example.replace('node.labels.zone', 'node.labels.role'));
    await kubectl('apply', '-f', path);
    await kubectl(
      'wait',
      '--for=condition=Ready',
      '--timeout=60s',
      'files.sluice.dev/motd',
      'pools.sluice.dev/edge',
      'probes.sluice.dev/greets',
    );
    for (const node of fleet.nodesOf('edge'))
      expect(fleet.folders.files(node)['/etc/motd']).toBe(`hello ${node} in edge\n`);
    const change = String((await get('File', 'motd'))?.status?.['change']);
    await when('Rollout', change, 'Ready');
    await until(async () => (await get('Pool', 'edge'))?.status?.['budget'] === 1, 'the pool shows its budget');
    const [files, pools, rollouts] = [
      rows(await kubectl('get', 'files', 'motd')),
      rows(await kubectl('get', 'pools')),
      rows(await kubectl('get', 'srollout', change)),
    ];
    expect(files[0]).toEqual(['NAME', 'PATH', 'PHASE', 'CHANGE', 'NODES', 'APPLIED', 'AGE']);
    expect(files[1]?.slice(0, -1)).toEqual(['motd', '/etc/motd', 'Ready', change, '3', '3']);
    expect(pools[0]).toEqual([
      'NAME',
      'MAX-UNAVAILABLE',
      'MEMBERS',
      'BUDGET',
      'UNAVAILABLE',
      'WAITING',
      'PHASE',
      'CHANGE',
      'AGE',
    ]);
    expect(pools[1]?.slice(0, -1)).toEqual(['edge', '10%', '3', '1', '0', '0', 'Ready', change]);
    expect(rollouts[0]).toEqual([
      'NAME',
      'PHASE',
      'PROGRESS',
      'FAILED',
      'DEFERRED',
      'BLOCKED',
      'PAUSED',
      'SOURCE',
      'AGE',
    ]);
    expect(rollouts[1]?.slice(0, -1)).toEqual([change, 'Ready', '3/3', '0', '0', '0', 'false', 'kubernetes']);
    expect(await kubectl('get', 'sluice')).toMatch(/^file\.sluice\.dev\/motd /m);
    await kubectl('delete', '-f', path, '--wait', '--timeout=60s');
    expect([await get('File', 'motd'), await get('Pool', 'edge')]).toEqual([undefined, undefined]);
    for (const node of fleet.nodesOf('edge')) expect(fleet.folders.files(node)['/etc/motd']).toBeUndefined();
  });

  testWith(
    ['kubectl'],
    'with the webhook, kubectl gets warnings and refusals; without it, the status reports the same later',
    async () => {
      const authority = await testAuthority();
      const { certFile, keyFile } = await authority.write(fleet.data);
      const [port, health] = [await freePort(), await freePort()];
      await fleet.processes.stop('gateway');
      const start = (): void =>
        fleet.processes.start('gateway-3', ['service', 'gateway'], {
          env: {
            SLUICE_HEALTH_PORT: String(health),
            SLUICE_WEBHOOK_PORT: String(port),
            SLUICE_WEBHOOK_CERT_FILE: certFile,
            SLUICE_WEBHOOK_KEY_FILE: keyFile,
          },
        });
      const kubectl = (one: Manifest): Promise<{ readonly code: number; readonly stderr: string }> => {
        const path = join(fleet.data, 'one.json');
        writeFileSync(path, JSON.stringify(one));
        return run('kubectl', ['apply', '-f', path], {
          env: { ...process.env, KUBECONFIG: world.cluster.kubeconfig, HOME: fleet.data },
        });
      };
      const bad = manifest('Probe', 'refused', { nodeSelector: {}, file: { path: '/a', matches: '(' } });
      const configuration = webhookConfiguration({
        url: `https://127.0.0.1:${port}${WEBHOOK_PATH}`,
        caBundle: Buffer.from(authority.ca).toString('base64'),
      });
      start();
      await world.scene.api.create(
        '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations',
        configuration,
      );
      const refusal = await until(async () => {
        const { code, stderr } = await kubectl(bad);
        await remove('Probe', 'refused');
        return code === 0 ? undefined : stderr;
      }, 'it is refused');
      expect(refusal).toMatch(/spec\.file\.matches: .*must be a regular expression/);

      const twin = {
        ...file('twin', 'v1\n', 'edge'),
        spec: { ...file('twin', 'v1\n', 'edge').spec, path: '/etc/added.conf' },
      };
      await until(
        async () => (await fetch(`http://127.0.0.1:${health}/readyz`)).status === 200,
        'it has read what there is',
      );
      const warned = await kubectl(twin);
      const words = 'File/added and File/twin both put something at /etc/added.conf';
      expect([warned.code, warned.stderr]).toEqual([
        0,
        expect.stringContaining(`Warning: spec.path: ${words} (${[...fleet.nodesOf('edge')].sort().join(', ')})`),
      ]);
      expect((await when('File', 'twin', 'Rejected')).status?.['message']).toContain(words);
      await remove('File', 'twin');
      await isGone('File', 'twin');

      await apply(pool('edge', 3));
      await authority.write(fleet.data, { toMs: 5.5 * 86_400_000 });
      await until(
        async () => (await fleet.cli('doctor')).stdout.includes('the certificate of the webhook expires in 5 days'),
        'the doctor says so',
      );
      // It checks everything at least once a minute. An edit makes it check now.
      await apply(file('looked-at', 'v1\n', 'edge'));
      await until(
        async () =>
          condition((await get('Pool', 'edge')) as ObservedResource, 'Admission') === 'True CertificateEnding',
        'the pool says so',
      );

      await fleet.processes.kill('gateway-3');
      expect(await kubectl(bad)).toMatchObject({ code: 0 });
      start();
      expect((await when('Probe', 'refused', 'Rejected')).status?.['message']).toMatch(
        /^spec\.file\.matches: must be a regular expression/,
      );
      // Removed, so that it does not affect later tests.
      await world.scene.api.remove(
        `/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/${configuration.metadata.name}`,
      );
    },
  );
});
