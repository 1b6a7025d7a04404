import { describeWith } from '../e2e/needs.js';
import { everywhere, VmScene } from './vm-scene.js';

jest.setTimeout(1_800_000);

/** Routes everything to the server into a table that drops it. */
const cut = (tableId: number) =>
  everywhere('RoutingTable', 'cut', {
    tableId,
    routes: [{ to: '10.0.2.0/24', blackhole: true }],
    rules: [{ priority: 10, to: '10.0.2.0/24' }],
  });

describeWith(['vm-long'], 'a machine that a change cuts off', () => {
  const place = new VmScene();
  const isCut = async (): Promise<boolean> => (await place.vm.run('ip rule show priority 10')) !== '';
  const guards = (): Promise<string> =>
    place.vm.run('systemctl list-units --all --plain --no-legend "sluice-guard-*.service" | cut -d" " -f1');
  /** Without the help of the service manager: nothing restarts an applier that was killed. */
  const alone = (is: boolean): Promise<string> =>
    place.vm.run(
      `${is ? 'mkdir -p /run/systemd/system/sluice-applier.service.d && printf "[Service]\\nRestart=no\\n" >' : 'rm -f'} /run/systemd/system/sluice-applier.service.d/alone.conf && systemctl daemon-reload`,
    );

  /** Waits for cleanup that happens a moment after the end of the work. Shows what remains. */
  async function isAgain(before: string): Promise<void> {
    await place
      .comes(async () => (await place.network()) === before, 'the network is as it was', 60_000)
      .catch(() => undefined);
    expect(await place.network()).toBe(before);
  }

  beforeAll(async () => {
    await place.open();
    await place.commit(
      everywhere('Layer2Network', 'storage', {
        id: 7,
        anycastMac: '02:00:00:00:00:01',
        anycastGateways: ['10.7.0.1/24'],
      }),
    );
    await place.commit(everywhere('Pool', 'all', { applyTimeout: '150s' }));
  });
  afterAll(() => place.close());

  test('is restored on its own, and the change is to blame', async () => {
    const before = await place.network();
    const change = await place.publish({ apply: [cut(100)] });
    await place.comes(isCut, 'the change is in force', 200_000);
    expect(await guards()).toMatch(/^sluice-guard-\w+\.service$/);
    expect(await place.ended(change)).toMatchObject({ phase: 'ended', outcome: 'reverted' });
    await place.quiet();
    await isAgain(before);
    await place.comes(async () => (await guards()) === '', 'the guard is taken away', 100_000);
  });

  test.each(['KILL', 'STOP'])('is restored by a separate service when the applier got a SIG%s', async (signal) => {
    const before = await place.network();
    await alone(true);
    const change = await place.publish({ apply: [cut(signal === 'KILL' ? 101 : 102)] });
    await place.comes(isCut, 'the change is in force', 200_000);
    await place.vm.run(`systemctl kill --kill-whom=main --signal=SIG${signal} sluice-applier`);
    await place.comes(async () => !(await isCut()), 'the guard rolls back', 300_000);
    await place.comes(
      async () => (await place.journal()).work === undefined,
      'the guard has finished the rollback',
      100_000,
    );
    await isAgain(before);
    expect((await place.journal()).lastDealt?.reason).toMatch(
      signal === 'KILL'
        ? /^not confirmed \d+ ms after the lease was read/
        : /^the applier did not respond for \d+ s in the step /,
    );
    expect(await place.vm.run('systemctl is-active sluice-applier; true')).toMatch(/^(failed|inactive)$/);
    await alone(false);
    await place.vm.run('systemctl start sluice-applier');
    expect(await place.ended(change)).toMatchObject({ phase: 'ended', outcome: 'reverted' });
    await place.quiet();
  });

  test('is restored after a power cut', async () => {
    const change = await place.publish({ apply: [cut(103)] });
    await place.comes(isCut, 'the change is in force', 200_000);
    await place.cutAndBoot();
    expect(await place.ended(change)).toMatchObject({ phase: 'ended', outcome: 'reverted' });
    await place.quiet();
    expect(await isCut()).toBe(false);
    expect(await place.vm.run('ip -br address show dev l2.7')).toContain('10.7.0.1/24');
  });
});
