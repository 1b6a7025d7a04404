import { createHash } from 'node:crypto';
import type { Fragment } from '#libs/contracts';
import { checkManifest, COMPOSITE_KINDS, FUNCTION_KINDS } from '#libs/manifests';
import { compileFragments, outcomeOfReview, renderNode, reviewConfig } from '#libs/rules';
import { importDocuments } from './import-documents.js';

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
const resource = (kind: string, name: string, spec: object, more: object = {}): object => ({
  apiVersion: 'batch.sdewan.akraino.org/v1alpha1',
  kind,
  metadata: { name, namespace: 'default', labels: { sdewanPurpose: 'cnf1' }, ...more },
  spec,
  status: { state: 'In Sync' },
});
const CNF1 = { nodeSelector: { matchLabels: { sdewanPurpose: 'cnf1' } } };
const shown = (...documents: readonly object[]) => {
  const { manifests, words } = importDocuments(documents);
  return {
    manifests: manifests.map(({ kind, metadata, spec }) => [kind, (metadata as { name: string }).name, spec]),
    words,
  };
};

/** The Deployment of the function. */
const deployment = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'cnf', labels: { sdewanPurpose: 'cnf1' } },
  spec: {
    template: {
      metadata: {
        annotations: {
          'k8s.plugin.opnfv.org/nfn-network':
            '{"type": "ovn4nfv", "interface": [{"name": "ovn-net1", "interface": "net0"}, {"name": "ovn-net2", "interface": "net1"}]}',
        },
      },
    },
  },
};

/** A resource of each kind, as the controller takes it. */
const RESOURCES: readonly object[] = [
  resource('Mwan3Policy', 'balance1', {
    members: [
      { network: 'ovn-net1', weight: 2, metric: 2 },
      { network: 'ovn-net2', weight: 3, metric: 3 },
    ],
  }),
  resource('Mwan3Rule', 'http-rule', {
    policy: 'balance1',
    src_ip: '192.168.1.2',
    src_port: '',
    dest_ip: '0.0.0.0/0',
    dest_port: '80',
    proto: 'tcp',
    family: 'ipv4',
    sticky: '0',
    timeout: '600',
  }),
  resource('FirewallZone', 'wan', { name: 'other', network: ['ovn-net1'], input: 'ACCEPT', masq: '1', mtu_fix: '1' }),
  resource('FirewallZone', 'lan', { network: ['ovn-net2'] }),
  resource('FirewallRule', 'rule-1', {
    src: 'wan',
    src_ip: '192.168.2.2',
    src_port: '80',
    proto: 'tcp',
    target: 'REJECT',
  }),
  resource('FirewallSNAT', 'snat1', { src: 'lan', dest: 'wan', src_dip: '192.0.2.1', proto: 'icmp' }),
  resource('FirewallDNAT', 'dnat1', {
    src: 'wan',
    src_dport: '19900',
    dest: 'lan',
    dest_ip: '192.168.1.1',
    proto: 'tcp',
  }),
  resource('FirewallForwarding', 'forwarding1', { src: 'lan', dest: 'wan' }),
  resource('IpsecProposal', 'ipsecproposal', {
    encryption_algorithm: 'aes128',
    hash_algorithm: 'sha256',
    dh_group: 'modp3072',
  }),
  resource('IpsecSite', 'ipsecsite', {
    name: 'siteA',
    type: 'VTI-based',
    remote: '%any',
    pre_shared_key: 'test_key',
    authentication_method: 'psk',
    remote_identifier: 'host',
    crypto_proposal: ['ipsecproposal'],
    force_crypto_proposal: '0',
    connections: [{ name: 'connB', conn_type: 'tunnel', mode: 'start', mark: '42', local_subnet: '192.168.1.0/24' }],
  }),
  resource('IpsecHost', 'ipsechost', {
    type: 'VTI-based',
    remote: '10.10.70.31',
    pre_shared_key: 'test_key',
    authentication_method: 'psk',
    crypto_proposal: ['ipsecproposal'],
    connections: [{ name: 'connA', conn_type: 'tunnel', mode: 'start', local_sourceip: '%config', if_id: '7' }],
  }),
  resource('CNFNAT', 'nat1', { src_ip: '10.10.10.10', proto: 'tcp', dest: 'net0', target: 'MASQUERADE', index: '0' }),
  resource('CNFRoute', 'route1', { dst: '10.11.0.0/16', gw: '10.10.10.1', dev: 'net0', table: 'cnf' }),
  resource('CNFRouteRule', 'routerule1', { src: '10.0.0.0/8', not: true, prio: '10', table: '40' }),
  resource('NetworkFirewallRule', 'nfw1', { src: 'net0', dest_port: '22', proto: 'tcp', target: 'DROP' }),
  resource('CNFService', 'service1', { fullname: 'HTTPD.default.svc.cluster.local.', port: '2288', dport: '2288' }),
  resource('CNFLocalService', 'local1', {
    localservice: 'a.default.svc.cluster.local',
    localport: '80',
    remoteservice: 'b.example.com',
    remoteport: '8080',
  }),
  resource('CNFHubSite', 'hub1', { type: 'Hub', subnet: '10.7.0.0/16', hubip: '10.0.0.3' }),
];

