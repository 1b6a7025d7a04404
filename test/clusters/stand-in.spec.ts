import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ClusterApi, type KubeResource, type LiveObject, type ObjectBody } from '#libs/kube/lean';
import { ApiGate, describeOnClusters, LeanCluster, testAuthority, until } from '#libs/testing';
import { StandInServers } from '../../bench/src/clusters/stand-in-server.js';
import {
  ClusterScene,
  config,
  configMap,
  configMapPath,
  deployment,
  deploymentPath,
  objects,
  plainKubeconfig,
} from '../../services/applier/src/shell/clusters/cluster.fixture.js';

const TOKEN = 'a-token';

const service = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 's', namespace: 'default' },
  spec: { selector: { app: 'web' }, ports: [{ port: 80, targetPort: 8080 }] },
};
const secret = {
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name: 'x', namespace: 'default' },
  data: { token: 'djE=' },
};
const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'x', namespace: 'default' } };
const web = deployment('web', 'a:1', {
  replicas: 2,
  template: {
    metadata: { labels: { app: 'web' } },
    spec: {
      containers: [
        { name: 'a', image: 'a:1', env: [{ name: 'A', value: 'b' }], ports: [{ containerPort: 80 }], args: ['x', 'y'] },
      ],
      volumes: [{ name: 'tmp', emptyDir: {} }],
    },
  },
});

/**
 * The stand-in of the bench is compared with a real API server: the same calls, and the answers that Sluice uses. What
 * a server makes up itself (names of objects, versions, times) is compared only as far as it is told apart.
 */
