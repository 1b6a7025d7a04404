import type { Manifest } from './manifest.js';
import { manifestOf } from './manifest.fixture.js';

const vrf = (spec: object): Manifest => manifestOf('Vrf', { vrf: 'internet', ...spec });
export const filters = (...list: readonly object[]): Manifest => vrf({ import: list });
export const line = (spec: object): object => ({ cidr: '10.0.0.0/8', action: 'permit', ...spec });
const l2 = (spec: object): Manifest => manifestOf('Layer2Network', { id: 100, ...spec });
const table = (spec: object): Manifest => manifestOf('RoutingTable', { tableId: 100, ...spec });
const peering = (spec: object): Manifest => manifestOf('BgpPeering', { network: 'storage', remoteAs: 64_512, ...spec });
const anycastMac = '02:00:00:00:00:01';

/** Valid specs, by what they show. */
export const GOOD_NETWORKS: readonly (readonly [string, Manifest])[] = [
  ['a VRF', vrf({})],
  [
    'a VRF with all fields',
    vrf({
      seq: 65_534,
      vni: 16_777_215,
      routeTarget: '64512:100',
      vtep: '192.0.2.1',
      localAs: 4_294_967_295,
      mtu: 9_000,
      import: [line({ ge: 8, le: 32 }), line({ ge: 16 })],
      export: [{ cidr: '2001:db8::/32', action: 'deny', seq: 4_294_967_295, le: 128 }],
      aggregate: ['10.0.0.0/8'],
      sbrPrefixes: ['0.0.0.0/0', '::/0'],
      communities: ['64512:1', 'no-export'],
      loopbacks: [{ name: 'lo.internet', subnet: '192.0.2.7/32' }],
    }),
  ],
  ['a name of 12 characters', vrf({ vrf: 'abcdefghijkl' })],
  ['a route target with a four-byte AS number', vrf({ vni: 1, routeTarget: '4200000000:65535' })],
  ['a route target with an IP address', vrf({ vni: 1, routeTarget: '192.0.2.1:65535' })],
  ['a loopback with a template', vrf({ loopbacks: [{ name: 'a', subnet: '{{ node.labels.loopback }}/32' }] })],
  ['a filter with a template', filters({ cidr: '{{ node.labels.net }}', action: 'permit', ge: 30 })],
  ['a layer-2 network', l2({})],
  [
    'a layer-2 network with all fields',
    l2({
      id: 4_094,
      mtu: 9_000,
      vni: 1,
      vtep: '2001:db8::1',
      trunk: 'bond0',
      anycastMac,
      anycastGateways: ['10.0.0.1/24', '2001:db8::1/64'],
      advertiseNeighbors: true,
      createMacvlanInterface: true,
      neighSuppression: false,
      disableSegmentation: true,
      vrf: 'internet',
    }),
  ],
  ['a gateway in a /31 network', l2({ anycastMac, anycastGateways: ['10.0.0.0/31'] })],
  ['a routing table', table({})],
  [
    'a routing table with routes and rules',
    table({
      routes: [
        { to: '0.0.0.0/0', via: '192.0.2.1', interface: 'eth0' },
        { to: '10.0.0.0/8', blackhole: true },
        { to: '::/0', interface: 'eth0' },
      ],
      rules: [
        { priority: 32_765, from: '10.1.0.0/16' },
        { priority: 1, interface: 'eth1', to: '10.2.0.0/16' },
      ],
    }),
  ],
  ['a peering', peering({})],
  [
    'a peering with all fields',
    peering({
      localAs: 1,
      vrf: 'internet',
      import: [line({})],
      export: [line({ action: 'deny' })],
      maximumPrefixes: 10,
      holdTime: '90s',
      keepaliveTime: '30s',
      bfd: true,
    }),
  ],
];

