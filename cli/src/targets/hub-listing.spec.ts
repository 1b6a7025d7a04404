import type { HubCluster, KubeSecret } from '#libs/kube';
import { clusterOfNode, clustersOf, nodeOfCluster, type HubListing, type HubState } from './hub-listing.js';

const cluster = (name: string, more: Partial<HubCluster> = {}): HubCluster => ({
  namespace: 'fleet',
  name,
  uid: `uid-${name}`,
  apiVersion: 'cluster.x-k8s.io/v1beta2',
  labels: { stage: 'prod' },
  annotations: {},
  unready: undefined,
  ...more,
});
const secret = (name: string, server: string, of?: string, more: Partial<KubeSecret> = {}): KubeSecret => ({
  namespace: 'fleet',
  name,
  uid: name,
  labels: of === undefined ? {} : { 'sluice.dev/cluster': of },
  created: '2026-01-01T00:00:00Z',
  data: { value: server },
  ...more,
});
const keyed = <T extends { readonly namespace: string; readonly name: string }>(all: readonly T[]): Map<string, T> =>
  new Map(all.map((one) => [`${one.namespace}/${one.name}`, one]));

/** A kubeconfig is its server here. */
function listed(
  clusters: readonly HubCluster[],
  own: readonly KubeSecret[],
  credentials: readonly KubeSecret[] = [],
  before: HubState['before'] = new Map(),
): HubListing {
  return clustersOf({
    clusters: keyed(clusters),
    own: keyed(own),
    credentials: keyed(credentials),
    clusterId: 'hub',
    before,
    serverIn: (text) => {
      if (text.startsWith('https:')) return text;
      throw new Error('it has no server');
    },
  });
}
const served = ({ clusters }: HubListing): readonly string[] =>
  clusters.map(({ name, kubeconfig }) => `${name} ${kubeconfig}`);
const reasons = ({ problems }: HubListing): readonly string[] =>
  problems.map(({ object, reason }) => `${object}: ${reason}`);

it('lists a Cluster with its Secret, and its labels', () => {
  const listing = listed([cluster('a')], [secret('a-kubeconfig', 'https://a')]);
  expect(listing.clusters).toEqual([
    {
      name: 'a.fleet',
      labels: {
        stage: 'prod',
        'sluice.dev/cluster': 'a',
        'sluice.dev/inventory': 'hub',
        'sluice.dev/namespace': 'fleet',
      },
      kubeconfig: 'https://a',
      onHub: {
        namespace: 'fleet',
        name: 'a',
        secret: { name: 'a-kubeconfig', key: 'value' },
        owner: { apiVersion: 'cluster.x-k8s.io/v1beta2', kind: 'Cluster', name: 'a', uid: 'uid-a' },
      },
      unavailable: undefined,
    },
  ]);
  expect([reasons(listing), [...listing.nodes.keys()]]).toEqual([[], ['a.fleet']]);
});

it('knows that a cluster outlives its Secret, and not its Cluster', () => {
  const { nodes } = listed(
    [cluster('a')],
    [secret('a-kubeconfig', 'https://a')],
    [secret('b-secret', 'https://b', 'b')],
  );
  expect([...nodes].map(([node, { outlives }]) => [node, outlives])).toEqual([
    ['a.fleet', false],
    ['b.fleet', true],
  ]);
});

it('waits for the Secret of a Cluster, and says so once the control plane is ready', () => {
  const early = listed([cluster('a', { unready: 'the control plane is not ready' })], []);
  expect([served(early), reasons(early), [...early.nodes.keys()]]).toEqual([[], [], ['a.fleet']]);
  expect(reasons(listed([cluster('a')], []))).toEqual([
    'Cluster fleet/a: there is no Secret a-kubeconfig, and the annotation sluice.dev/kubeconfig-secret names no other',
  ]);
});

