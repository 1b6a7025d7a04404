import fc from 'fast-check';
import type { FrrLine, Network } from '../index.js';
import { networkEntries, networkOf, wordsFor } from '../index.js';
import { tableOf } from './vrf.js';
import { config, entry, gateways, l2, peering, permit, table, vrf } from './network.fixture.js';

const text = (lines: readonly FrrLine[], indent = ''): readonly string[] =>
  lines.flatMap(({ line, below }) => [indent + line, ...text(below, `${indent} `)]);
const frr = ({ frr: part }: Network): readonly string[] => text(part?.lines ?? []);
const part = (name: string, spec: object) => entry('Vrf', name, { vrf: 'red', ...spec });

describe('the parts of a VRF', () => {
  test('are joined by ascending seq: the first with vni and routeTarget sets them, later ones only append', () => {
    const network = networkOf(
      config(
        part('a', {
          seq: 20,
          vni: 200,
          routeTarget: '1:200',
          import: [permit('10.2.0.0/16'), permit('10.1.0.0/16')],
          mtu: 1_500,
        }),
        part('b', { seq: 10, vni: 100, routeTarget: '1:100', import: [permit('10.1.0.0/16')] }),
      ),
    );
    expect(network.links.map(({ name, vni, mtu }) => [name, vni, mtu])).toEqual([
      ['red', undefined, undefined],
      ['br.red', undefined, 1_500],
      ['vx.red', 100, 1_500],
    ]);
    expect(frr(network).filter((line) => line.includes('prefix-list') && line.startsWith('ip'))).toEqual([
      'ip prefix-list sluice-red-import seq 5 permit 10.1.0.0/16',
      'ip prefix-list sluice-red-import seq 10 permit 10.2.0.0/16',
    ]);
    expect(frr(network).filter((line) => line.includes('route-target'))).toEqual([
      '  route-target import 1:100',
      '  route-target export 1:100',
    ]);
  });

  test('with the same seq are joined by name, and one without seq comes first', () => {
    const network = networkOf(
      config(
        part('z', { vni: 1, routeTarget: '1:1' }),
        part('a', { seq: 2, vni: 2, routeTarget: '1:2' }),
        part('b', { seq: 2, aggregate: ['10.0.0.0/8'] }),
      ),
    );
    expect(network.links.at(-1)).toMatchObject({ name: 'vx.red', vni: 1 });
  });

  test('combine their exports, each list by its own seq', () => {
    const network = networkOf(
      config(
        part('a', {
          seq: 1,
          export: [permit('10.9.0.0/16', { seq: 9 }), permit('10.1.0.0/16', { seq: 1, le: 24 })],
          communities: ['no-export', '1:2', '1:1', '65535:65281'],
        }),
        part('b', { seq: 2, export: [{ cidr: '2001:db8::/32', action: 'deny', ge: 48 }], community: '1:2' }),
      ),
    );
    expect(frr(network).slice(0, 11)).toEqual([
      'ip prefix-list sluice-red-export seq 5 permit 10.1.0.0/16 le 24',
      'ip prefix-list sluice-red-export seq 10 permit 10.9.0.0/16',
      'ipv6 prefix-list sluice-red-export seq 15 deny 2001:db8::/32 ge 48',
      'route-map sluice-into-red permit 10',
      ' match ip address prefix-list sluice-red-export',
      ' match source-vrf default',
      ' set community 1:1 1:2 no-export additive',
      'route-map sluice-into-red permit 20',
      ' match ipv6 address prefix-list sluice-red-export',
      ' match source-vrf default',
      ' set community 1:1 1:2 no-export additive',
    ]);
  });

  test("import from the node's own BGP only if it exists", () => {
    expect(
      frr(networkOf(config(part('a', { export: [permit('10.0.0.0/8')] })))).filter((line) => line.startsWith('router')),
    ).toEqual(['router bgp @', 'router bgp @ vrf red']);
  });

  test('turn aggregates into static blackhole routes', () => {
    expect(
      frr(
        networkOf(
          config(
            part('a', { aggregate: ['10.0.0.0/8'] }),
            part('b', { seq: 2, aggregate: ['2001:db8::/32', '10.0.0.0/8'] }),
          ),
        ),
      ).slice(0, 3),
    ).toEqual(['vrf red', ' ip route 10.0.0.0/8 blackhole', ' ipv6 route 2001:db8::/32 blackhole']);
  });

  test('look up their routes by source, and never fall through to the main table', () => {
    const { rules, routes } = networkOf(
      config(part('a', { sbrPrefixes: ['10.1.0.0/16'] }), part('b', { sbrPrefixes: ['2001:db8::/32', '10.1.0.0/16'] })),
    );
    expect(rules).toEqual([
      { family: 4, priority: 3_000, table: tableOf('red'), from: '10.1.0.0/16' },
      { family: 6, priority: 3_000, table: tableOf('red'), from: '2001:db8::/32' },
    ]);
    expect(routes.map(({ to, type, table: at }) => [to, type, at])).toEqual([
      ['0.0.0.0/0', 'unreachable', tableOf('red')],
      ['::/0', 'unreachable', tableOf('red')],
    ]);
  });

  test('without exchanged routes need no FRR', () => {
    expect(networkOf(config(part('a', { sbrPrefixes: ['10.1.0.0/16'] }))).frr).toBeUndefined();
  });
});