/** Invalid specs that the schema detects too. */
export const BAD_NETWORKS: readonly (readonly [string, Manifest, string, string])[] = [
  ['no VRF', manifestOf('Vrf', {}), 'spec.vrf', 'required'],
  ['a name of 13 characters', vrf({ vrf: 'abcdefghijklm' }), 'spec.vrf', 'bad-vrf'],
  ['a reserved name', vrf({ vrf: 'default' }), 'spec.vrf', 'bad-vrf'],
  ['a name that is an option', vrf({ vrf: '-a' }), 'spec.vrf', 'bad-vrf'],
  ['a name with a slash', vrf({ vrf: 'a/b' }), 'spec.vrf', 'bad-vrf'],
  ['a seq of 0', vrf({ seq: 0 }), 'spec.seq', 'out-of-range'],
  ['a seq that is too high', vrf({ seq: 65_535 }), 'spec.seq', 'out-of-range'],
  ['a VNI without a route target', vrf({ vni: 100 }), 'spec.routeTarget', 'required'],
  ['a route target without a VNI', vrf({ routeTarget: '1:1' }), 'spec.vni', 'required'],
  ['a VNI of 25 bits', vrf({ vni: 16_777_216, routeTarget: '1:1' }), 'spec.vni', 'out-of-range'],
  ['a vtep without a VNI', vrf({ vtep: '192.0.2.1' }), 'spec.vtep', 'forbidden'],
  ['both kinds of communities', vrf({ community: '1:1', communities: ['1:2'] }), 'spec.communities', 'forbidden'],
  ['a filter with an unknown action', filters(line({ action: 'allow' })), 'spec.import[0].action', 'unknown-word'],
  ['ge of 129', filters({ cidr: '::/0', action: 'permit', ge: 129 }), 'spec.import[0].ge', 'out-of-range'],
  ['a negative le', filters(line({ cidr: '0.0.0.0/0', le: -1 })), 'spec.import[0].le', 'out-of-range'],
  ['a filter with seq 0', filters(line({ seq: 0 })), 'spec.import[0].seq', 'out-of-range'],
  ['an unknown field in a filter', filters(line({ eq: 8 })), 'spec.import[0].eq', 'unknown-field'],
  [
    'a loopback that is not a single address',
    vrf({ loopbacks: [{ name: 'a', subnet: '10.0.0.0/24' }] }),
    'spec.loopbacks[0].subnet',
    'bad-cidr',
  ],
  [
    'a loopback of 16 characters',
    vrf({ loopbacks: [{ name: 'a'.repeat(16), subnet: '10.0.0.1/32' }] }),
    'spec.loopbacks[0].name',
    'bad-interface',
  ],
  ['no VLAN', manifestOf('Layer2Network', {}), 'spec.id', 'required'],
  ['VLAN 0', l2({ id: 0 }), 'spec.id', 'out-of-range'],
  ['VLAN 4095', l2({ id: 4_095 }), 'spec.id', 'out-of-range'],
  ['an MTU too small', l2({ mtu: 999 }), 'spec.mtu', 'out-of-range'],
  ['an MTU too large', l2({ mtu: 9_001 }), 'spec.mtu', 'out-of-range'],
  ['gateways without a MAC', l2({ anycastGateways: ['10.0.0.1/24'] }), 'spec.anycastMac', 'required'],
  ['a multicast MAC', l2({ anycastMac: '01:00:00:00:00:01' }), 'spec.anycastMac', 'bad-mac'],
  ['a MAC of zeros', l2({ anycastMac: '00:00:00:00:00:00' }), 'spec.anycastMac', 'bad-mac'],
  ['suppression without a tunnel', l2({ neighSuppression: true }), 'spec.neighSuppression', 'forbidden'],
  ['a trunk with a space', l2({ trunk: 'eth 0' }), 'spec.trunk', 'bad-interface'],
  ['a routing table 0', table({ tableId: 0 }), 'spec.tableId', 'out-of-range'],
  ['the main table', table({ tableId: 254 }), 'spec.tableId', 'reserved'],
  ['a route without a next hop', table({ routes: [{ to: '10.0.0.0/8' }] }), 'spec.routes[0]', 'exactly-one'],
  [
    'a blackhole with a next hop',
    table({ routes: [{ to: '10.0.0.0/8', blackhole: true, via: '192.0.2.1' }] }),
    'spec.routes[0]',
    'exactly-one',
  ],
  ['a rule without a condition', table({ rules: [{ priority: 1 }] }), 'spec.rules[0]', 'required'],
  [
    'a rule after the main table',
    table({ rules: [{ priority: 32_766, from: '10.0.0.0/8' }] }),
    'spec.rules[0].priority',
    'out-of-range',
  ],
  ['a peering with AS 0', peering({ remoteAs: 0 }), 'spec.remoteAs', 'out-of-range'],
  ['a peering with an invalid network name', peering({ network: 'A B' }), 'spec.network', 'bad-name'],
  ['a hold time without a keepalive time', peering({ holdTime: '90s' }), 'spec.keepaliveTime', 'required'],
];

