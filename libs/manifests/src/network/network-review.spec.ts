import type { ConfigEntry } from '#libs/contracts';
import { checkRendered } from '../manifest.js';
import { networkNeeds, networkReasons, networkWarnings } from '../index.js';
import { tableOf } from './vrf.js';
import { config, entry, gateways, l2, peering, permit, table, vrf } from './network.fixture.js';

const holds = (each: ConfigEntry): boolean => checkRendered(each).length === 0;
const reasons = (...fragments: ConfigEntry[]) =>
  networkReasons(config(...fragments), holds).map(({ fragment, field, code, message }) => [
    fragment,
    field,
    code,
    message,
  ]);

test('a consistent network has no reasons', () => {
  expect(
    reasons(
      vrf('red', { vni: 1, routeTarget: '1:1', localAs: 1 }),
      entry('Vrf', 'red2', { vrf: 'red', seq: 9, import: [permit('10.0.0.0/8')] }),
      vrf('blue'),
      l2('a', 100, { vrf: 'red', vni: 2, ...gateways('10.0.0.1/24', '10.0.0.2/24') }),
      l2('b', 101, { vrf: 'blue', ...gateways('10.0.0.1/24') }),
      peering('p', 'a', { vrf: 'blue', localAs: 1 }),
      table('t', 100),
    ),
  ).toEqual([]);
});

test.each<[string, ConfigEntry[], (readonly string[])[]]>([
  [
    'the same VLAN twice',
    [l2('a', 100), l2('b', 100)],
    [['Layer2Network/b', 'spec.id', 'conflict', 'Layer2Network/a and Layer2Network/b both have VLAN 100']],
  ],
  [
    'the same VNI twice',
    [l2('a', 1, { vni: 7 }), l2('b', 2, { vni: 7 })],
    [['Layer2Network/b', 'spec.vni', 'conflict', 'Layer2Network/a and Layer2Network/b both have VNI 7']],
  ],
  [
    'a network with the VNI of a VRF',
    [l2('a', 1, { vni: 7 }), vrf('red', { vni: 7, routeTarget: '1:1' })],
    [['Layer2Network/a', 'spec.vni', 'conflict', 'Vrf/red and Layer2Network/a both have VNI 7']],
  ],
  [
    'a layer-2 network without its VRF',
    [l2('a', 1, { vrf: 'red' }), vrf('blue')],
    [['Layer2Network/a', 'spec.vrf', 'missing-reference', 'the node has no Vrf for the VRF red']],
  ],
  [
    'a peering without its network',
    [peering('p', 'a')],
    [['BgpPeering/p', 'spec.network', 'missing-reference', 'the node has no Layer2Network/a']],
  ],
  [
    'a peering in a network without gateways',
    [l2('a', 1), peering('p', 'a')],
    [
      [
        'BgpPeering/p',
        'spec.network',
        'no-gateway',
        'Layer2Network/a has no gateways, so there is no network to listen in',
      ],
    ],
  ],
  [
    'a peering without its VRF',
    [l2('a', 1, gateways('10.0.0.1/24')), peering('p', 'a', { vrf: 'red' })],
    [['BgpPeering/p', 'spec.vrf', 'missing-reference', 'the node has no Vrf for the VRF red']],
  ],
  [
    'two peerings in one network',
    [l2('a', 1, gateways('10.0.0.1/24')), peering('p', 'a'), peering('q', 'a')],
    [['BgpPeering/q', 'spec.network', 'conflict', 'BgpPeering/p and BgpPeering/q both listen in Layer2Network/a']],
  ],
  [
    'two AS numbers on one node',
    [vrf('red', { localAs: 1 }), l2('a', 1, gateways('10.0.0.1/24')), peering('p', 'a', { localAs: 2 })],
    [
      [
        'BgpPeering/p',
        'spec.localAs',
        'conflict',
        'Vrf/red sets AS 1, and BgpPeering/p sets 2: a node has only one AS',
      ],
    ],
  ],
  [
    'one subnet in two networks',
    [l2('a', 1, gateways('10.0.0.1/24')), l2('b', 2, gateways('10.0.0.2/24'))],
    [
      [
        'Layer2Network/b',
        'spec.anycastGateways[0]',
        'conflict',
        'Layer2Network/a and Layer2Network/b both have a gateway in 10.0.0.0/24',
      ],
    ],
  ],
  [
    'the same table twice',
    [table('a', 7), table('b', 7)],
    [['RoutingTable/b', 'spec.tableId', 'conflict', 'RoutingTable/a and RoutingTable/b both have routing table 7']],
  ],
  [
    'a routing table with the id of a VRF',
    [table('a', tableOf('red')), vrf('red')],
    [
      [
        'Vrf/red',
        'spec.vrf',
        'conflict',
        `RoutingTable/a and Vrf/red both have routing table ${tableOf('red')}, which is derived from the name of the VRF`,
      ],
    ],
  ],
  [
    'a loopback with the name of a VRF',
    [vrf('red', { loopbacks: [{ name: 'blue', subnet: '192.0.2.1/32' }] }), vrf('blue')],
    [['Vrf/red', 'spec.loopbacks[0].name', 'conflict', 'Vrf/blue and Vrf/red both create an interface blue']],
  ],
  [
    'a VRF and a network with the same tunnel interface',
    [vrf('100', { vni: 1, routeTarget: '1:1' }), l2('a', 100, { vni: 2 })],
    [['Layer2Network/a', 'spec.id', 'conflict', 'Vrf/100 and Layer2Network/a both create an interface vx.100']],
  ],
  [
    'two routes to one network',
    [
      table('a', 7, {
        routes: [
          { to: '2001:db8::/32', interface: 'a' },
          { to: '2001:DB8:0::/32', interface: 'b' },
        ],
      }),
    ],
    [
      [
        'RoutingTable/a',
        'spec.routes[1].to',
        'conflict',
        'RoutingTable/a and RoutingTable/a both route 2001:DB8:0::/32 in table 7',
      ],
    ],
  ],
])('%s is refused, with fragment and field', (_name, fragments, expected) => {
  expect(reasons(...fragments)).toEqual(expected);
});

