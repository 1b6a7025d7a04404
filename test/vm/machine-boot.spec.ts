import { describeWith } from '../e2e/needs.js';
import { DEMO, demo, everywhere, vmFile, VmScene } from './vm-scene.js';

jest.setTimeout(1_800_000);

describeWith(['vm-long'], 'a machine that reboots', () => {
  const place = new VmScene();
  /** Without the file name of the kernel, which depends on the author of the boot loader's config. */
  const commandLine = (): Promise<string> => place.vm.run('cut -d" " -f2- /proc/cmdline');
  /** The files from which the config of the boot loader is generated, including those of packages. */
  const bootFiles = (): Promise<string> => place.vm.run('sha256sum /etc/default/grub /etc/default/grub.d/* 2>&1; true');
  const reboots = everywhere('DisruptionPolicy', 'boot', {
    files: [{ path: '/etc/boot-me', actions: [{ kind: 'drain' }, { kind: 'reboot' }] }],
  });

  beforeAll(() => place.open());
  afterAll(() => place.close());

  test('during a lease confirms on the next boot', async () => {
    const before = await place.bootId();
    await place.commit(reboots);
    await place.commit(vmFile('boot-me', 'new\n'), demo(1_000));
    expect(await place.bootId()).not.toBe(before);
    expect(await place.vm.run(`cat /etc/boot-me; ${place.argumentOf(DEMO)}`)).toBe('new\n1000');
    expect(await place.untilReason('', 'applied')).toMatchObject({ restored: true });
  });

  test('rolls back with one more reboot if a probe fails afterwards', async () => {
    await place.vm.run('echo yes > /run/was-here');
    const before = await place.bootId();
    const probe = everywhere('Probe', 'same-boot', {
      file: { path: '/run/was-here', matches: '^yes' },
      retries: 0,
      timeout: '5s',
    });
    expect(await place.apply(probe, vmFile('boot-me', 'newer\n'))).toMatchObject({
      phase: 'ended',
      outcome: 'reverted',
    });
    expect(await place.untilReason('probe same-boot passed before and fails now', 'failed')).toMatchObject({
      restored: true,
    });
    expect(await place.bootId()).not.toBe(before);
    expect(await place.vm.run('cat /etc/boot-me')).toBe('new');
  });

  test('has the kernel arguments of its boot loader, and none once they are deleted', async () => {
    const before = await commandLine();
    const args = everywhere('KernelArguments', 'rig', { arguments: ['rig.first=1', 'rig.second'] });
    await place.commit(args);
    expect(await commandLine()).toBe(`${before} rig.first=1 rig.second`);
    expect(await place.delete(args)).toMatchObject({ phase: 'committed' });
    expect(await commandLine()).toBe(before);
  });

  test('rolls back to the previous arguments if a probe fails after the boot', async () => {
    const [before, files] = [await commandLine(), await bootFiles()];
    const probe = everywhere('Probe', 'arguments', {
      file: { path: '/run/was-here', matches: '^yes' },
      retries: 0,
      timeout: '5s',
    });
    await place.vm.run('echo yes > /run/was-here');
    expect(await place.apply(probe, everywhere('KernelArguments', 'rig', { arguments: ['rig.third'] }))).toMatchObject({
      phase: 'ended',
      outcome: 'reverted',
    });
    expect(await place.quiet()).toMatchObject({ verdict: 'failed', restored: true });
    expect(await commandLine()).toBe(before);
    expect(await bootFiles()).toBe(files);
    expect(await place.vm.run('grep -c rig.third /boot/grub/grub.cfg; true')).toBe('0');
  });
});