describeOnClusters('the stand-in for an API server, compared with a real one', 1, (clusters) => {
  let folder: string;
  let servers: StandInServers;
  let standIn: LeanCluster;
  let both: readonly LeanCluster[];
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'sluice-stand-in-'));
    const authority = await testAuthority();
    const { certFile, keyFile } = await authority.write(folder);
    const [key, cert] = [readFileSync(keyFile, 'utf8'), readFileSync(certFile, 'utf8')];
    servers = await StandInServers.start(1, { key, cert, token: TOKEN, bookmarkMs: 500 });
    const access = { server: servers.origins[0] as string, ca: authority.ca, token: TOKEN };
    // It has no program that could be ended.
    standIn = new LeanCluster(access, undefined as never);
    both = [clusters()[0] as LeanCluster, standIn];
  });
  afterAll(async () => {
    standIn.api.close();
    await servers.close();
    rmSync(folder, { recursive: true, force: true });
  });

  /** What both say to the same work. */
  const compare = async (work: (cluster: LeanCluster) => Promise<unknown>): Promise<unknown> => {
    const [real, other] = [await work(both[0] as LeanCluster), await work(both[1] as LeanCluster)];
    expect(other).toEqual(real);
    return real;
  };

  const withApi = (work: (api: ClusterApi, note: (what: string, outcome: unknown) => void) => Promise<void>) =>
    compare(async (cluster) => {
      const api = await ClusterApi.open({ kubeconfig: cluster.kubeconfig(), timeoutMs: 20_000 });
      const notes: unknown[] = [];
      try {
        await work(api, (what, outcome) => void notes.push([what, outcome]));
        return notes;
      } finally {
        await api.close();
      }
    });

  it('answers readiness, its kinds, and what it does not have alike', () =>
    withApi(async (api, note) => {
      await api.ready();
      for (const [apiVersion, kind] of [
        ['v1', 'ConfigMap'],
        ['v1', 'Namespace'],
        ['apps/v1', 'Deployment'],
        ['v1', 'Nothing'],
        ['nothing.example/v1', 'Nothing'],
      ] as const)
        note(kind, await api.resource(apiVersion, kind));
      note('read', await api.read(await served(api, 'v1', 'ConfigMap'), 'nothing', 'default'));
      const absent = { root: '/apis/nothing.example/v1', plural: 'nothings', isNamespaced: true };
      note('unserved', await refused(api.apply(absent, configMap('x', {}) as never, { manager: 'sluice' })));
    }));

  it('applies, tries out, refuses and deletes alike', () =>
    withApi(async (api, note) => {
      const maps = await served(api, 'v1', 'ConfigMap');
      const by = { manager: 'sluice' };
      const x = (data: object, more: object = {}): never => configMap('x', data, more) as never;
      note('elsewhere', await refused(api.apply(maps, x({}, { namespace: 'nowhere' }), by)));
      note('tried', seen(await api.apply(maps, x({ a: '1' }), { ...by, isDry: true })));
      note('nothing is stored', await api.read(maps, 'x', 'default'));
      const first = await api.apply(maps, x({ a: '1', b: '1' }, { labels: { l: '1' } }), by);
      note('created', seen(first));
      const same = await api.apply(maps, x({ a: '1', b: '1' }, { labels: { l: '1' } }), by);
      note('the same again', same.metadata.resourceVersion === first.metadata.resourceVersion);
      const { resourceVersion } = first.metadata;
      const second = await api.apply(maps, x({ a: '2' }, { resourceVersion }), by);
      note('updated', seen(second));
      note('is newer', BigInt(second.metadata.resourceVersion) > BigInt(resourceVersion));
      note('overtaken', await refused(api.apply(maps, x({ a: '3' }, { resourceVersion }), by)));
      note('a conflict', await refused(api.apply(maps, x({ a: '3', c: '1' }), { manager: 'me' })));
      note('no conflict', seen(await api.apply(maps, x({ a: '2', c: '1' }), { manager: 'me' })));
      note('forced', seen(await api.apply(maps, x({ a: '3' }), { manager: 'me', force: true })));
      const managers = (await api.read(maps, 'x', 'default'))?.metadata.managedFields ?? [];
      note('managers', await refused(api.writeManagers(maps, second, managers, 'sluice')));
      const now = (await api.read(maps, 'x', 'default')) as LiveObject;
      note('without managers', seen(await api.writeManagers(maps, now, [], 'sluice')));
      note('deleted in between', await refused(api.delete(maps, second)));
      await api.delete(maps, (await api.read(maps, 'x', 'default')) as LiveObject);
      note('gone', await refused(api.delete(maps, second)));
    }));

  it('says alike who has set the fields of each kind', () =>
    withApi(async (api, note) => {
      for (const object of [secret, account, service, web] as readonly LiveObject[]) {
        const resource = await served(api, object.apiVersion, object.kind);
        const live = await api.apply(resource, object as unknown as ObjectBody, { manager: 'sluice' });
        note(object.kind, [live.metadata.managedFields?.map(managerOf), live.metadata.generation]);
        // What the server adds must not be less in the stand-in: its size counts.
        note(`${object.kind} has`, Object.keys((live['spec'] ?? {}) as object).sort());
        await api.delete(resource, (await api.read(resource, live.metadata.name, 'default')) as LiveObject);
      }
    }));

  it('tells watches alike', () =>
    withApi(async (api, note) => {
      const maps = await served(api, 'v1', 'ConfigMap');
      const apply = (data: object, labels: object): Promise<LiveObject> =>
        api.apply(maps, configMap('x', data, { labels }) as never, { manager: 'sluice' });
      await apply({ a: '1' }, { set: 'one' });
      const events: unknown[] = [];
      const stop = api.follow(maps, {
        query: 'labelSelector=set%3Done',
        pick: (object) => object,
        onList: (all) => events.push(['listed', all.map(seen), all.map(({ kind }) => kind)]),
        onEvent: (event, object) => events.push([event, seen(object), object.kind]),
      });
      try {
        await until(() => events.length === 1, 'the objects are listed');
        await apply({ a: '2' }, { set: 'one' });
        await until(() => events.length === 2, 'the change is told');
        await apply({ a: '2' }, { set: 'other' });
        await until(() => events.length === 3, 'an object that does not match any more is gone');
        await apply({ a: '3' }, { set: 'one' });
        await until(() => events.length === 4, 'it is told again');
        await api.delete(maps, (await api.read(maps, 'x', 'default')) as LiveObject);
        await until(() => events.length === 5, 'the deletion is told');
      } finally {
        stop();
      }
      note('events', events);
    }));

  it('ends a watch that begins too far in the past, and sends bookmarks', async () => {
    const { api } = standIn;
    const first = await api.call('GET', '/api/v1/configmaps');
    const { resourceVersion } = (first.body as { readonly metadata: { readonly resourceVersion: string } }).metadata;
    for (let i = 0; i < 300; i += 1)
      await api.patch('/api/v1/namespaces/default', { metadata: { annotations: { i: `${i}` } } });
    const lines: (readonly [string, unknown])[] = [];
    const watch = (version: string): (() => void) =>
      api.watch(
        `/api/v1/configmaps?watch=1&allowWatchBookmarks=true&resourceVersion=${version}`,
        (type, object) => lines.push([type, (object as unknown as { readonly code?: number }).code]),
        () => undefined,
      );
    watch(resourceVersion);
    await until(() => lines.length > 0, 'the watch is answered');
    expect(lines).toEqual([['ERROR', 410]]);
    const end = watch(String(Number(resourceVersion) + 300));
    await until(() => lines.length > 1, 'a bookmark arrives');
    end();
    expect(lines[1]).toEqual(['BOOKMARK', undefined]);
  });

  it('gets the same calls from an applier, for a rollout, an edit by hand and a deletion', () =>
    compare(async (cluster) => {
      const gate = await ApiGate.before(cluster.access);
      const scene = new ClusterScene(cluster);
      try {
        await scene.start('one', plainKubeconfig(gate.url));
        await scene.bus.reported(({ kind }) => kind === 'announced');
        const roll = async (...list: readonly object[]): Promise<string> => {
          scene.bus.grant(config(...(list.length === 0 ? [] : [objects('a', list)])), { applyMs: 120_000 });
          const count = scene.bus.reports.length;
          if (list.includes(web) && cluster !== standIn) {
            await until(() => scene.api.get(deploymentPath('web')), 'the deployment is there');
            await scene.makeReady('web');
          }
          await until(
            () => scene.bus.reports.slice(count).some(({ verdict }) => verdict !== ''),
            'the lease has ended',
          );
          const { verdict, reason } = scene.bus.reports.at(-1) ?? { verdict: '', reason: '' };
          return `${verdict} ${reason}`;
        };
        const verdicts = [await roll(configMap('x', { a: '1' }), secret, service, web)];
        verdicts.push(await roll(configMap('x', { a: '2' }), secret, service, web));
        await until(() => gate.requests.some((line) => line.includes('watch=1')), 'the objects are watched');
        await scene.api.patch(configMapPath('x'), { data: { a: 'edited' } }, 'kubectl-edit');
        const { differences } = await scene.bus.reported(({ kind }) => kind === 'drifted');
        verdicts.push(await roll());
        const writes = gate.requests.filter((line) => !line.startsWith('GET'));
        const watched = gate.requests.filter((line) => line.includes('watch=1')).map((line) => line.split('?')[0]);
        const left = await Promise.all([configMapPath('x'), deploymentPath('web')].map((path) => scene.api.get(path)));
        return { verdicts, differences, writes, watched: [...new Set(watched)].sort(), left };
      } finally {
        await scene.end();
        await gate.close();
      }
    }));
});

