import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { until } from '#libs/testing';
import type { Action, ConfigEntry } from '#libs/contracts';
import { FakeMachine } from '../../../testing/fake-machine.js';
import { config, Host, probe } from '../../applier-host.fixture.js';
import type { RunningApplier } from '../../index.js';

const args = (name: string, ...all: string[]): ConfigEntry => ({
  kind: 'KernelArguments',
  name,
  spec: { arguments: all },
});
const ACTIONS: readonly Action[] = [{ kind: 'drain' }, { kind: 'reboot' }];
const ENTRY = 'boot/loader/entries/debian.conf';
const ENTRIES = {
  [ENTRY]: 'title Debian\nlinux /vmlinuz\noptions root=/dev/sda1 quiet\n',
  'boot/loader/entries/old.conf': 'linux /old',
};

let host: Host;
let machine: FakeMachine;
let applier: RunningApplier;
let boot: number;
beforeEach(() => {
  host = new Host();
  machine = new FakeMachine(host.folder, host.root);
  machine.runsWith('root=/dev/sda1 quiet');
  boot = 1;
});
afterEach(() => host.end());

const write = (path: string, text: string): void => {
  mkdirSync(host.path(path.split('/').slice(0, -1).join('/')), { recursive: true });
  writeFileSync(host.path(path), text, { mode: 0o644 });
};
const withGrub = (): void => {
  write('etc/default/grub', 'GRUB_CMDLINE_LINUX="quiet"\n');
  write('boot/grub/grub.cfg', 'linux /vmlinuz root=/dev/sda1 quiet\n');
};
const withSystemdBoot = (): void => Object.entries(ENTRIES).forEach(([path, text]) => write(path, text));
/** The arguments with which the boot loader starts the kernel. */
const nextCmdline = (): string => {
  const text = (path: string): string => readFileSync(host.path(path), 'utf8');
  try {
    return text('boot/grub/grub.cfg').split(' ').slice(2).join(' ').trim();
  } catch {
    return text(ENTRY)
      .split('\n')
      .filter((line) => line.startsWith('options '))
      .map((line) => line.slice(8))
      .join(' ');
  }
};
const begin = async (): Promise<void> => {
  applier = await host.start({ host: machine.settings, bootId: `boot-${boot}`, awaitReport: boot === 1 });
};
/** The machine reboots as requested. */
async function restart(cmdline?: string): Promise<void> {
  await until(() => machine.rebootAsked, 'a restart is requested');
  await applier.stop();
  machine.boot(cmdline ?? nextCmdline());
  boot += 1;
  await begin();
}
async function roll(...entries: ConfigEntry[]): Promise<string> {
  const id = host.bus.grant(config(...entries), { actions: ACTIONS });
  await restart();
  return id;
}

describe.each([
  ['GRUB', withGrub],
  ['systemd-boot', withSystemdBoot],
])('with %s', (_loader, prepare) => {
  beforeEach(async () => {
    prepare();
    await begin();
  });

  it('starts the kernel with more arguments, changes them, and restores the boot loader', async () => {
    const before = host.tree();
    const first = await roll(args('cpu', 'nosmt', 'isolcpus=2-7'), args('mem', 'hugepages=64'));
    expect(await host.bus.reported(({ lease }) => lease === first)).toMatchObject({
      verdict: 'applied',
      bootId: 'boot-2',
    });
    expect(nextCmdline().split(' ').sort()).toEqual([
      'hugepages=64',
      'isolcpus=2-7',
      'nosmt',
      'quiet',
      'root=/dev/sda1',
    ]);
    const second = await roll(args('cpu', 'nosmt'));
    expect(await host.bus.reported(({ lease }) => lease === second)).toMatchObject({
      verdict: 'applied',
      bootId: 'boot-3',
    });
    expect(nextCmdline().split(' ').sort()).toEqual(['nosmt', 'quiet', 'root=/dev/sda1']);
    const third = await roll();
    expect(await host.bus.reported(({ lease }) => lease === third)).toMatchObject({
      verdict: 'applied',
      restored: true,
    });
    expect(host.tree()).toEqual(before);
  });

  it('rolls back with one more reboot if a probe fails with the new arguments', async () => {
    const before = host.tree();
    const gate = probe('gate', { file: { path: '/etc/gate', matches: '^open' } });
    write('etc/gate', 'open');
    host.bus.grant(config(args('cpu', 'nosmt'), gate), { actions: ACTIONS });
    await until(() => machine.rebootAsked);
    write('etc/gate', 'shut');
    await restart();
    await until(() => machine.rebootAsked);
    write('etc/gate', 'open');
    await restart();
    expect(await host.bus.reported(({ kind }) => kind === 'invalid')).toMatchObject({
      restored: true,
      bootId: 'boot-3',
      probe: 'gate',
    });
    expect(host.tree()).toEqual({ ...before, etc: 'dir 755', 'etc/gate': '644 open' });
    expect(nextCmdline()).toBe('root=/dev/sda1 quiet');
  });

  it('rolls back if the kernel started without them', async () => {
    const lease = host.bus.grant(config(args('cpu', 'nosmt')), { actions: ACTIONS });
    await restart('root=/dev/sda1 quiet');
    await restart();
    const report = await host.bus.reported((one) => one.lease === lease);
    expect(report).toMatchObject({ verdict: 'failed', restored: true });
    expect(report.reason).toContain('KernelArguments/cpu: the kernel runs without nosmt');
  });

  it('refuses a value that a boot loader could read as several arguments', async () => {
    expect(await host.bus.roll(config(args('cpu', 'a" b')), { actions: ACTIONS })).toMatchObject({
      verdict: 'invalid',
    });
  });
});

it('is announced only with a supported boot loader on a machine that may reboot', async () => {
  const has = async (rebootCommand?: readonly string[]): Promise<boolean> => {
    applier = await host.start({
      host: { ...machine.settings, ...(rebootCommand === undefined ? {} : { rebootCommand }) },
    });
    await applier.stop();
    return host.bus.reports.at(-1)?.capabilities.includes('kind:KernelArguments') ?? false;
  };
  expect(await has()).toBe(false);
  withGrub();
  expect(await has()).toBe(true);
  expect(await has([])).toBe(false);
});

it('reports drift if a kernel was installed since, whose entry lacks them', async () => {
  withSystemdBoot();
  applier = await host.start({ host: machine.settings, bootId: 'boot-1', driftCheckMs: 40 });
  const lease = host.bus.grant(config(args('cpu', 'nosmt')), { actions: ACTIONS });
  await until(() => machine.rebootAsked);
  await applier.stop();
  machine.boot(nextCmdline());
  await host.start({ host: machine.settings, bootId: 'boot-2', driftCheckMs: 40 });
  await host.bus.reported((report) => report.lease === lease);
  write('boot/loader/entries/newer.conf', 'linux /newer\n');
  expect(
    (await host.bus.reported(({ kind, differences }) => kind === 'drifted' && differences.length > 0)).differences,
  ).toEqual(['KernelArguments/cpu: /boot/loader/entries/newer.conf does not have nosmt']);
});
