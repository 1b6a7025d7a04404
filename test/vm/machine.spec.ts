import { describeWith } from '../e2e/needs.js';
import { DEMO, demo, everywhere, NODE, vmFile, VmScene } from './vm-scene.js';

jest.setTimeout(1_800_000);
const KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ5lXwPqNQZLQ6Q0Hn0g2l0X0mBz0mJ7S3b8gq5D3vYk somebody';

/** The tests on a VM that are short enough for every run. The rest is in `machine-*.spec.ts`. */
describeWith(['vm'], 'a machine of its own, with the applier of the Debian package', () => {
  const place = new VmScene();
  beforeAll(() => place.open());
  afterAll(() => place.close());

  test('announces everything that the hardened unit and its drop-ins allow', async () => {
    const { capabilities } = (await place.client.get('nodes', NODE))!;
    expect(capabilities).toEqual(
      expect.arrayContaining([
        'action:daemon-reload',
        'action:reboot',
        'action:restart',
        'kind:BgpPeering',
        'kind:KernelArguments',
        'kind:Layer2Network',
        'kind:RoutingTable',
        'kind:SshKeys',
        'kind:Sysctl',
        'kind:SystemdUnit',
        'kind:Vrf',
        'link:bridge',
        'link:dummy',
        'link:vlan',
        'link:vrf',
        'link:vxlan',
      ]),
    );
  });

  test('gets a unit, a kernel parameter, a key for a user of a name service, and a VRF with a VLAN', async () => {
    await place.vm.run('mkdir -p /etc/userdb');
    await place.vm.put(
      '/etc/userdb/remote.user',
      JSON.stringify({
        userName: 'remote',
        uid: 60_123,
        gid: 60_123,
        homeDirectory: '/home/remote',
        disposition: 'regular',
      }),
    );
    // Also written to the disk, because the power will be cut.
    await place.vm.run('install -d -o 60123 -g 60123 /home/remote && sync');
    await place.commit(
      demo(1_000),
      everywhere('SshKeys', 'remote', { user: 'remote', keys: [KEY] }),
      everywhere('Sysctl', 'swap', { key: 'vm.swappiness', value: '11' }),
      everywhere('Vrf', 'red', { vrf: 'red', loopbacks: [{ name: 'lo.red', subnet: '10.99.0.1/32' }] }),
      everywhere('Layer2Network', 'storage', {
        id: 7,
        trunk: 'eth0',
        vrf: 'red',
        anycastMac: '02:00:00:00:00:01',
        anycastGateways: ['10.7.0.1/24'],
      }),
      everywhere('RoutingTable', 'table', {
        tableId: 100,
        routes: [{ to: '10.9.0.0/16', blackhole: true }],
        rules: [{ priority: 100, from: '10.7.0.0/24' }],
      }),
    );
    expect(
      await place.vm.run(
        'grep ^ssh /home/remote/.ssh/authorized_keys; stat -c %u:%a /home/remote/.ssh /home/remote/.ssh/authorized_keys',
      ),
    ).toBe(`${KEY}\n60123:700\n60123:600`);
    expect(await place.vm.run(`systemctl is-active ${DEMO}; cat /proc/sys/vm/swappiness`)).toBe('active\n11');
    const links = await place.vm.run(
      'ip -br link show master red; ip -d link show type vlan; ip route show table 100; ip rule show priority 100',
    );
    for (const words of [
      'lo.red',
      'l2.7',
      'vlan protocol 802.1Q id 7',
      'blackhole 10.9.0.0/16',
      'from 10.7.0.0/24 lookup 100',
    ])
      expect(links).toContain(words);
  });

  test('whose power is cut during a change ends with one complete config, and has its network again', async () => {
    place.pauses.hold((point) => point === 'after write /etc/first');
    const change = await place.publish({ apply: [vmFile('first', 'new\n'), vmFile('second', 'new\n'), demo(2_000)] });
    expect(await place.pauses.reached('its first file')).toBe('after write /etc/first');
    const before = await place.bootId();
    await place.cutAndBoot();
    const { phase } = await place.ended(change);
    expect(await place.quiet()).toMatchObject({ verdict: phase === 'committed' ? 'applied' : 'failed' });
    expect(await place.bootId()).not.toBe(before);
    await place.comes(async () => (await place.unit(DEMO, 'ActiveState')) === 'active', 'the unit runs', 100_000);
    expect(await place.vm.run(`cat /etc/first /etc/second 2>&1; ${place.argumentOf(DEMO)}`)).toBe(
      phase === 'committed'
        ? 'new\nnew\n2000'
        : 'cat: /etc/first: No such file or directory\ncat: /etc/second: No such file or directory\n1000',
    );
    expect(await place.vm.run('cat /proc/sys/vm/swappiness; ip -br link show master red')).toMatch(/^11\n(.|\n)*l2\.7/);
  });
});
