import type { ConfigEntry } from '#libs/contracts';
import { describeWithNetwork, Namespace } from '../../../testing/network-namespace.js';
import { config, file, Host, probe } from '../../applier-host.fixture.js';
import { EMPTY_HASH } from '../../index.js';
import { linksTriedInPlace } from './node-network.js';
import { NetworkTools } from './tools.js';

const l2 = (name: string, id: number, spec: object = {}): ConfigEntry => ({
  kind: 'Layer2Network',
  name,
  spec: { id, ...spec },
});
const table = (spec: object = {}): ConfigEntry => ({
  kind: 'RoutingTable',
  name: 't',
  spec: { tableId: 100, ...spec },
});
const vrf = (spec: object = {}): ConfigEntry => ({ kind: 'Vrf', name: 'red', spec: { vrf: 'red', ...spec } });
const anycastMac = '02:00:00:00:00:01';

let host: Host;
let net: Namespace;
beforeEach(() => {
  host = new Host();
  net = new Namespace();
});
afterEach(async () => {
  await host.end();
  net.end();
});

const start = (more: object = {}) => host.start({ network: { netns: net.name }, reach: false, ...more });

describeWithNetwork(['netns'], 'links, addresses, routes and rules', () => {
  beforeEach(() => {
    net.ip('link', 'add', 'eth0', 'type', 'veth', 'peer', 'name', 'far');
    net.ip('link', 'set', 'eth0', 'up');
    net.ip('link', 'set', 'far', 'up');
    net.ip('address', 'add', '192.0.2.2/24', 'dev', 'eth0');
    net.ip('route', 'add', 'default', 'via', '192.0.2.1');
    net.ip('route', 'add', '198.51.100.0/24', 'via', '192.0.2.1', 'table', '100');
    net.ip('rule', 'add', 'from', '198.51.100.0/24', 'table', '100', 'priority', '90');
  });

  const full = (id = 7): ConfigEntry[] => [
    l2('storage', id, {
      mtu: 1_400,
      vni: 700 + id,
      vtep: '192.0.2.2',
      neighSuppression: true,
      createMacvlanInterface: true,
      disableSegmentation: true,
      anycastMac,
      anycastGateways: ['10.7.0.1/24', '10.7.0.2/24', '2001:db8:7::1/64'],
      advertiseNeighbors: true,
    }),
    table({
      routes: [
        { to: '0.0.0.0/0', via: '192.0.2.1', interface: 'eth0' },
        { to: '10.9.0.0/16', blackhole: true },
        { to: '2001:db8:9::/48', blackhole: true },
      ],
      rules: [
        { priority: 100, from: '10.7.0.0/24' },
        { priority: 101, interface: 'far' },
      ],
    }),
  ];

  it('are created, read back and removed, and nothing else changes', async () => {
    const before = net.picture();
    await start();
    expect(await host.bus.roll(config(...full(), file('/f', 'x')))).toMatchObject({
      kind: 'applied',
      changed: expect.arrayContaining(['link l2.7', 'route 0.0.0.0/0 in table 100', '/f']) as unknown,
    });
    const [bridge] = net.list('-d', 'link', 'show', 'dev', 'l2.7');
    expect(bridge).toMatchObject({
      mtu: 1_400,
      address: anycastMac,
      gso_max_segs: 1,
      group: '211',
      flags: expect.arrayContaining(['UP']) as unknown,
    });
    expect(net.list('-d', 'link', 'show', 'dev', 'vx.7')[0]).toMatchObject({
      master: 'l2.7',
      mtu: 1_400,
      linkinfo: {
        info_data: { id: 707, local: '192.0.2.2', port: 4_789, learning: false },
        info_slave_data: { neigh_suppress: true, learning: false },
      },
    });
    expect(net.list('-d', 'link', 'show', 'dev', 'vlan.7')[0]).toMatchObject({ link: 'l2v.7' });
    expect(net.exec('sysctl', '-n', 'net/ipv4/conf/l2.7/arp_accept').trim()).toBe('1');
    expect(net.picture().filter((line) => line.startsWith('address l2.7'))).toEqual([
      'address l2.7 10.7.0.1/24',
      'address l2.7 10.7.0.2/24',
      'address l2.7 2001:db8:7::1/64',
    ]);
    expect(net.list('rule', 'show', 'priority', '100')).toMatchObject([
      { src: '10.7.0.0', srclen: 24, table: '100', protocol: '211' },
    ]);
    expect(net.picture()).toEqual(expect.arrayContaining([...before]));
    expect(await host.bus.roll(config())).toMatchObject({ kind: 'applied', hash: EMPTY_HASH });
    expect(net.picture()).toEqual(before);
  });

  it('are changed in place if possible, and recreated otherwise', async () => {
    await start();
    await host.bus.roll(config(...full()));
    const index = net.list('link', 'show', 'dev', 'l2.7')[0]?.['ifindex'];
    expect(
      await host.bus.roll(
        config(l2('storage', 7, { mtu: 1_300, vni: 708, anycastMac, anycastGateways: ['10.7.0.2/24'] })),
      ),
    ).toMatchObject({ kind: 'applied' });
    expect(net.list('link', 'show', 'dev', 'l2.7')[0]).toMatchObject({ ifindex: index, mtu: 1_300 });
    expect(net.list('-d', 'link', 'show', 'dev', 'vx.7')[0]).toMatchObject({ linkinfo: { info_data: { id: 708 } } });
    expect(net.picture().filter((line) => line.startsWith('address l2.7'))).toEqual(['address l2.7 10.7.0.2/24']);
    expect(net.list('link', 'show', 'dev', 'vlan.7')).toEqual([]);
  });

  it('are changed if only the next hop of a route, or the kind of a link, differs', async () => {
    await start();
    const to = '203.0.113.0/24';
    const routes = [
      { to, via: '192.0.2.1' },
      { to, interface: 'eth0' },
      { to, blackhole: true },
      { to, via: '192.0.2.3' },
    ];
    for (const route of routes)
      expect(await host.bus.roll(config(table({ routes: [route] })))).toMatchObject({ kind: 'applied' });
    expect(net.list('route', 'show', 'table', '100', to)).toMatchObject([{ dst: to, gateway: '192.0.2.3' }]);
    const link = (type: string, rank: number): ConfigEntry => ({
      kind: 'NetworkLink',
      name: `net-1-${rank}:link x`,
      spec: { name: 'x', type, ...(type === 'vxlan' ? { vni: 9 } : {}) },
    });
    for (const one of [link('bridge', 2), link('vxlan', 3), link('bridge', 2)])
      expect(await host.bus.roll(config(one))).toMatchObject({ kind: 'applied' });
    expect(net.list('-d', 'link', 'show', 'dev', 'x')).toMatchObject([{ linkinfo: { info_kind: 'bridge' } }]);
    await host.bus.roll(config());
    expect(net.list('link', 'show', 'dev', 'x')).toEqual([]);
  });

  it('are restored if a probe fails after the change', async () => {
    await start();
    await host.bus.roll(
      config(l2('storage', 7, { mtu: 1_400, anycastMac, anycastGateways: ['10.7.0.1/24'] }), table()),
    );
    const before = net.picture();
    const gone = probe('p', { file: { path: '/f', absent: true } });
    expect(await host.bus.roll(config(...full(8), file('/f', 'x'), gone))).toMatchObject({
      kind: 'invalid',
      restored: true,
      probe: 'p',
    });
    expect(net.picture()).toEqual(before);
  });

  it.each<[string, () => void, ConfigEntry[], RegExp]>([
    [
      'an interface of that name',
      () => void net.ip('link', 'add', 'l2.7', 'type', 'bridge'),
      [l2('storage', 7)],
      /link l2\.7 already exists, but was not created by Sluice/,
    ],
    [
      'a route to that network',
      () => undefined,
      [table({ routes: [{ to: '198.51.100.0/24', blackhole: true }] })],
      /route 198\.51\.100\.0\/24 in table 100 already exists, but was not created by Sluice/,
    ],
    [
      'that rule',
      () => undefined,
      [table({ rules: [{ priority: 90, from: '198.51.100.0/24' }] })],
      /rule 90 of IPv4 from 198\.51\.100\.0\/24 in table 100 already exists, but was not created by Sluice/,
    ],
  ])('leave %s of another owner alone', async (_name, prepare, fragments, reason) => {
    prepare();
    const before = net.picture();
    await start();
    expect(await host.bus.roll(config(...fragments, file('/f', 'x')))).toMatchObject({
      kind: 'failed',
      restored: true,
      reason: expect.stringMatching(reason) as unknown,
    });
    expect(net.picture()).toEqual(before);
    expect(host.tree()).toEqual({});
  });

  it('fail completely with a next hop that the kernel does not know', async () => {
    const before = net.picture();
    await start();
    expect(
      await host.bus.roll(config(l2('storage', 7), table({ routes: [{ to: '0.0.0.0/0', via: '203.0.113.1' }] }))),
    ).toMatchObject({
      kind: 'failed',
      restored: true,
      reason: expect.stringContaining('Nexthop has invalid gateway') as unknown,
    });
    expect(net.picture()).toEqual(before);
  });

  it('are reported when they have drifted, and repaired with a lease', async () => {
    await start({ driftCheckMs: 60 });
    const wanted = config(...full());
    await host.bus.roll(wanted);
    net.ip('link', 'set', 'dev', 'l2.7', 'mtu', '1350');
    net.ip('link', 'set', 'dev', 'vx.7', 'nomaster');
    net.ip('address', 'delete', '2001:db8:7::1/64', 'dev', 'l2.7');
    net.ip('route', 'delete', 'blackhole', '10.9.0.0/16', 'table', '100');
    net.ip('rule', 'delete', 'priority', '100');
    const { differences } = await host.bus.reported(({ differences: all }) => all.length >= 5);
    expect(differences).toEqual([
      'link l2.7: is not set to mtu 1400',
      'link vx.7: is not set to master l2.7',
      'address 2001:db8:7::1/64 on l2.7: missing',
      'route 10.9.0.0/16 in table 100: missing',
      'rule 100 of IPv4 from 10.7.0.0/24 in table 100: missing',
    ]);
    expect(await host.bus.roll(wanted, { kind: 'repair' })).toMatchObject({ kind: 'applied' });
    expect(net.list('link', 'show', 'dev', 'l2.7')[0]).toMatchObject({ mtu: 1_400 });
    expect(net.list('link', 'show', 'dev', 'vx.7')[0]).toMatchObject({ master: 'l2.7' });
  });

  it('are recreated after a reboot, before the node reports anything', async () => {
    const first = await start({ bootId: 'boot-1' });
    await host.bus.roll(config(...full(), file('/f', 'x')));
    const before = net.picture().filter((line) => !line.startsWith('["link"'));
    await first.stop();
    for (const link of ['l2.7', 'vx.7', 'vlan.7']) net.ip('link', 'delete', link);
    net.ip('route', 'delete', 'default', 'table', '100');
    net.ip('rule', 'delete', 'priority', '100');
    await start({ bootId: 'boot-2' });
    expect(host.bus.reports.at(-1)).toMatchObject({ kind: 'announced', bootId: 'boot-2', restored: true });
    expect(net.picture().filter((line) => !line.startsWith('["link"'))).toEqual(before);
  });

  it('are also detected in place if namespaces are not allowed, without a trace', async () => {
    const before = net.picture();
    net.ip('link', 'add', 'slprobe-br', 'type', 'bridge');
    const possible = await linksTriedInPlace(new NetworkTools({ netns: net.name }));
    await start();
    expect(host.bus.reports.at(-1)?.capabilities.filter((word) => word.startsWith('link:'))).toEqual(
      possible.map((link) => `link:${link}`).sort(),
    );
    expect(possible).toEqual(expect.arrayContaining(['bridge', 'veth']));
    expect(net.picture()).toEqual(before);
  });

  it('leave no trace of a detection in place whose answer was too late', async () => {
    const before = net.picture();
    class SlowTools extends NetworkTools {
      override async try(argv: readonly string[]) {
        const result = await super.try(argv);
        return argv.includes('add') ? { ...result, code: 1, error: 'was killed after 15000 ms' } : result;
      }
    }
    expect(await linksTriedInPlace(new SlowTools({ netns: net.name }))).toEqual([]);
    expect(net.picture()).toEqual(before);
  });

  it('are not available to an applier with another root', async () => {
    await host.start();
    expect(
      host.bus.reports.at(-1)?.capabilities.filter((word) => /kind:(Layer2|Vrf|Bgp|Routing)|^link:|^frr/.test(word)),
    ).toEqual([]);
    expect(await host.bus.roll(config(l2('storage', 7)))).toMatchObject({ kind: 'failed', restored: true });
  });
});

