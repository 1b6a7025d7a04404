import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { freePort } from '#libs/process';
import { describeOnKube, establish, until, type KubeObject } from '#libs/testing';
import { exitCodeOf } from '../../cli/src/output/exit.js';
import { prepareKubernetes } from '../../cli/src/up/kubernetes.js';
import { run } from '../e2e/fleet.js';
import { LocalInstallation } from '../e2e/local-installation.js';
import { testWith } from '../e2e/needs.js';
import { ROOT } from '../e2e/processes.js';

const DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';

describeOnKube('sluice up --kube', (world) => {
  let local: LocalInstallation;
  beforeEach(() => void (local = new LocalInstallation()));
  afterEach(() => local.close());

  /** The output and the exit code if it cannot start. */
  const refused = async (env: Readonly<Record<string, string>>): Promise<readonly [number, string]> => {
    const error = await prepareKubernetes({
      env: { HOME: local.folder, ...env },
      say: () => undefined,
      keepDefinitions: false,
      version: '0.1.0',
      signal: new AbortController().signal,
    }).then(
      () => new Error('it began'),
      (reason: unknown) => reason as Error,
    );
    return [exitCodeOf(error), error.message.replaceAll(local.folder, 'HOME')];
  };
  const accountOf = async (name: string): Promise<string> => {
    const accounts = '/api/v1/namespaces/default/serviceaccounts';
    await world.scene.api.create(accounts, { metadata: { name } });
    return (
      (await world.scene.api.create(`${accounts}/${name}/token`, { spec: {} })).status as { readonly token: string }
    ).token;
  };

  test('without a kubeconfig, or with a broken one, it says where it searched, and ends with 2', async () => {
    const nothing =
      'found no kubeconfig: set KUBECONFIG, create HOME/.kube/config, or run in a pod with a service account';
    expect(await refused({})).toEqual([2, nothing]);
    expect(await refused({ KUBECONFIG: '/nowhere/config' })).toEqual([
      2,
      'KUBECONFIG names /nowhere/config, which does not exist',
    ]);
    const KUBECONFIG = join(local.folder, 'broken');
    writeFileSync(KUBECONFIG, 'clusters: [');
    expect(await refused({ KUBECONFIG })).toEqual([
      2,
      expect.stringMatching(/^KUBECONFIG=HOME\/broken cannot be used: /),
    ]);
    writeFileSync(
      KUBECONFIG,
      '{"apiVersion": "v1", "kind": "Config", "current-context": "gone", "contexts": [], "clusters": [], "users": []}',
    );
    expect(await refused({ KUBECONFIG })).toEqual([
      2,
      'KUBECONFIG=HOME/broken names no cluster in its current context (gone)',
    ]);
    delete local.env['KUBECONFIG'];
    const { code, stderr } = await local.run('up', '--kube', '--data', local.data, '--port', '0');
    expect([code, stderr.replaceAll(local.folder, 'HOME'), local.hasUpJson]).toEqual([2, `error: ${nothing}\n`, false]);
  });

  test('with a missing server it ends with 6, and with one that rejects its credentials with 2', async () => {
    const nobody = `https://127.0.0.1:${await freePort()}`;
    expect(await refused({ KUBECONFIG: await world.cluster.kubeconfigBy(nobody) })).toEqual([
      6,
      expect.stringMatching(`^${nobody} does not answer: .*ECONNREFUSED`),
    ]);
    expect(await refused({ KUBECONFIG: await world.cluster.kubeconfigOf('stranger', 'no-token') })).toEqual([
      2,
      expect.stringContaining(
        `${world.cluster.access.server} rejected the credentials (Unauthorized): they have expired`,
      ),
    ]);
  });

  test('with missing rights it names all of them, by service', async () => {
    const KUBECONFIG = await world.cluster.kubeconfigOf('reader', await accountOf('reader'));
    const rbac = '/apis/rbac.authorization.k8s.io/v1';
    await world.scene.api.create(`${rbac}/clusterroles`, {
      metadata: { name: 'reader' },
      rules: [
        { apiGroups: [''], resources: ['nodes', 'pods'], verbs: ['get', 'list', 'watch'] },
        { apiGroups: ['sluice.dev'], resources: ['*'], verbs: ['*'] },
      ],
    });
    await world.scene.api.create(`${rbac}/clusterrolebindings`, {
      metadata: { name: 'reader' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'reader' },
      subjects: [{ kind: 'ServiceAccount', namespace: 'default', name: 'reader' }],
    });
    const [code, words] = await refused({ KUBECONFIG });
    expect([code, ...words.split('\n')]).toEqual([
      1,
      `permissions are missing at ${world.cluster.access.server}:`,
      '  drain: patch nodes; delete pods; create pods/eviction; list, watch poddisruptionbudgets.policy',
      '  gateway: create events in the namespace default',
      expect.stringContaining('Ask for them'),
    ]);
    await world.scene.api.patch(`${rbac}/clusterroles/reader`, {
      rules: [{ apiGroups: ['', 'sluice.dev', 'policy'], resources: ['*'], verbs: ['*'] }],
    });
    expect(await refused({ KUBECONFIG })).toEqual([
      1,
      expect.stringMatching(
        /^cannot install the custom resource definitions: customresourcedefinitions.*cannot get resource.*\nAsk an administrator .* start with --keep-crds$/,
      ),
    ]);
  });

  testWith(
    ['kubectl'],
    'the steps of the guide: up --kube, label, apply, wait, get: it rolls out with drains, and is removed again',
    async () => {
      const { scene, cluster } = world;
      for (const name of ['m1', 'm2']) {
        await scene.node(name);
        await scene.pod(`${name}-web`, { node: name });
      }
      await planted();
      local.env['KUBECONFIG'] = cluster.kubeconfig;
      const readme = readFileSync(join(ROOT, 'docs/guides/kubernetes.md'), 'utf8');
      const example = (name: string): string => {
        const path = join(local.folder, `${name}.yaml`);
        writeFileSync(path, new RegExp(`\`\`\`yaml\\n(# ${name}\\.yaml.*?)\`\`\``, 's').exec(readme)?.[1] ?? '');
        return path;
      };
      const kubectl = async (...args: readonly string[]): Promise<string> => {
        const { code, stdout, stderr } = await run('kubectl', args, { env: local.env });
        if (code !== 0) throw new Error(stderr);
        return stdout;
      };
      await local.up('--kube');
      // All but the one that is newer.
      const installed = readdirSync(join(ROOT, 'deploy/crds')).length - 1;
      expect(local.stderr).toContain(`Installing ${installed} CRDs with server-side apply`);
      expect(local.stderr).toMatch(/Keeping 1 CRD of the newer version 99\.0\.0; this is Sluice 0\./);
      expect(local.stderr).toContain('Each of its 2 Nodes gets an applier on this machine');
      await kubectl('label', 'node', 'm1', 'm2', 'role=edge', 'zone=a');
      await kubectl('apply', '-f', example('drains'), '-f', example('motd'));
      await kubectl('wait', '--for=condition=Ready', '--timeout=60s', 'files.sluice.dev/motd');
      expect(['m1', 'm2'].map((node) => local.file(node, 'etc/motd'))).toEqual(['hello m1 in a\n', 'hello m2 in a\n']);
      expect(await Promise.all(['m1', 'm2'].map((node) => scene.podsOn(node)))).toEqual([[], []]);
      const drained = (await local.run('events', '--since', '1h', '-o', 'json')).stdout;
      expect(drained).toContain('node.drained');
      expect(await kubectl('get', 'files,pools')).toMatch(/motd +\/etc\/motd +Ready +c\d+ +2 +2 /);
      await until(
        async () => (!(await scene.isCordoned('m1')) && !(await scene.isCordoned('m2'))) || undefined,
        'both are given back',
      );
      await kubectl('delete', '-f', example('motd'), '--wait', '--timeout=60s');
      expect(local.file('m1', 'etc/motd')).toBeUndefined();
      expect(await local.interrupt()).toBe(0);
    },
  );

  /** A definition of a later version, with one more column. */
  async function planted(): Promise<void> {
    const definition = parse(readFileSync(join(ROOT, 'deploy/crds/sluice.dev_vrfs.yaml'), 'utf8')) as KubeObject & {
      spec: { versions: { additionalPrinterColumns: object[] }[] };
    };
    definition.spec.versions[0]?.additionalPrinterColumns.push({
      name: 'More',
      type: 'string',
      jsonPath: '.spec.more',
    });
    await world.scene.api.create(DEFINITIONS, {
      ...definition,
      metadata: { ...definition.metadata, annotations: { 'sluice.dev/version': '99.0.0' } },
    });
  }

  test('updates older definitions, leaves equal ones alone, and with --keep-crds leaves all', async () => {
    /** The revisions of what users wrote. The server itself writes conditions. */
    const revisions = async (): Promise<Readonly<Record<string, string>>> =>
      Object.fromEntries(
        (await world.scene.api.list(DEFINITIONS)).map(({ metadata }) => [
          metadata.name,
          JSON.stringify([(metadata as { readonly generation?: number }).generation, metadata.annotations]),
        ]),
      );
    await world.scene.api.remove(`${DEFINITIONS}/vrfs.sluice.dev`);
    await until(
      async () => (await world.scene.api.get(`${DEFINITIONS}/vrfs.sluice.dev`)) === undefined || undefined,
      'the one of another version is gone',
    );
    await establish(world.scene.api, join(ROOT, 'deploy/crds'));
    await world.scene.api.patch(`${DEFINITIONS}/files.sluice.dev`, {
      metadata: { annotations: { 'sluice.dev/version': '0.0.1' } },
      spec: { names: { shortNames: ['oldfile'] } },
    });
    const words: string[] = [];
    const prepared = (keepDefinitions: boolean) =>
      prepareKubernetes({
        env: { KUBECONFIG: world.cluster.kubeconfig },
        say: (text) => words.push(text),
        keepDefinitions,
        version: '0.1.0',
        signal: new AbortController().signal,
      });
    const before = await revisions();
    await prepared(true);
    expect(words.at(-1)).toBe('Keeping 1 CRD of version 0.0.1 (--keep-crds); this is Sluice 0.1.0');
    expect(await revisions()).toEqual(before);
    await prepared(false);
    const after = await revisions();
    expect(Object.keys(after).filter((name) => after[name] !== before[name])).toEqual(['files.sluice.dev']);
    expect((await world.scene.api.get(`${DEFINITIONS}/files.sluice.dev`))?.spec).toMatchObject({
      names: { shortNames: ['sfile'] },
    });
  });
});
