import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** What only some machines have: permission to create namespaces, kinds of links that a kernel may lack, programs. */
export type NetworkNeed = 'netns' | 'vrf' | 'vlan' | 'dummy' | 'frr';

const PATH = `${process.env['PATH'] ?? ''}:/usr/sbin:/sbin`;
const run = (argv: readonly string[]): ReturnType<typeof spawnSync> =>
  spawnSync(argv[0] ?? '', argv.slice(1), { env: { ...process.env, PATH }, encoding: 'utf8' });
const makes = (...words: string[]): boolean => {
  const { status, stderr } = run(['unshare', '--net', 'ip', 'link', 'add', 'name', 'probe', ...words]);
  return status === 0 || String(stderr).includes('VLANs not supported');
};

const WHY_NOT: Readonly<Record<NetworkNeed, () => string | undefined>> = {
  netns: () =>
    run(['unshare', '--net', 'ip', 'link', 'add', 'name', 'probe', 'type', 'bridge']).status === 0
      ? undefined
      : 'no network namespace with a bridge can be made here',
  vrf: () => (makes('type', 'vrf', 'table', '7') ? undefined : 'this kernel has no VRFs'),
  vlan: () => (makes('link', 'lo', 'type', 'vlan', 'id', '7') ? undefined : 'this kernel has no VLANs'),
  dummy: () => (makes('type', 'dummy') ? undefined : 'this kernel has no dummy interfaces'),
  frr: () => (existsSync('/usr/lib/frr/frr-reload.py') ? undefined : 'FRR is not installed'),
};

/** Tests that need these. If one is missing, they are skipped, and their name says why. */
export function describeWithNetwork(needs: readonly NetworkNeed[], name: string, tests: () => void): void {
  const why = needs.flatMap((need) => WHY_NOT[need]() ?? []).join('; ');
  if (why === '') describe(name, tests);
  else describe.skip(`${name} (${why})`, tests);
}

/** The network namespace of one test. */
export class Namespace {
  readonly name = `sluice-${process.pid}-${(count += 1)}`;
  private readonly folders: string[] = [];

  constructor() {
    endOthers();
    this.host('ip', 'netns', 'add', this.name);
    this.ip('link', 'set', 'lo', 'up');
  }

  host(...argv: readonly string[]): string {
    return execFileSync(argv[0] ?? '', argv.slice(1), {
      env: { ...process.env, PATH },
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    });
  }

  ip(...words: readonly string[]): string {
    return this.host('ip', '-n', this.name, ...words);
  }

  /** Runs inside the namespace. */
  exec(...argv: readonly string[]): string {
    return this.host('ip', 'netns', 'exec', this.name, ...argv);
  }

  list(...words: readonly string[]): readonly Record<string, unknown>[] {
    const { stdout } = run(['ip', '-n', this.name, '-j', '-N', ...words]);
    return String(stdout).trim() === '' || String(stdout).trim() === '['
      ? []
      : (JSON.parse(String(stdout)) as readonly Record<string, unknown>[]);
  }

  /** Everything that a network change may alter, as texts, without the kernel's counters. */
  picture(): readonly string[] {
    const links = this.list('-d', 'link').map(({ ifname, mtu, master, address, flags, group }) =>
      JSON.stringify(['link', ifname, mtu, master, address, flags, group]),
    );
    const addresses = this.list('address').flatMap(({ ifname, addr_info: all }) =>
      (all as { local: string; prefixlen: number }[]).map(
        ({ local, prefixlen }) => `address ${String(ifname)} ${local}/${prefixlen}`,
      ),
    );
    const routes = ['-4', '-6'].flatMap((family) =>
      this.list(family, 'route', 'show', 'table', 'all').map((route) => JSON.stringify(route)),
    );
    const rules = ['-4', '-6'].flatMap((family) => this.list(family, 'rule').map((rule) => JSON.stringify(rule)));
    return [...links, ...addresses, ...routes, ...rules]
      .filter((line) => !line.includes('fe80') && !line.includes('ff00::'))
      .sort();
  }

  /** FRR's zebra, staticd and bgpd in the namespace. Returns the folder of their sockets. */
  startFrr(text = ''): string {
    const folder = mkdtempSync(join(tmpdir(), 'sluice-frr-run-'));
    this.folders.push(folder);
    this.host('chown', 'frr:frr', folder);
    for (const daemon of ['zebra', 'staticd', 'bgpd']) this.startDaemon(folder, daemon);
    if (text !== '') this.vtysh(folder, ...text.split('\n').flatMap((line) => ['-c', line]));
    return folder;
  }

  /** Crashes one daemon and restarts it without its configuration. */
  restartFrr(folder: string, daemon = 'bgpd'): void {
    const pid = readFileSync(join(folder, `${daemon}.pid`), 'utf8').trim();
    this.host('sh', '-c', `kill -9 ${pid}; while grep -q ') [^Z]' /proc/${pid}/stat 2>/dev/null; do sleep 0.05; done`);
    this.startDaemon(folder, daemon);
  }

  private startDaemon(folder: string, daemon: string): void {
    this.exec(
      `/usr/lib/frr/${daemon}`,
      '-d',
      '-f',
      '/dev/null',
      '-i',
      join(folder, `${daemon}.pid`),
      '--vty_socket',
      folder,
      '-z',
      join(folder, 'zserv.api'),
      '-P',
      '0',
      '-A',
      '127.0.0.1',
    );
  }

  vtysh(folder: string, ...words: readonly string[]): string {
    return this.exec('vtysh', '--vty_socket', folder, ...words);
  }

  /** Ends its processes and removes it. */
  end(): void {
    for (const pid of String(run(['ip', 'netns', 'pids', this.name]).stdout)
      .split('\n')
      .filter((text) => text !== ''))
      process.kill(Number(pid), 'SIGKILL');
    run(['ip', 'netns', 'delete', this.name]);
    for (const folder of this.folders) rmSync(folder, { recursive: true, force: true });
  }
}

let count = 0;

/** Deletes what test runs left behind that were killed. */
function endOthers(): void {
  const names = String(run(['ip', 'netns', 'list']).stdout).matchAll(/^sluice-(\d+)-\d+/gm);
  for (const [name, pid] of names) if (!existsSync(`/proc/${pid}`)) run(['ip', 'netns', 'delete', name]);
}
