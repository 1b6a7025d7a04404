import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ConfigEntry } from '#libs/contracts';
import { networkOf } from '#libs/manifests/lean';
import { until } from '#libs/testing';
import { describeWithNetwork, Namespace } from '../../../testing/network-namespace.js';
import { config, Host, probe } from '../../applier-host.fixture.js';
import { EMPTY_HASH } from '../../index.js';

const anycastMac = '02:00:00:00:00:01';
const l2 = (spec: object = {}): ConfigEntry => ({
  kind: 'Layer2Network',
  name: 'storage',
  spec: { id: 7, anycastMac, anycastGateways: ['10.7.0.1/24', '2001:db8:7::1/64'], ...spec },
});
const peering = (spec: object = {}): ConfigEntry => ({
  kind: 'BgpPeering',
  name: 'p',
  spec: { network: 'storage', remoteAs: 64_513, ...spec },
});
const OTHERS = [
  'configure terminal',
  'ip prefix-list mine seq 5 permit 10.0.0.0/8',
  'router bgp 64512',
  'neighbor 192.0.2.9 remote-as 64999',
  'address-family ipv4 unicast',
  'network 10.0.0.0/8',
  'end',
].join('\n');

let host: Host;
let net: Namespace;
let frr: string;
/** FRR's own file on this machine. It does not have the config of a namespace. */
const ownFile = (): string =>
  existsSync('/etc/frr/frr.conf')
    ? `${readFileSync('/etc/frr/frr.conf', 'utf8')}${statSync('/etc/frr/frr.conf').mtimeMs}`
    : '';
const running = (): string => net.vtysh(frr, '-c', 'show running-config no-header');

