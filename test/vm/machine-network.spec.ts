import { until } from '#libs/testing';
import { describeWith } from '../e2e/needs.js';
import { everywhere, vmFile, VmScene } from './vm-scene.js';

jest.setTimeout(900_000);

const storage = everywhere('Layer2Network', 'storage', { id: 7, vrf: 'red', anycastMac: '02:00:00:00:00:01', anycastGateways: ['10.7.0.1/24'] });
/** Turns all that goes to the server into a table in which it ends. */
const cut = (tableId: number) => everywhere('RoutingTable', 'cut', { tableId, routes: [{ to: '10.0.2.0/24', blackhole: true }], rules: [{ priority: 10, to: '10.0.2.0/24' }] });
/** A router in a namespace of the machine, behind a wire into the network that Sluice makes. */
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
  const isCut = async (): Promise<boolean> => (await place.vm.run('ip rule show priority 10')) !== '';
  const picture = (): Promise<string> => place.vm.run('ip rule; ip route show table all | grep -v "^local\\|^broadcast\\|^ff00\\|fe80" | sort; ip -br address | sort');
  const guards = (): Promise<string> => place.vm.run('systemctl list-units --all --plain --no-legend "sluice-guard-*.timer" | cut -d" " -f1');
  /** Without its service manager's help: nothing starts an applier again that was killed. */
  const alone = (is: boolean): Promise<string> => place.vm.run(
    `${is ? 'mkdir -p /run/systemd/system/sluice-applier.service.d && printf "[Service]\\nRestart=no\\n" >' : 'rm -f'} /run/systemd/system/sluice-applier.service.d/alone.conf && systemctl daemon-reload`);

  beforeAll(() => place.open());
  afterAll(() => place.close());

  test('gets a VRF with a network in which FRR speaks with a peer, and takes the routes that it may', async () => {
    await place.vm.run('systemctl enable --now frr', 300_000);
    await place.commit(everywhere('Vrf', 'red', { vrf: 'red', loopbacks: [{ name: 'lo.red', subnet: '10.99.0.1/32' }] }), storage,
      everywhere('BgpPeering', 'router', { network: 'storage', remoteAs: 64_513, localAs: 64_512, import: [{ cidr: '10.50.0.0/16', action: 'permit' }] }));
    await place.vm.run(PEER);
    const routes = await until(async () => {
      const found = await place.vm.run('ip route show vrf red');
      return found.includes('10.50.0.0/16') ? found : undefined;
    }, 'the route of the peer', 200_000);
    expect(routes).toMatch(/10\.50\.0\.0\/16 .*via 10\.7\.0\.2 dev l2\.7 proto bgp/);
    expect(routes).not.toContain('10.60.0.0/16');
  });

  test('speaks with it again after a restart of the machine', async () => {
    await place.commit(everywhere('DisruptionPolicy', 'boot', { files: [{ path: '/etc/boot-me', actions: [{ kind: 'reboot' }] }] }));
    await place.commit(vmFile('boot-me', 'new\n'));
    await place.vm.run(PEER);
    await until(async () => (await place.vm.run('ip route show vrf red')).includes('10.50.0.0/16'), 'the route of the peer', 200_000);
  });

  test('a peering that FRR does not take is refused before anything is done', async () => {
    const before = await picture();
    const other = everywhere('BgpPeering', 'other', { network: 'storage', remoteAs: 64_514, localAs: 64_999 });
    const { phase } = await place.apply(other);
    expect(phase).not.toBe('committed');
    expect(await place.quiet()).toMatchObject({ restored: true });
    expect(await picture()).toBe(before);
  });

  test('cut off by a change comes back by itself, and the change is to blame', async () => {
    await place.commit(everywhere('Pool', 'all', { applyTimeout: '90s' }));
    const before = await picture();
    const change = await place.publish({ apply: [cut(100)] });
    await until(isCut, 'the change is in force', 200_000);
    expect(await guards()).toMatch(/^sluice-guard-\w+\.timer$/);
    expect(await place.ended(change)).toMatchObject({ phase: 'ended', outcome: 'reverted' });
    await place.quiet();
    expect(await picture()).toBe(before);
    await until(async () => (await guards()) === '', 'the guard is taken away');
  });

  test.each(['KILL', 'STOP'])('cut off by a change comes back by a timer of systemd when the applier got a SIG%s', async (signal) => {
    const before = await picture();
    await alone(true);
    const change = await place.publish({ apply: [cut(signal === 'KILL' ? 101 : 102)] });
    await until(isCut, 'the change is in force', 200_000);
    await place.vm.run(`systemctl kill --kill-whom=main --signal=SIG${signal} sluice-applier`);
    await until(async () => !(await isCut()), 'the guard goes back', 300_000);
    await until(async () => (await place.journal()).work === undefined, 'the guard has ended the work', 100_000);
    expect(await picture()).toBe(before);
    expect((await place.journal()).lastDealt?.reason).toMatch(/^not confirmed \d+ ms after the lease was read/);
    expect(await place.vm.run('systemctl is-active sluice-applier; true')).toMatch(/^(failed|inactive)$/);
    await alone(false);
    await place.vm.run('systemctl start sluice-applier');
    expect(await place.ended(change)).toMatchObject({ phase: 'ended', outcome: 'reverted' });
    await place.quiet();
  });

  test('cut off by a change comes back after a power cut', async () => {
    const change = await place.publish({ apply: [cut(103)] });
    await until(isCut, 'the change is in force', 200_000);
    await place.cutAndBoot();
    expect(await place.ended(change)).toMatchObject({ phase: 'ended', outcome: 'reverted' });
    await place.quiet();
    expect(await isCut()).toBe(false);
    expect(await place.vm.run('ip -br link show master red')).toContain('l2.7');
  });
});