test('a VRF has the same table no matter which other VRFs exist', () => {
  const alone = networkOf(config(vrf('red'))).links;
  expect(networkOf(config(vrf('blue'), vrf('red'), vrf('green'))).links).toEqual(expect.arrayContaining([...alone]));
});

test('a layer-2 network is a bridge in its VRF, with a tunnel, a tagged port and a pair for containers', () => {
  const network = networkOf(
    config(
      vrf('red'),
      l2('storage', 100, {
        vrf: 'red',
        mtu: 9_000,
        vni: 10_100,
        vtep: '192.0.2.1',
        trunk: 'bond0',
        createMacvlanInterface: true,
        neighSuppression: true,
        disableSegmentation: true,
        advertiseNeighbors: true,
        anycastMac: '02:00:00:00:00:AA',
        anycastGateways: ['10.0.0.1/24'],
      }),
    ),
  );
  const all = { mtu: 9_000, gsoMaxSegs: 1 };
  expect(network.links.slice(1)).toEqual([
    {
      name: 'l2.100',
      type: 'bridge',
      master: 'red',
      mac: '02:00:00:00:00:aa',
      settings: { 'ipv4/arp_accept': '1', 'ipv6/accept_untracked_na': '1' },
      ...all,
    },
    {
      name: 'vx.100',
      type: 'vxlan',
      vni: 10_100,
      master: 'l2.100',
      learning: false,
      neighSuppress: true,
      local: '192.0.2.1',
      ...all,
    },
    { name: 'vl.100', type: 'vlan', vlan: 100, parent: 'bond0', master: 'l2.100', ...all },
    { name: 'l2v.100', type: 'veth', peer: 'vlan.100', master: 'l2.100', ...all },
    { name: 'vlan.100', type: 'veth', peer: 'l2v.100', ...all },
  ]);
  expect(network.addresses).toEqual([{ link: 'l2.100', address: '10.0.0.1/24' }]);
});

describe('a peering', () => {
  test('listens in the networks of the gateways, in the VRF of the layer-2 network', () => {
    const network = networkOf(
      config(
        vrf('red'),
        l2('storage', 100, { vrf: 'red', ...gateways('10.0.0.1/24', '10.0.0.2/24', '2001:db8::1/64') }),
        peering('p', 'storage', {
          localAs: 64_512,
          maximumPrefixes: 10,
          holdTime: '90s',
          keepaliveTime: '30s',
          bfd: true,
          import: [permit('10.1.0.0/16', { le: 32 })],
        }),
      ),
    );
    expect(frr(network)).toEqual([
      'ip prefix-list sluice-l2.100-in seq 5 permit 10.1.0.0/16 le 32',
      'route-map sluice-l2.100-in permit 10',
      ' match ip address prefix-list sluice-l2.100-in',
      'route-map sluice-l2.100-out permit 10',
      'router bgp 64512 vrf red',
      ' neighbor sluice-l2.100 peer-group',
      ' neighbor sluice-l2.100 remote-as 64513',
      ' neighbor sluice-l2.100 bfd',
      ' neighbor sluice-l2.100 timers 30 90',
      ' bgp listen range 10.0.0.0/24 peer-group sluice-l2.100',
      ' bgp listen range 2001:db8::/64 peer-group sluice-l2.100',
      ' address-family ipv4 unicast',
      '  redistribute connected',
      '  redistribute static',
      '  neighbor sluice-l2.100 maximum-prefix 10',
      '  neighbor sluice-l2.100 route-map sluice-l2.100-in in',
      '  neighbor sluice-l2.100 route-map sluice-l2.100-out out',
      ' address-family ipv6 unicast',
      '  redistribute connected',
      '  redistribute static',
      '  neighbor sluice-l2.100 activate',
      '  neighbor sluice-l2.100 maximum-prefix 10',
      '  neighbor sluice-l2.100 route-map sluice-l2.100-in in',
      '  neighbor sluice-l2.100 route-map sluice-l2.100-out out',
    ]);
  });

  test('passes its routes to another VRF', () => {
    const lines = frr(
      networkOf(
        config(vrf('red'), l2('storage', 100, gateways('10.0.0.1/24')), peering('p', 'storage', { vrf: 'red' })),
      ),
    );
    expect(lines).toEqual(
      expect.arrayContaining([
        'route-map sluice-into-red permit 10',
        ' match source-vrf default',
        'router bgp @',
        'router bgp @ vrf red',
        '  import vrf default',
      ]),
    );
  });
});