describeWithNetwork(['netns', 'frr'], "FRR's part of the network", () => {
  beforeEach(async () => {
    host = new Host();
    net = new Namespace();
    frr = net.startFrr();
  });
  afterEach(async () => {
    await host.end();
    net.end();
  });
  const start = (more: object = {}) =>
    host.start({ network: { netns: net.name, frrSockets: frr }, reach: false, ...more });

  it("is added to FRR's own configuration, read back, and removed without a trace", async () => {
    net.vtysh(frr, ...OTHERS.split('\n').flatMap((line) => ['-c', line]));
    const [before, file] = [running(), ownFile()];
    await start();
    const wanted = [
      l2(),
      peering({
        maximumPrefixes: 10,
        holdTime: '90s',
        keepaliveTime: '30s',
        bfd: true,
        import: [
          { cidr: '10.1.0.0/16', action: 'permit', le: 32 },
          { cidr: '2001:db8::/32', action: 'deny' },
        ],
      }),
    ];
    expect(await host.bus.roll(config(...wanted))).toMatchObject({
      kind: 'applied',
      changed: expect.arrayContaining(['frr']) as unknown,
    });
    expect(running()).toContain(' bgp listen range 10.7.0.0/24 peer-group sluice-l2.7\n');
    expect(ownFile()).toBe(file);
    expect(running()).toContain('ip prefix-list sluice-l2.7-in seq 5 permit 10.1.0.0/16 le 32\n');
    expect(running()).toContain(' neighbor 192.0.2.9 remote-as 64999\n');
    expect(await host.bus.roll(config(...wanted), { kind: 'repair' })).toMatchObject({ kind: 'applied', changed: [] });
    expect(await host.bus.roll(config(l2(), peering({ remoteAs: 64_514 })))).toMatchObject({
      kind: 'applied',
      changed: ['frr'],
    });
    expect(running()).toContain(' neighbor sluice-l2.7 remote-as 64514\n');
    expect(running()).not.toContain('sluice-l2.7-in seq 5');
    net.vtysh(frr, '-c', 'configure terminal', '-c', 'router bgp 64512', '-c', 'neighbor 192.0.2.10 remote-as 64999');
    expect(await host.bus.roll(config())).toMatchObject({ kind: 'applied', hash: EMPTY_HASH });
    expect(running()).toBe(
      before.replace(
        ' neighbor 192.0.2.9 remote-as 64999\n',
        ' neighbor 192.0.2.9 remote-as 64999\n neighbor 192.0.2.10 remote-as 64999\n',
      ),
    );
  });

  it('is restored if a probe fails after the change', async () => {
    await start();
    await host.bus.roll(config(l2(), peering({ localAs: 64_512 })));
    const before = running();
    const gone = probe('p', { file: { path: '/f', absent: true } });
    const file: ConfigEntry = { kind: 'File', name: 'f', spec: { path: '/f', content: '' } };
    expect(
      await host.bus.roll(config(l2({ id: 8 }), peering({ localAs: 64_512, remoteAs: 64_777, bfd: true }), file, gone)),
    ).toMatchObject({ kind: 'invalid', restored: true });
    expect(running()).toBe(before);
  });

  it('is reported when it has drifted', async () => {
    await start({ driftCheckMs: 60 });
    await host.bus.roll(config(l2(), peering({ localAs: 64_512 })));
    net.vtysh(
      frr,
      '-c',
      'configure terminal',
      '-c',
      'router bgp 64512',
      '-c',
      'no bgp listen range 10.7.0.0/24 peer-group sluice-l2.7',
    );
    expect((await host.bus.reported(({ kind }) => kind === 'drifted')).differences).toEqual([
      'frr: lacks "router bgp 64512 / bgp listen range 10.7.0.0/24 peer-group sluice-l2.7"',
    ]);
  });

  it('is added again after FRR restarted, without a report of drift', async () => {
    await start({ driftCheckMs: 60 });
    await host.bus.roll(config(l2(), peering({ localAs: 64_512 })));
    const before = running();
    const reports = host.bus.reports.length;
    net.restartFrr(frr);
    expect(running()).not.toBe(before);
    await until(() => running() === before, 'its part is there again');
    expect(host.bus.reports.slice(reports).filter(({ kind, restored }) => kind === 'drifted' || !restored)).toEqual([]);
  });

  it('is refused before any change if BGP has no AS, or if a line is not valid in FRR', async () => {
    await start();
    const before = [running(), ...net.picture()];
    expect(await host.bus.roll(config(l2(), peering()))).toMatchObject({
      kind: 'failed',
      restored: true,
      reason: expect.stringContaining('FRR runs no BGP on this node, and localAs is not set') as unknown,
    });
    expect(await host.bus.roll(config(l2(), peering({ localAs: 64_512, remoteAs: 'nobody' })))).toMatchObject({
      kind: 'invalid',
      restored: true,
      reason: expect.stringContaining('FRR refuses') as unknown,
    });
    expect([running(), ...net.picture()]).toEqual(before);
  });

  it('does not replace the import map of another owner', async () => {
    net.vtysh(
      frr,
      ...[
        'configure terminal',
        'route-map mine permit 10',
        'router bgp 64512',
        'address-family ipv4 unicast',
        'import vrf route-map mine',
      ].flatMap((line) => ['-c', line]),
    );
    await start();
    const before = running();
    // A kernel without VRFs has the same FRR part, so ask the applier for it directly.
    const entry = {
      kind: 'NetworkFrr',
      name: 'net-5-0:frr',
      spec: {
        lines: [
          {
            line: 'router bgp @',
            below: [
              {
                line: 'address-family ipv4 unicast',
                below: [{ line: 'import vrf route-map sluice-into-default', below: [] }],
              },
            ],
          },
        ],
      },
    };
    expect(await host.bus.roll(config(entry))).toMatchObject({
      kind: 'failed',
      reason: expect.stringContaining('"import vrf route-map mine" already') as unknown,
    });
    expect(running()).toBe(before);
  });

  it('reads back every line of a VRF that uses all options', async () => {
    const filters = [
      { cidr: '10.0.0.0/8', action: 'permit', ge: 16, le: 24 },
      { cidr: '10.0.0.0/8', action: 'deny' },
      { cidr: '2001:db8::/32', action: 'permit', le: 128 },
    ];
    const vrf = (name: string, vni: number): ConfigEntry => ({
      kind: 'Vrf',
      name,
      spec: {
        vrf: name,
        vni,
        routeTarget: `64512:${vni}`,
        import: filters,
        export: filters,
        aggregate: ['10.0.0.0/8', '2001:db8::/32'],
        communities: ['64512:1', 'no-export'],
      },
    });
    const all = networkOf(
      config(
        vrf('red', 100),
        vrf('blue', 200),
        l2({ vrf: 'blue' }),
        peering({ vrf: 'red', localAs: 64_512, maximumPrefixes: 9 }),
      ),
    );
    await start();
    // The links need a kernel with VRFs, but FRR accepts its part without.
    const entry = { kind: 'NetworkFrr', name: 'net-5-0:frr', spec: all.frr as unknown as ConfigEntry['spec'] };
    const before = running();
    expect(await host.bus.roll(config(entry))).toMatchObject({ kind: 'applied' });
    expect(running()).toContain('  route-target import 64512:200\n');
    // FRR creates an instance itself if something is exported to it, and shows communities in another order.
    const out = networkOf(
      config({
        kind: 'Vrf',
        name: 'out',
        spec: {
          vrf: 'out',
          localAs: 64_512,
          export: filters,
          communities: ['no-export', '64512:1', '65535:666', 'local-AS'],
        },
      }),
    );
    expect(await host.bus.roll(config({ ...entry, spec: out.frr as unknown as ConfigEntry['spec'] }))).toMatchObject({
      kind: 'applied',
    });
    expect(await host.bus.roll(config())).toMatchObject({ kind: 'applied' });
    expect(running()).toBe(before);
  });

  it('lets two nodes peer, and filters apply to the routes', async () => {
    const other = new Namespace();
    try {
      await start();
      const passes = { cidr: '10.1.0.0/16', action: 'permit', le: 32 };
      expect(
        await host.bus.roll(
          config(l2({ createMacvlanInterface: true }), peering({ localAs: 64_512, import: [passes] })),
        ),
      ).toMatchObject({ kind: 'applied' });
      net.ip('link', 'add', 'p0', 'type', 'veth', 'peer', 'name', 'p1', 'netns', other.name);
      net.ip('link', 'set', 'p0', 'master', 'l2.7', 'up');
      other.ip('link', 'set', 'p1', 'up');
      other.ip('address', 'add', '10.7.0.9/24', 'dev', 'p1');
      other.startFrr(
        [
          'configure terminal',
          'ip route 10.1.2.0/24 blackhole',
          'ip route 10.2.2.0/24 blackhole',
          'router bgp 64513',
          'no bgp ebgp-requires-policy',
          'neighbor 10.7.0.1 remote-as 64512',
          'neighbor 10.7.0.1 timers connect 1',
          'address-family ipv4 unicast',
          'redistribute static',
          'end',
        ].join('\n'),
      );
      const learned = (): string => net.vtysh(frr, '-c', 'show ip route bgp');
      await until(() => learned().includes('10.1.2.0/24'), 'the route of the other node is learned');
      expect(learned()).not.toContain('10.2.2.0/24');
      expect(net.list('route', 'show', '10.1.2.0/24')).toMatchObject([{ gateway: '10.7.0.9', dev: 'l2.7' }]);
    } finally {
      other.end();
    }
  });

  it('is refused if FRR runs with another AS', async () => {
    net.vtysh(frr, ...OTHERS.split('\n').flatMap((line) => ['-c', line]));
    await start();
    const before = running();
    expect(await host.bus.roll(config(l2(), peering({ localAs: 65_000 })))).toMatchObject({
      kind: 'failed',
      reason: expect.stringContaining('FRR runs BGP in AS 64512 on this node, but localAs is 65000') as unknown,
    });
    expect(running()).toBe(before);
  });

  it('removes what a killed applier had added, even by a change that was never finished', async () => {
    const first = await start();
    await host.bus.roll(config(l2(), peering({ localAs: 64_512 })));
    await first.stop();
    const record = join(host.state, 'frr.json');
    const { added } = JSON.parse(readFileSync(record, 'utf8')) as { added: string[][] };
    writeFileSync(
      record,
      JSON.stringify({
        added: [
          ...added,
          ['ip prefix-list half seq 5 permit 10.0.0.0/8'],
          ['ip prefix-list never seq 5 permit 10.0.0.0/8'],
        ],
      }),
    );
    net.vtysh(
      frr,
      '-c',
      'configure terminal',
      '-c',
      'ip prefix-list half seq 5 permit 10.0.0.0/8',
      '-c',
      'ip prefix-list mine seq 5 permit 10.0.0.0/8',
    );
    await start();
    expect(await host.bus.roll(config())).toMatchObject({ kind: 'applied' });
    expect(running()).not.toMatch(/half|never|sluice|router bgp/);
    expect(running()).toContain('ip prefix-list mine seq 5 permit 10.0.0.0/8');
  });
});