test('resources of each kind become fragments for the nodes of their purpose', () => {
  const { manifests, words } = shown(deployment, ...RESOURCES);
  expect(words).toEqual([
    'Mwan3Rule/http-rule: renamed to httprule: names are letters and digits, and unique for each kind',
    'FirewallRule/rule-1: renamed to rule1: names are letters and digits, and unique for each kind',
  ]);
  expect(manifests.slice(0, 3)).toEqual([
    [
      'Mwan3Policy',
      'balance1',
      {
        ...CNF1,
        members: [
          { network: 'net0', weight: 2, metric: 2 },
          { network: 'net1', weight: 3, metric: 3 },
        ],
      },
    ],
    [
      'Mwan3Rule',
      'httprule',
      {
        ...CNF1,
        policy: 'balance1',
        src_ip: '192.168.1.2',
        dest_ip: '0.0.0.0/0',
        dest_port: '80',
        proto: 'tcp',
        family: 'ipv4',
        sticky: '0',
        timeout: '600',
      },
    ],
    ['FirewallZone', 'wan', { ...CNF1, network: ['net0'], masq: '1', mtu_fix: '1', input: 'ACCEPT' }],
  ]);
  expect(manifests.find(([kind]) => kind === 'IpsecSite')?.[2]).toMatchObject({ remote: 'any', type: 'VTI-based' });
  expect(manifests.find(([kind]) => kind === 'CNFService')?.[2]).toMatchObject({
    fullname: 'httpd.default.svc.cluster.local',
  });
  const kinds = [...FUNCTION_KINDS, ...COMPOSITE_KINDS]
    .map(({ kind }) => kind)
    .filter((kind) => kind !== 'SdewanApplication');
  expect(new Set(manifests.map(([kind]) => kind))).toEqual(new Set(kinds));
});

test('what is imported passes the review, and waits only for the addresses of its names', () => {
  const { manifests } = importDocuments([deployment, ...RESOURCES]);
  const fragments = manifests.map((manifest): Fragment => {
    const checked = checkManifest(manifest, 'place');
    if (!checked.ok) throw new Error(JSON.stringify(checked.reasons));
    return checked.fragment;
  });
  const labels = { sdewanPurpose: 'cnf1' };
  const node = { name: 'cnf-1', labels };
  const { config, reasons } = renderNode(compileFragments(fragments).forNode(labels), node, sha256);
  const capabilities = FUNCTION_KINDS.map(({ kind }) => `kind:${kind}`);
  const found = [...reasons, ...reviewConfig(config, { name: 'cnf-1', capabilities })];
  const applied = fragments.map(({ kind, name }) => `${kind}/${name}`);
  const { needs } = outcomeOfReview(found, { applied, deleted: [] }, false);
  expect(needs).toEqual([
    'ResolvedName/a.default.svc.cluster.local',
    'ResolvedName/b.example.com',
    'ResolvedName/httpd.default.svc.cluster.local',
  ]);
});

