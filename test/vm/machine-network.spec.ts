import { describeWith } from '../e2e/needs.js';
import { everywhere, vmFile, VmScene } from './vm-scene.js';

jest.setTimeout(1_800_000);

const storage = everywhere('Layer2Network', 'storage', {
  id: 7,
  vrf: 'red',
  anycastMac: '02:00:00:00:00:01',
  anycastGateways: ['10.7.0.1/24'],
});
/** A router in a namespace of the machine, behind a link into the network that Sluice creates. */
const PEER = `
ip netns add peer
ip link add wire type veth peer name far netns peer
ip link set wire master l2.7 up
ip -n peer link set lo up && ip -n peer address add 10.7.0.2/24 dev far && ip -n peer link set far up
mkdir -p /run/peer && chown frr:frr /run/peer
for daemon in zebra bgpd; do ip netns exec peer /usr/lib/frr/$daemon -d -f /dev/null -i /run/peer/$daemon.pid --vty_socket /run/peer -z /run/peer/zserv.api -P 0 -A 127.0.0.1; done
vtysh --vty_socket /run/peer -c 'configure terminal' -c 'router bgp 64513' -c 'bgp router-id 10.7.0.2' -c 'no bgp ebgp-requires-policy' -c 'no bgp network import-check' -c 'neighbor 10.7.0.1 remote-as 64512' \
  -c 'address-family ipv4 unicast' -c 'network 10.50.0.0/16' -c 'network 10.60.0.0/16'`;

describeWith(['vm-long'], 'the network of a machine', () => {
  const place = new VmScene();

  const speaks = (): Promise<string> =>
    place.comes(
      async () => {
        const found = await place.vm.run('ip route show vrf red');
        return found.includes('10.50.0.0/16') ? found : undefined;
      },
      'the route of the peer',
      200_000,
    );
  const hasItsPart = async (): Promise<boolean> =>
    (await place.vm.run('vtysh -c "show running-config" 2>/dev/null; true')).includes(
      'neighbor sluice-l2.7 remote-as 64513',
    );
  /** FRR's own file, which does not belong to Sluice. */
  const file = (): Promise<string> => place.vm.run('cat /etc/frr/frr.conf; stat -c "%U %a" /etc/frr/frr.conf');

  beforeAll(() => place.open());
  afterAll(() => place.close());

  test('gets a VRF with a network in which FRR peers with a neighbor, and accepts the permitted routes', async () => {
    await place.vm.run('systemctl enable --now frr', 300_000);
    const before = await file();
    await place.commit(
      everywhere('Vrf', 'red', { vrf: 'red', loopbacks: [{ name: 'lo.red', subnet: '10.99.0.1/32' }] }),
      storage,
      everywhere('BgpPeering', 'router', {
        network: 'storage',
        remoteAs: 64_513,
        localAs: 64_512,
        import: [{ cidr: '10.50.0.0/16', action: 'permit' }],
      }),
    );
    await place.vm.run(PEER);
    const routes = await speaks();
    expect(routes).toMatch(/10\.50\.0\.0\/16 .*via 10\.7\.0\.2 dev l2\.7 proto bgp/);
    expect(routes).not.toContain('10.60.0.0/16');
    expect(await file()).toBe(before);
  });

  test('peers again after a reboot', async () => {
    await place.commit(
      everywhere('DisruptionPolicy', 'boot', { files: [{ path: '/etc/boot-me', actions: [{ kind: 'reboot' }] }] }),
    );
    await place.commit(vmFile('boot-me', 'new\n'));
    await place.vm.run(PEER);
    await speaks();
  });

  test('peers again after a power cut, because FRR starts with its own file and the applier adds its part', async () => {
    await place.cutAndBoot();
    await place.comes(hasItsPart, 'FRR has its part again', 200_000);
    await place.vm.run(PEER);
    await speaks();
    expect(await place.quiet()).toMatchObject({ drifted: [] });
    expect(await place.vm.run('grep -c "router bgp" /etc/frr/frr.conf; true')).toBe('0');
  });

  test('peers again after a restart of FRR alone, without a report of drift', async () => {
    await place.vm.run('systemctl restart frr', 300_000);
    await place.comes(hasItsPart, 'FRR has its part again', 300_000);
    // The peer would try again in two minutes.
    await place.vm.run('vtysh --vty_socket /run/peer -c "clear bgp *"');
    await speaks();
    expect(await place.quiet()).toMatchObject({ drifted: [] });
  });

  test('refuses a peering that FRR rejects before anything changes', async () => {
    const before = await place.network();
    const other = everywhere('BgpPeering', 'other', { network: 'storage', remoteAs: 64_514, localAs: 64_999 });
    const { phase } = await place.apply(other);
    expect(phase).not.toBe('committed');
    expect(await place.quiet()).toMatchObject({ restored: true });
    expect(await place.network()).toBe(before);
  });
});