/** Invalid specs that need arithmetic, which a schema cannot do. */
export const BAD_IN_NUMBERS: readonly (readonly [string, Manifest, string, string])[] = [
  ['an address with host bits', filters(line({ cidr: '10.0.0.1/8' })), 'spec.import[0].cidr', 'bad-cidr'],
  ['an IPv6 address with host bits', vrf({ aggregate: ['2001:db8::1/32'] }), 'spec.aggregate[0]', 'bad-cidr'],
  ['an octal address', vrf({ sbrPrefixes: ['010.0.0.0/8'] }), 'spec.sbrPrefixes[0]', 'bad-cidr'],
  ['a prefix length of 33', filters(line({ cidr: '10.0.0.0/33' })), 'spec.import[0].cidr', 'bad-cidr'],
  ['ge above le', filters(line({ ge: 24, le: 16 })), 'spec.import[0]', 'out-of-range'],
  ['a ge of 33 for IPv4', filters(line({ ge: 33 })), 'spec.import[0].ge', 'out-of-range'],
  ['le shorter than the network', filters(line({ le: 7 })), 'spec.import[0].le', 'out-of-range'],
  ['a duplicate filter', filters(line({}), line({ seq: 9 })), 'spec.import[1]', 'duplicate'],
  ['a duplicate seq', filters(line({}), line({ le: 16, seq: 1 })), 'spec.import[1].seq', 'duplicate'],
  [
    'a seq that another filter gets by its position',
    filters(line({ seq: 2 }), line({ le: 9 })),
    'spec.import[1].seq',
    'duplicate',
  ],
  [
    'a route target with two four-byte numbers',
    vrf({ vni: 1, routeTarget: '65536:65536' }),
    'spec.routeTarget',
    'bad-route-target',
  ],
  ['a community of 17 bits', vrf({ community: '65536:1' }), 'spec.community', 'bad-community'],
  ['an unknown community', vrf({ community: 'everybody' }), 'spec.community', 'bad-community'],
  [
    'a gateway that is a network address',
    l2({ anycastMac, anycastGateways: ['10.0.0.0/24'] }),
    'spec.anycastGateways[0]',
    'bad-cidr',
  ],
  [
    'a gateway that is a broadcast address',
    l2({ anycastMac, anycastGateways: ['10.0.0.255/24'] }),
    'spec.anycastGateways[0]',
    'bad-cidr',
  ],
  [
    'the same gateway twice',
    l2({ anycastMac, anycastGateways: ['10.0.0.1/24', '10.0.0.1/24'] }),
    'spec.anycastGateways[1]',
    'duplicate',
  ],
  [
    'an IPv6 gateway with an MTU that is too small',
    l2({ mtu: 1_279, anycastMac, anycastGateways: ['2001:db8::1/64'] }),
    'spec.mtu',
    'out-of-range',
  ],
  ['a hold time that is too short', peering({ holdTime: '2s', keepaliveTime: '1s' }), 'spec.holdTime', 'out-of-range'],
  [
    'a keepalive time that is not below the hold time',
    peering({ holdTime: '30s', keepaliveTime: '30s' }),
    'spec.keepaliveTime',
    'out-of-range',
  ],
];
