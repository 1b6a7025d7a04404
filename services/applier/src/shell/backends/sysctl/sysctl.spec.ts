import { accessSync, chmodSync, constants, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { ConfigEntry } from '#libs/contracts';
import { config, file, Host, probe } from '../../applier-host.fixture.js';
import { EMPTY_HASH } from '../../index.js';

const sysctl = (key: string, value: string): ConfigEntry => ({
  kind: 'Sysctl',
  name: key.replaceAll(/[./]/g, '-'),
  spec: { key, value },
});
const gate = probe('gate', { file: { path: '/etc/gate', matches: '^open' } });

let host: Host;
let proc: string;
beforeEach(async () => {
  host = new Host();
  proc = join(host.folder, 'proc');
  parameter('vm/swappiness', '60\n');
  parameter('net/ipv4/tcp_rmem', '4096\t131072\t6291456\n');
  parameter('net/ipv4/conf/eth0.100/rp_filter', '2\n');
  await host.start({ host: { proc }, driftCheckMs: 40 });
});
afterEach(() => host.end());

function parameter(path: string, value: string): void {
  mkdirSync(dirname(join(proc, 'sys', path)), { recursive: true });
  writeFileSync(join(proc, 'sys', path), value);
}
const now = (path: string): string => readFileSync(join(proc, 'sys', path), 'utf8');

it('rolls back to a value and a file that somebody changed by hand', async () => {
  const ours = (value: string) => sysctl('vm.swappiness', value);
  await host.bus.roll(config(file('/etc/gate', 'open'), ours('10')));
  const path = host.path('etc/sysctl.d/99-zz-sluice-vm.swappiness.conf');
  parameter('vm/swappiness', '33\n');
  writeFileSync(path, '# edited\n');
  const drift = { differences: [], overwrite: true };
  expect(await host.bus.roll(config(file('/etc/gate', 'shut'), gate, ours('20')), { drift })).toMatchObject({
    verdict: 'invalid',
    restored: true,
  });
  expect([now('vm/swappiness'), readFileSync(path, 'utf8')]).toEqual(['33\n', '# edited\n']);
});

it('refuses a parameter that nobody can change before anything is changed', async () => {
  parameter('kernel/random/uuid', 'a\n');
  chmodSync(join(proc, 'sys/kernel/random/uuid'), 0o444);
  const before = host.tree();
  const report = await host.bus.roll(config(file('/etc/gate', 'open'), sysctl('kernel.random.uuid', 'b')));
  expect([report.kind, report.reason]).toEqual([
    'invalid',
    expect.stringContaining('the kernel lets nobody change kernel.random.uuid'),
  ]);
  expect([host.tree(), now('kernel/random/uuid')]).toEqual([before, 'a\n']);
});

it('sets a value now and for the next boot, and restores both exactly', async () => {
  mkdirSync(host.path('etc/sysctl.d'), { recursive: true, mode: 0o755 });
  writeFileSync(host.path('etc/sysctl.d/99-sysctl.conf'), 'vm.swappiness = 7\n', { mode: 0o644 });
  const before = host.tree();
  expect(
    await host.bus.roll(
      config(
        sysctl('vm.swappiness', '10'),
        sysctl('net.ipv4.tcp_rmem', '1 2  3'),
        sysctl('net.ipv4.conf.eth0/100.rp_filter', '1'),
      ),
    ),
  ).toMatchObject({
    verdict: 'applied',
    changed: ['net.ipv4.conf.eth0/100.rp_filter', 'net.ipv4.tcp_rmem', 'vm.swappiness'],
  });
  expect([
    now('vm/swappiness'),
    now('net/ipv4/tcp_rmem').split(/\s+/).slice(0, 3),
    now('net/ipv4/conf/eth0.100/rp_filter').trim(),
  ]).toEqual(['10\n', ['1', '2', '3'], '1']);
  const files = Object.keys(host.tree())
    .filter((path) => path.startsWith('etc/sysctl.d/'))
    .sort();
  expect(files.at(-1)).toBe('etc/sysctl.d/99-zz-sluice-vm.swappiness.conf');
  expect(host.tree()[files.at(-1) ?? '']).toBe('644 # Sluice: Sysctl/vm-swappiness\nvm.swappiness = 10\n');
  expect(await host.bus.roll(config())).toMatchObject({ verdict: 'applied', hash: EMPTY_HASH });
  expect(host.tree()).toEqual(before);
  expect([now('vm/swappiness'), now('net/ipv4/tcp_rmem').trim().split(/\s+/)]).toEqual([
    '60\n',
    ['4096', '131072', '6291456'],
  ]);
});

// The kernel's own folder, whose directories have no write permission, not even for root. Nothing is written there.
it('is announced if the parameters can be written', async () => {
  const may = (() => {
    try {
      accessSync('/proc/sys/vm/swappiness', constants.W_OK);
      return true;
    } catch {
      return false;
    }
  })();
  const other = new Host();
  try {
    await other.start({ host: { proc: '/proc' } });
    const { capabilities } = await other.bus.reported(({ kind }) => kind === 'announced');
    expect(capabilities.includes('kind:Sysctl')).toBe(may);
  } finally {
    await other.end();
  }
});

it('restores the previous value when a change is rolled back', async () => {
  await host.bus.roll(config(sysctl('vm.swappiness', '10'), file('/etc/gate', 'open')));
  expect(await host.bus.roll(config(sysctl('vm.swappiness', '99'), file('/etc/gate', 'shut'), gate))).toMatchObject({
    verdict: 'invalid',
    restored: true,
  });
  expect(now('vm/swappiness').trim()).toBe('10');
});

it.each([
  ['an unknown parameter', 'vm.no_such_thing', 'the kernel has no parameter vm.no_such_thing'],
  ['a folder of parameters', 'net.ipv4', 'the kernel has no parameter net.ipv4'],
  ['a name that leaves /proc/sys', '../../x.y', 'is not the name of a kernel parameter'],
])('%s is invalid, and nothing changes', async (_name, key, reason) => {
  const report = await host.bus.roll(config(sysctl('vm.swappiness', '10'), sysctl(key, '1')));
  expect(report).toMatchObject({
    verdict: 'invalid',
    restored: true,
    reason: expect.stringContaining(reason) as string,
  });
  expect([host.tree(), now('vm/swappiness')]).toEqual([{}, '60\n']);
});

it('reports a value that was changed by someone else', async () => {
  const wanted = config(sysctl('vm.swappiness', '10'));
  await host.bus.roll(wanted);
  parameter('vm/swappiness', '77\n');
  expect(
    (await host.bus.reported(({ kind, differences }) => kind === 'drifted' && differences.length > 0)).differences,
  ).toEqual(['vm.swappiness: is 77 instead of 10']);
  expect(await host.bus.roll(wanted, { kind: 'repair' })).toMatchObject({
    verdict: 'applied',
    changed: ['vm.swappiness'],
  });
  expect(now('vm/swappiness').trim()).toBe('10');
});

const IS_ROOT = process.getuid?.() === 0;
it('a value that the kernel rejects is invalid, and a value that cannot be written makes the node fail', async () => {
  await host.end();
  host = new Host();
  // The real kernel. What it rejects changes nothing.
  await host.start({ host: { proc: '/proc' } });
  const report = await host.bus.roll(config(sysctl('kernel.printk', 'words')));
  expect(report).toMatchObject({
    restored: true,
    hash: EMPTY_HASH,
    verdict: IS_ROOT && /the kernel rejects/.test(report.reason) ? 'invalid' : 'failed',
  });
  expect(host.tree()).toEqual({});
  chmodSync(host.root, 0o755);
});
