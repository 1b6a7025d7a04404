import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { until } from '#libs/testing';
import { ROOT } from '../e2e/processes.js';

const SCRIPT = join(__dirname, 'namespace-node.sh');
const UNITS = 'etc/systemd/system';
/** Inside, the checkout is at /opt/sluice, and the folder that contains it outside may be hidden. */
const NODE = process.execPath.startsWith(`${ROOT}/`)
  ? join('/opt/sluice', relative(ROOT, process.execPath))
  : process.execPath;
/** Units that would read or write state of this machine. */
const MASKED = [
  'systemd-remount-fs',
  'systemd-udevd',
  'systemd-udev-trigger',
  'systemd-firstboot',
  'systemd-sysctl',
  'systemd-modules-load',
];

/** Why this machine cannot run such nodes. Undefined if it can. */
export function whyNoRealNode(): string | undefined {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-node-'));
  const { status, stdout } = spawnSync(SCRIPT, ['check', folder], { encoding: 'utf8' });
  rmSync(folder, { recursive: true, force: true });
  return status === 0
    ? undefined
    : `no systemd in namespaces here: ${(stdout ?? '').trim() || 'bash or unshare is missing'}`;
}

/**
 * A node with a real systemd as its first process, and the applier as one of its units. It restarts, and keeps its
 * files.
 */
export class RealNode {
  private process: ChildProcess | undefined;

  /** Without the URL of a server it has no applier yet, and a test installs it. */
  constructor(
    readonly name: string,
    readonly folder: string,
    private readonly serverUrl?: string,
  ) {}

  start(): void {
    const target = [
      '[Unit]',
      'Requires=basic.target',
      'Wants=sluice-applier.service',
      'After=basic.target',
      'AllowIsolate=yes',
      '',
    ];
    this.write(`${UNITS}/sluice-node.target`, target.join('\n'));
    if (this.serverUrl !== undefined) this.writeApplier(this.serverUrl);
    // A package uses the Node.js of the system, and the one of this machine may be too old.
    const programs = join(this.folder, 'upper/usr/local/bin');
    mkdirSync(programs, { recursive: true });
    symlinkSync(NODE, join(programs, 'node'));
    for (const unit of MASKED) symlinkSync('/dev/null', join(this.folder, 'upper', UNITS, `${unit}.service`));
    this.boot();
  }

  private writeApplier(serverUrl: string): void {
    const argv = [
      NODE,
      '/opt/sluice/bin/sluice',
      'applier',
      '--node',
      this.name,
      '--server',
      serverUrl,
      '--state',
      '/var/lib/sluice',
    ];
    const applier = [
      '[Service]',
      `ExecStart=${argv.join(' ')}`,
      'Restart=always',
      'RestartSec=200ms',
      'StandardError=append:/var/log/applier.log',
      '',
    ];
    this.write(`${UNITS}/sluice-applier.service`, applier.join('\n'));
  }

  private boot(): void {
    const log = openSync(join(this.folder, 'log'), 'a');
    this.process = spawn(SCRIPT, ['run', this.folder, ROOT], { stdio: ['ignore', log, log] });
  }

  /** A file of the node, before it starts. */
  write(path: string, content: string | Buffer): void {
    const file = join(this.folder, 'upper', path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, content);
  }

  /** The output of a command inside, without the final newline. Throws if the command fails. */
  run(...argv: readonly string[]): string {
    const { status, stdout, stderr } = spawnSync(SCRIPT, ['exec', this.folder, ...argv], { encoding: 'utf8' });
    if (status !== 0) throw new Error(`${argv.join(' ')} ended with ${status}: ${stderr}`);
    return stdout.trim();
  }

  /** A property of a unit, according to systemd. */
  unit(name: string, property: string): string {
    return this.run('systemctl', 'show', '--value', `--property=${property}`, name);
  }

  get bootId(): string {
    return readFileSync(join(this.folder, 'boot_id'), 'utf8').trim();
  }

  /** The applier's journal. Empty if there is none. */
  get journal(): string {
    const journal = join(this.folder, 'upper/var/lib/sluice/journal.json');
    return existsSync(journal) ? readFileSync(journal, 'utf8') : '';
  }

  /** kill -9 of everything at once, and a restart. */
  async crash(): Promise<void> {
    const before = this.bootId;
    const pid = join(this.folder, 'pid');
    process.kill(Number(await until(() => existsSync(pid) && readFileSync(pid, 'utf8'), 'the node is up')), 'SIGKILL');
    await until(() => this.process?.exitCode !== null || this.process.signalCode !== null, 'the node is gone');
    this.boot();
    await until(() => this.bootId !== '' && this.bootId !== before, 'the node starts again');
  }

  /** For finding out why something failed. */
  get log(): string {
    const log = join(this.folder, 'upper/var/log/applier.log');
    return existsSync(log) ? readFileSync(log, 'utf8') : '';
  }

  async stop(): Promise<void> {
    const { process: child } = this;
    if (child === undefined || child.exitCode !== null) return;
    child.kill('SIGTERM');
    await until(() => child.exitCode !== null || child.signalCode !== null, 'the node ends');
  }
}