test('what cannot be imported is reported with the reason', () => {
  const { manifests, words } = shown(
    resource('SdewanApplication', 'app', { podSelector: { matchLabels: { app: 'a' } }, appNamespace: 'default' }),
    resource('CNFStatus', 'cnf-status', {}),
    resource('CNFRoute', 'nobody', { dst: '10.0.0.0/8', dev: 'net0' }, { labels: {} }),
    resource('CNFRoute', 'six', { dst: '2001:db8::/32', dev: 'net0' }),
    resource('CNFRoute', 'more', { dst: '10.0.0.0/8', dev: 'net0', metric: '5' }),
    resource('Mwan3Policy', 'p', { members: [{ network: 'ovn-net1', weight: 1, metric: 1 }] }),
    { ...resource('CNFRoute', 'old', { dst: '10.0.0.0/8', dev: 'net0' }), apiVersion: 'batch.sdewan.akraino.org/v1' },
  );
  expect(words).toEqual([
    'skipped CNFRoute/old: unsupported apiVersion "batch.sdewan.akraino.org/v1"; use batch.sdewan.akraino.org/v1alpha1',
    'skipped SdewanApplication/app: it selects pods, and Sluice needs their addresses: write an SdewanApplication with an iplist',
    'skipped CNFStatus/cnf-status: the replicas of a function are asked for their status without it',
    'skipped CNFRoute/nobody: it has no label sdewanPurpose, so no function has it',
    'CNFRoute/more: skipped metric: unsupported field',
    'Mwan3Policy/p: network: the interface of the network ovn-net1 is not known: import the Deployment of the function too, or write the name of the interface',
    'skipped CNFRoute/six: spec.dst must be "default", or an IPv4 address or network such as 10.0.0.0/8: the function knows only IPv4',
  ]);
  expect(manifests.map(([, name]) => name)).toEqual(['more', 'p']);
});

test('a resource that is being deleted is not brought back', () => {
  const leaving = {
    namespace: 'default',
    labels: { sdewanPurpose: 'cnf1' },
    deletionTimestamp: '2024-01-01T00:00:00Z',
  };
  expect(shown(resource('CNFRoute', 'a', { dst: '10.0.0.0/8', dev: 'net0' }, leaving))).toEqual({
    manifests: [],
    words: ['skipped CNFRoute/a: it is being deleted'],
  });
});

test('what the controller writes into a resource is no field that is missed', () => {
  const nat = resource('FirewallSNAT', 'x', { name: 'x', target: 'SNAT', dest: 'wan', src_dip: '192.0.2.1' });
  expect(shown(nat)).toEqual({
    manifests: [['FirewallSNAT', 'x', { ...CNF1, dest: 'wan', src_dip: '192.0.2.1' }]],
    words: [],
  });
});

test('resources that would be one object on a function are one too many', () => {
  const route = (namespace: string, purpose = 'cnf1') =>
    resource('CNFRoute', 'a', { dst: '10.0.0.0/8', dev: 'net0' }, { namespace, labels: { sdewanPurpose: purpose } });
  expect(shown(route('one'), route('two')).words).toEqual([
    'skipped CNFRoute/a: in the namespace two: on a function it would be one object with CNFRoute/a of the namespace one; rename one of them',
  ]);
  const redirects = [
    resource('FirewallSNAT', 'x', { dest: 'wan', src_dip: '192.0.2.1' }),
    resource('FirewallDNAT', 'x', { src: 'wan' }),
  ];
  expect(shown(...redirects).words).toEqual([
    'skipped FirewallDNAT/x: in the namespace default: on a function it would be one object with FirewallSNAT/x of the namespace default; rename one of them',
  ]);
});

test('resources of two functions may have one name, and what refers to them follows', () => {
  const both = (namespace: string, purpose: string) => {
    const more = { namespace, labels: { sdewanPurpose: purpose } };
    return [
      resource('Mwan3Policy', 'p', { members: [{ network: 'a', weight: 1, metric: 1 }] }, more),
      resource('Mwan3Rule', 'r', { policy: 'p' }, more),
    ];
  };
  const { manifests } = shown(...both('one', 'cnf1'), ...both('two', 'cnf-2'));
  expect(manifests.map(([kind, name, spec]) => [kind, name, (spec as { policy?: string }).policy])).toEqual([
    ['Mwan3Policy', 'p', undefined],
    ['Mwan3Rule', 'r', 'p'],
    ['Mwan3Policy', 'pcnf2', undefined],
    ['Mwan3Rule', 'rcnf2', 'pcnf2'],
  ]);
});

test('labels stay, so that other tools find the fragments', () => {
  const labels = { sdewanPurpose: 'cnf1', 'sdewan-bucket-type': 'app-intent' };
  const [manifest] = importDocuments([
    resource('CNFRoute', 'a', { dst: '10.0.0.0/8', dev: 'net0' }, { labels }),
  ]).manifests;
  expect(manifest?.metadata).toEqual({ name: 'a', labels });
});