async function served(api: ClusterApi, apiVersion: string, kind: string): Promise<KubeResource> {
  const found = await api.resource(apiVersion, kind);
  if (found === undefined) throw new Error(`${kind} is not served`);
  return found;
}

const managerOf = ({ manager, operation, apiVersion, fieldsType, fieldsV1, subresource }: Managers): unknown => [
  manager,
  operation,
  apiVersion,
  fieldsType,
  fieldsV1,
  subresource,
];
type Managers = NonNullable<LiveObject['metadata']['managedFields']>[number];

/** What does not differ from one server to the next. */
function seen(object: LiveObject): unknown {
  const { name, namespace, labels, managedFields } = object.metadata;
  const { apiVersion: _, kind: __, metadata: ___, ...rest } = object;
  return { name, namespace, labels, managers: managedFields?.map(managerOf), ...rest };
}

/** The answer of a server that refuses, as far as Sluice uses it. */
async function refused(work: Promise<unknown>): Promise<unknown> {
  try {
    return `done: ${JSON.stringify(await work)}`;
  } catch (error) {
    const { code, reason, message, causes } = error as Record<string, unknown>;
    return { code, reason, message: withoutNumbers(String(message)), causes };
  }
}

const withoutNumbers = (text: string): string => text.replace(/\([0-9a-f-]+\)/g, '(…)');