test('a routing table has its routes and rules, a rule without an address in both families', () => {
  const { routes, rules } = networkOf(
    config(
      table('t', 100, {
        routes: [
          { to: '0.0.0.0/0', via: '192.0.2.1', interface: 'eth0' },
          { to: '10.0.0.0/8', blackhole: true },
        ],
        rules: [
          { priority: 10, interface: 'eth1' },
          { priority: 11, from: '2001:DB8::/32' },
        ],
      }),
    ),
  );
  expect(routes).toEqual([
    { table: 100, to: '0.0.0.0/0', type: 'unicast', via: '192.0.2.1', dev: 'eth0' },
    { table: 100, to: '10.0.0.0/8', type: 'blackhole' },
  ]);
  expect(rules).toEqual([
    { family: 4, priority: 10, table: 100, iif: 'eth1' },
    { family: 6, priority: 10, table: 100, iif: 'eth1' },
    { family: 6, priority: 11, table: 100, from: '2001:db8::/32' },
  ]);
});

describe('the elements of a network', () => {
  const fragments = [
    vrf('red', {
      vni: 1,
      routeTarget: '1:1',
      loopbacks: [{ name: 'lo.red', subnet: '192.0.2.7/32' }],
      import: [permit('10.0.0.0/8')],
    }),
    entry('Vrf', 'red-more', { vrf: 'red', seq: 2, export: [permit('10.3.0.0/16')], sbrPrefixes: ['10.4.0.0/16'] }),
    l2('storage', 100, { vrf: 'red', vni: 2, ...gateways('10.0.0.1/24') }),
    l2('plain', 7, { createMacvlanInterface: true }),
    table('t', 100, {
      routes: [
        { to: '0.0.0.0/0', via: '192.0.2.1' },
        { to: '10.0.0.0/8', interface: 'eth0' },
      ],
      rules: [{ priority: 1, from: '10.0.0.0/8' }],
    }),
    peering('p', 'storage'),
    entry('File', 'f', { path: '/a', content: '' }),
  ];

  test('are in the order in which they can be created, each with its own key', () => {
    const keys = networkEntries(config(...fragments)).map(({ name }) => name);
    expect(new Set(keys).size).toBe(keys.length);
    expect(keys.map((key) => key.slice(key.indexOf(':') + 1).split(' in table')[0])).toEqual([
      'link red',
      'link br.red',
      'link l2.100',
      'link l2.7',
      'link l2v.7',
      'link lo.red',
      'link vlan.7',
      'link vx.100',
      'link vx.red',
      'address 10.0.0.1/24 on l2.100',
      'address 192.0.2.7/32 on lo.red',
      'route 0.0.0.0/0',
      'route 10.0.0.0/8',
      'route ::/0',
      'route 0.0.0.0/0',
      'rule 1 of IPv4 from 10.0.0.0/8',
      'rule 3000 of IPv4 from 10.4.0.0/16',
      'frr',
    ]);
  });

  test('are the same in any order of the fragments', () => {
    const first = JSON.stringify(networkEntries(config(...fragments)));
    fc.assert(
      fc.property(fc.shuffledSubarray(fragments, { minLength: fragments.length }), (shuffled) => {
        expect(JSON.stringify(networkEntries(config(...shuffled)))).toBe(first);
      }),
    );
  });

  test('do not exist without a network', () => {
    const file = entry('File', 'f', { path: '/a', content: '' });
    expect(networkEntries(config(file))).toEqual([]);
    expect(wordsFor(file)).toBe('File/f');
    expect(wordsFor({ kind: 'NetworkRoute', name: 'net-3-2:route 10.0.0.0/8 in table 300' })).toBe(
      'route 10.0.0.0/8 in table 300',
    );
  });
});