describeWithNetwork(['netns', 'vrf', 'dummy'], 'VRFs', () => {
  it('are created with their loopbacks and routes, carry a layer-2 network, and are removed', async () => {
    const before = net.picture();
    await start();
    expect(
      await host.bus.roll(
        config(
          vrf({ loopbacks: [{ name: 'lo.red', subnet: '192.0.2.7/32' }], sbrPrefixes: ['10.1.0.0/16'] }),
          l2('storage', 7, { vrf: 'red', anycastMac, anycastGateways: ['10.7.0.1/24'] }),
        ),
      ),
    ).toMatchObject({ kind: 'applied' });
    expect(net.list('link', 'show', 'dev', 'l2.7')[0]).toMatchObject({ master: 'red' });
    expect(await host.bus.roll(config())).toMatchObject({ kind: 'applied' });
    expect(net.picture().filter((line) => !line.includes('l3mdev'))).toEqual(before);
  });
});

describeWithNetwork(['netns', 'vlan'], 'VLANs', () => {
  it('are tagged on their trunk', async () => {
    net.ip('link', 'add', 'eth0', 'type', 'veth', 'peer', 'name', 'far');
    await start();
    expect(await host.bus.roll(config(l2('storage', 7, { trunk: 'eth0' })))).toMatchObject({ kind: 'applied' });
    expect(net.list('-d', 'link', 'show', 'dev', 'vl.7')[0]).toMatchObject({
      link: 'eth0',
      master: 'l2.7',
      linkinfo: { info_data: { id: 7 } },
    });
  });
});
