import type { Config, ConfigEntry } from '#libs/contracts';
import { clusterKinds, resources, type OnHub } from './cluster-kinds.js';
import { sync } from './flux.fixture.js';

const owner = { apiVersion: 'cluster.x-k8s.io/v1beta2', kind: 'Cluster', name: 'a', uid: '1' };
const onHub = (name = 'a', more: Partial<OnHub> = {}): OnHub => ({
  namespace: 'fleet',
  name,
  secret: { name: `${name}-kubeconfig`, key: 'value' },
  owner,
  ...more,
});
const named = (name: string): Config => ({ fragments: [{ ...sync('a', { placement: 'hub' }), name } as ConfigEntry] });
const namesOf = (cluster: string, fragment: string): readonly string[] => [
  ...new Set(
    clusterKinds(onHub(cluster))
      .entries(named(fragment))
      .map(({ spec }) => (spec['object'] as unknown as { readonly metadata: { readonly name: string } }).metadata.name),
  ),
];

it('a FluxSync on a hub is in the namespace of the Cluster, and applied with its kubeconfig', () => {
  const entries = clusterKinds(onHub()).entries(named('apps'));
  expect(entries.flatMap(resources)).toEqual([
    'hub2:GitRepository.source.toolkit.fluxcd.io/fleet/a.apps',
    'hub2:Kustomization.kustomize.toolkit.fluxcd.io/fleet/a.apps',
  ]);
  expect(entries[1]?.spec['object']).toMatchObject({
    metadata: { namespace: 'fleet', name: 'a.apps', ownerReferences: [owner] },
    spec: {
      sourceRef: { kind: 'GitRepository', name: 'a.apps' },
      kubeConfig: { secretRef: { name: 'a-kubeconfig', key: 'value' } },
    },
  });
});

it('no two clusters of a hub share a name, whatever they are called', () => {
  expect([namesOf('a-b', 'c'), namesOf('a', 'b-c'), namesOf('a.b', 'c')]).toEqual([['a-b.c'], ['a.b-c'], ['a.b.c']]);
});

it('a name that is too long for a label is shortened, and stays unique', () => {
  const long = 'x'.repeat(60);
  const [one = '', other = ''] = [...namesOf(long, 'apps'), ...namesOf(`${long}y`, 'apps')];
  expect([one.length, other.length, one === other]).toEqual([63, 63, false]);
  expect(one).toMatch(/^x{52}-[0-9a-f]{10}$/);
});
