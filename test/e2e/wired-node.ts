import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Guard } from '#libs/process';
import { until } from '#libs/testing';
import { Namespace } from '../../services/applier/src/testing/network-namespace.js';
import { ROOT } from './processes.js';

/** One of the 16,384 networks of two hosts within 192.168.0.0/16, so that test runs do not share one. */
const address = (host: number): string => {
  const last = (process.pid % 16_384) * 4 + host;
  return `192.168.${Math.floor(last / 256)}.${last % 256}`;
};
/** A small network of two hosts, one with the server and one with the node. This machine is not part of it. */
const [SERVER, NODE] = [address(1), address(2)] as const;
export const WIRE = `${address(0)}/30`;

/** A node in a network namespace, whose applier can reach the server only over one link. */
export class WiredNode {
  readonly net = new Namespace();
  readonly folder = mkdtempSync(join(tmpdir(), 'sluice-wired-'));
  private readonly guard = new Guard();
  private readonly sockets = new Set<Socket>();
  private server: Server | undefined;
  private child: ChildProcess | undefined;
  private isLaid = false;
  private readonly wire = `slw${process.pid}`.slice(0, 15);

  /** Creates the link, and makes a port on loopback reachable over it. */
  async lay(target: number): Promise<string> {
    const { net, wire } = this;
    this.isLaid = true;
    net.host('ip', 'link', 'add', wire, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', net.name);
    net.host('ip', 'address', 'add', `${SERVER}/30`, 'dev', wire);
    net.host('ip', 'link', 'set', wire, 'up');
    net.ip('address', 'add', `${NODE}/30`, 'dev', 'eth0');
    net.ip('link', 'set', 'eth0', 'up');
    net.ip('route', 'add', 'default', 'via', SERVER);
    const server = createServer((near) => {
      const far = connect(target, '127.0.0.1');
      for (const [one, other] of [
        [near, far],
        [far, near],
      ] as const) {
        this.sockets.add(one);
        one.on('error', () => undefined).on('close', () => other.destroy());
        one.pipe(other);
      }
    });
    this.server = server;
    await new Promise<void>((resolve) => server.listen(0, SERVER, resolve));
    const at = server.address();
    return `nats://${SERVER}:${typeof at === 'object' ? at?.port : ''}`;
  }

  /** Starts the applier, as a real process in the namespace. */
  start(url: string): void {
    const log = openSync(join(this.folder, 'applier.log'), 'a');
    const args = ['netns', 'exec', this.net.name, process.execPath, join(ROOT, 'dist/services/applier/src/main.js')];
    this.child = spawn(
      'ip',
      [...args, '--node', 'wired', '--root', '/', '--state', join(this.folder, 'state'), '--server', url],
      { stdio: ['ignore', log, log], detached: true },
    );
    closeSync(log);
    this.guard.watch([this.child.pid as number]);
  }

  async kill(signal: 'SIGKILL' | 'SIGSTOP' = 'SIGKILL'): Promise<void> {
    const child = this.child as ChildProcess;
    child.kill(signal);
    if (signal === 'SIGKILL') await this.gone();
  }

  async gone(): Promise<void> {
    const child = this.child as ChildProcess;
    await until(() => child.exitCode !== null || child.signalCode !== null, 'the applier has ended');
  }

  get log(): string {
    return readFileSync(join(this.folder, 'applier.log'), 'utf8');
  }

  get journal(): {
    readonly work?: unknown;
    readonly lastDealt?: { readonly verdict: string; readonly reason: string };
  } {
    const text = readFileSync(join(this.folder, 'state', 'journal.json'), 'utf8');
    return (JSON.parse(text) as { readonly journal: WiredNode['journal'] }).journal;
  }

  async close(): Promise<void> {
    if (this.child !== undefined && this.child.exitCode === null && this.child.signalCode === null) await this.kill();
    for (const socket of this.sockets) socket.destroy();
    this.server?.close();
    this.guard.close();
    // The kernel keeps a deleted namespace, and both ends of the link, for minutes while a connection was not closed.
    if (this.isLaid) this.net.host('ip', 'link', 'delete', this.wire);
    this.net.end();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