test('all errors are reported at once', () => {
  expect(
    reasons(l2('a', 1, { vni: 7, vrf: 'red' }), l2('b', 1, { vni: 7, vrf: 'green' }), peering('p', 'c')).map(
      ([fragment, field]) => `${fragment} ${field}`,
    ),
  ).toEqual([
    'Layer2Network/b spec.id',
    'Layer2Network/b spec.vni',
    'Layer2Network/a spec.vrf',
    'Layer2Network/b spec.vrf',
    'BgpPeering/p spec.network',
  ]);
});

test('an invalid fragment is not reported as missing by those that refer to it', () => {
  expect(
    reasons(vrf('red', { vni: 1 }), l2('a', 1, { vrf: 'red', anycastGateways: 7 }), peering('p', 'a', { vrf: 'red' })),
  ).toEqual([]);
});

test('a part of a VRF that comes too late to set a field causes a warning', () => {
  const fragments = [
    entry('Vrf', 'b', { vrf: 'red', seq: 1, vni: 1, routeTarget: '1:1' }),
    entry('Vrf', 'a', { vrf: 'red', seq: 2, vni: 2, routeTarget: '1:1' }),
  ];
  expect(reasons(...fragments)).toEqual([]);
  expect(networkWarnings(config(...fragments), holds)).toEqual([
    {
      fragment: 'Vrf/a',
      field: 'spec.vni',
      code: 'overruled',
      message: 'Vrf/b comes first and sets vni of this VRF: the value here is ignored',
      nodes: [],
    },
  ]);
});

test('the required capabilities depend on what is used', () => {
  const needs = (each: ConfigEntry) => networkNeeds(each).map(({ capability, field }) => `${capability} by ${field}`);
  expect(needs(vrf('red'))).toEqual([]);
  expect(needs(vrf('red', { vni: 1, import: [], loopbacks: [{}] }))).toEqual([
    'link:bridge by spec.vni',
    'link:vxlan by spec.vni',
    'frr by spec.vni',
    'link:dummy by spec.loopbacks',
  ]);
  expect(needs(l2('a', 1, { vni: 1, trunk: 'eth0', createMacvlanInterface: false }))).toEqual([
    'link:vxlan by spec.vni',
    'link:vlan by spec.trunk',
  ]);
  expect(needs(entry('File', 'f', { vni: 1 }))).toEqual([]);
});