it('says that a Cluster whose control plane is not ready is unavailable', () => {
  const { clusters } = listed([cluster('a', { unready: 'not ready' })], [secret('a-kubeconfig', 'https://a')]);
  expect(clusters.map(({ unavailable }) => unavailable)).toEqual(['not ready']);
});

it('prefers the credential that a Cluster refers to', () => {
  const annotated = cluster('a', { annotations: { 'sluice.dev/kubeconfig-secret': 'mine' } });
  const own = [secret('a-kubeconfig', 'https://a')];
  const mine = secret('mine', 'https://a/mine', 'a', { data: { kubeconfig: 'https://a/mine' } });
  expect(served(listed([annotated], own, [mine]))).toEqual(['a.fleet https://a/mine']);
  for (const credentials of [[], [secret('mine', 'https://a', 'b')]]) {
    const listing = listed([annotated], own, credentials);
    expect(served(listing).filter((one) => one.startsWith('a.'))).toEqual([]);
    expect(reasons(listing)[0]).toBe(
      'Cluster fleet/a: its annotation sluice.dev/kubeconfig-secret names the Secret mine, which does not exist with the label sluice.dev/cluster=a',
    );
  }
});

it('lists a Secret without a Cluster, and names the second of two for one cluster', () => {
  const [old, young] = [
    secret('z', 'https://a', 'a'),
    secret('b', 'https://b', 'a', { created: '2026-02-01T00:00:00Z' }),
  ];
  const listing = listed([], [], [young, old]);
  expect(served(listing)).toEqual(['a.fleet https://a']);
  expect(listing.clusters[0]?.labels).toMatchObject({ 'sluice.dev/cluster': 'a' });
  expect(reasons(listing)).toEqual(['Secret fleet/b: it is a second Secret for the cluster a, which uses z']);
  const both = listed([cluster('a')], [secret('a-kubeconfig', 'https://a')], [young]);
  expect(served(both)).toEqual(['a.fleet https://a']);
  expect(reasons(both)).toEqual(['Secret fleet/b: it is a second Secret for the cluster a, which uses a-kubeconfig']);
});

it.each([
  [{ value: 'nonsense' }, /the kubeconfig in the Secret a-kubeconfig cannot be used: it has no server/],
  [{ value: ' ' }, /the Secret a-kubeconfig has no key value or kubeconfig, or it is empty/],
])('names a kubeconfig that cannot be used: %j', (data, reason) => {
  const listing = listed([cluster('a')], [secret('a-kubeconfig', '', undefined, { data })]);
  expect(listing.clusters).toEqual([]);
  expect(reasons(listing)).toEqual([expect.stringMatching(reason)]);
});

it('serves neither of two with one API server, unless one had it before', () => {
  const all = [cluster('a'), cluster('b')];
  const own = [secret('a-kubeconfig', 'https://a'), secret('b-kubeconfig', 'https://a')];
  const unknown = listed(all, own);
  expect(served(unknown)).toEqual([]);
  expect(reasons(unknown)).toEqual([
    'Cluster fleet/a: its kubeconfig is for the API server https://a, as that of Cluster fleet/b',
    'Cluster fleet/b: its kubeconfig is for the API server https://a, as that of Cluster fleet/a',
  ]);
  const { servers } = listed([cluster('b')], [secret('b-kubeconfig', 'https://a')]);
  const known = listed(all, own, [], servers);
  expect(served(known)).toEqual(['b.fleet https://a']);
  expect(reasons(known)).toHaveLength(1);
});

it('refuses names that no node can have, and finds the Cluster of a node', () => {
  expect(reasons(listed([], [], [secret('s', 'https://a', 'Upper')]))).toEqual([
    'Secret fleet/s: Upper.fleet cannot be the name of a node',
  ]);
  const of = { namespace: 'fleet', name: 'a.b' };
  expect(clusterOfNode(nodeOfCluster(of.namespace, of.name))).toEqual(of);
});
