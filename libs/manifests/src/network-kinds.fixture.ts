import type { Manifest } from './manifest.js';
import { manifestOf } from './manifest.fixture.js';

const vrf = (spec: object): Manifest => manifestOf('Vrf', { vrf: 'internet', ...spec });
export const filters = (...list: readonly object[]): Manifest => vrf({ import: list });
export const line = (spec: object): object => ({ cidr: '10.0.0.0/8', action: 'permit', ...spec });
const l2 = (spec: object): Manifest => manifestOf('Layer2Network', { id: 100, ...spec });
const table = (spec: object): Manifest => manifestOf('RoutingTable', { tableId: 100, ...spec });
const peering = (spec: object): Manifest => manifestOf('BgpPeering', { network: 'storage', remoteAs: 64_512, ...spec });
const anycastMac = '02:00:00:00:00:01';

/** What must be taken, by what it shows. */
export const GOOD_NETWORKS: readonly (readonly [string, Manifest])[] = [
  ['a VRF', vrf({})],
  [
    'a VRF with everything',
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
  ['a route target of an AS of four bytes', vrf({ vni: 1, routeTarget: '4200000000:65535' })],
  ['a route target of an address', vrf({ vni: 1, routeTarget: '192.0.2.1:65535' })],
  ['a loopback that a template gives', vrf({ loopbacks: [{ name: 'a', subnet: '{{ node.labels.loopback }}/32' }] })],
  ['a filter of a templated network', filters({ cidr: '{{ node.labels.net }}', action: 'permit', ge: 30 })],
  ['a layer-2 network', l2({})],
  [
    'a layer-2 network with everything',
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
  ['a gateway in a network of two', l2({ anycastMac, anycastGateways: ['10.0.0.0/31'] })],
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
    'a peering with everything',
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

/** What the schema sees too. */
export const BAD_NETWORKS: readonly (readonly [string, Manifest, string, string])[] = [
  ['no VRF', manifestOf('Vrf', {}), 'spec.vrf', 'required'],
  ['a name of 13 characters', vrf({ vrf: 'abcdefghijklm' }), 'spec.vrf', 'bad-vrf'],
  ['a name that is a word', vrf({ vrf: 'default' }), 'spec.vrf', 'bad-vrf'],
  ['a name that is an option', vrf({ vrf: '-a' }), 'spec.vrf', 'bad-vrf'],
  ['a name with a slash', vrf({ vrf: 'a/b' }), 'spec.vrf', 'bad-vrf'],
  ['no place', vrf({ seq: 0 }), 'spec.seq', 'out-of-range'],
  ['a place too high', vrf({ seq: 65_535 }), 'spec.seq', 'out-of-range'],
  ['a VNI alone', vrf({ vni: 100 }), 'spec.routeTarget', 'required'],
  ['a route target alone', vrf({ routeTarget: '1:1' }), 'spec.vni', 'required'],
  ['a VNI of 25 bits', vrf({ vni: 16_777_216, routeTarget: '1:1' }), 'spec.vni', 'out-of-range'],
  ['a tunnel of nothing', vrf({ vtep: '192.0.2.1' }), 'spec.vtep', 'forbidden'],
  ['both kinds of communities', vrf({ community: '1:1', communities: ['1:2'] }), 'spec.communities', 'forbidden'],
  ['an import of another action', filters(line({ action: 'allow' })), 'spec.import[0].action', 'unknown-word'],
  ['ge of 129', filters({ cidr: '::/0', action: 'permit', ge: 129 }), 'spec.import[0].ge', 'out-of-range'],
  ['le below nothing', filters(line({ cidr: '0.0.0.0/0', le: -1 })), 'spec.import[0].le', 'out-of-range'],
  ['seq 0', filters(line({ seq: 0 })), 'spec.import[0].seq', 'out-of-range'],
  ['a field too many', filters(line({ eq: 8 })), 'spec.import[0].eq', 'unknown-field'],
  [
    'a loopback for many',
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
  ['the MAC of a group', l2({ anycastMac: '01:00:00:00:00:01' }), 'spec.anycastMac', 'bad-mac'],
  ['a MAC of nothing', l2({ anycastMac: '00:00:00:00:00:00' }), 'spec.anycastMac', 'bad-mac'],
  ['suppression without a tunnel', l2({ neighSuppression: true }), 'spec.neighSuppression', 'forbidden'],
  ['a trunk with a blank', l2({ trunk: 'eth 0' }), 'spec.trunk', 'bad-interface'],
  ['no table', table({ tableId: 0 }), 'spec.tableId', 'out-of-range'],
  ['the main table', table({ tableId: 254 }), 'spec.tableId', 'reserved'],
  ['a route to nowhere', table({ routes: [{ to: '10.0.0.0/8' }] }), 'spec.routes[0]', 'exactly-one'],
  [
    'a blackhole with a way',
    table({ routes: [{ to: '10.0.0.0/8', blackhole: true, via: '192.0.2.1' }] }),
    'spec.routes[0]',
    'exactly-one',
  ],
  ['a rule for all', table({ rules: [{ priority: 1 }] }), 'spec.rules[0]', 'required'],
  [
    'a rule behind the main table',
    table({ rules: [{ priority: 32_766, from: '10.0.0.0/8' }] }),
    'spec.rules[0].priority',
    'out-of-range',
  ],
  ['a peering with nobody', peering({ remoteAs: 0 }), 'spec.remoteAs', 'out-of-range'],
  ['a peering over nothing', peering({ network: 'A B' }), 'spec.network', 'bad-name'],
  ['half of the timers', peering({ holdTime: '90s' }), 'spec.keepaliveTime', 'required'],
];

/** What needs arithmetic, and no schema sees. */
export const BAD_IN_NUMBERS: readonly (readonly [string, Manifest, string, string])[] = [
  ['host bits', filters(line({ cidr: '10.0.0.1/8' })), 'spec.import[0].cidr', 'bad-cidr'],
  ['host bits of IPv6', vrf({ aggregate: ['2001:db8::1/32'] }), 'spec.aggregate[0]', 'bad-cidr'],
  ['octal', vrf({ sbrPrefixes: ['010.0.0.0/8'] }), 'spec.sbrPrefixes[0]', 'bad-cidr'],
  ['a prefix of 33', filters(line({ cidr: '10.0.0.0/33' })), 'spec.import[0].cidr', 'bad-cidr'],
  ['ge above le', filters(line({ ge: 24, le: 16 })), 'spec.import[0]', 'out-of-range'],
  ['ge of IPv6 for IPv4', filters(line({ ge: 33 })), 'spec.import[0].ge', 'out-of-range'],
  ['le shorter than the network', filters(line({ le: 7 })), 'spec.import[0].le', 'out-of-range'],
  ['the same line twice', filters(line({}), line({ seq: 9 })), 'spec.import[1]', 'duplicate'],
  ['the same place twice', filters(line({}), line({ le: 16, seq: 1 })), 'spec.import[1].seq', 'duplicate'],
  [
    'a place that another takes by its order',
    filters(line({ seq: 2 }), line({ le: 9 })),
    'spec.import[1].seq',
    'duplicate',
  ],
  [
    'a route target of two long numbers',
    vrf({ vni: 1, routeTarget: '65536:65536' }),
    'spec.routeTarget',
    'bad-route-target',
  ],
  ['a community of 17 bits', vrf({ community: '65536:1' }), 'spec.community', 'bad-community'],
  ['a community that nobody knows', vrf({ community: 'everybody' }), 'spec.community', 'bad-community'],
  [
    'a gateway that is a network',
    l2({ anycastMac, anycastGateways: ['10.0.0.0/24'] }),
    'spec.anycastGateways[0]',
    'bad-cidr',
  ],
  [
    'a gateway that is a broadcast',
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
    'a gateway of IPv6 on an interface too narrow for it',
    l2({ mtu: 1_279, anycastMac, anycastGateways: ['2001:db8::1/64'] }),
    'spec.mtu',
    'out-of-range',
  ],
  ['a hold time too short', peering({ holdTime: '2s', keepaliveTime: '1s' }), 'spec.holdTime', 'out-of-range'],
  [
    'keepalives after the hold time',
    peering({ holdTime: '30s', keepaliveTime: '30s' }),
    'spec.keepaliveTime',
    'out-of-range',
  ],
];
