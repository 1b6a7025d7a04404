import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Guard } from '#libs/process';
import { until } from '#libs/testing';
import { run, type CommandOutput } from './fleet.js';
import { ROOT, SLUICE } from './processes.js';

export interface UpJson {
  readonly server: string;
  readonly pid: number;
  readonly pids: Readonly<Record<string, number>>;
}

/** `sluice up` in a separate folder, as a person runs it. */
export class LocalInstallation {
  readonly folder = mkdtempSync(join(tmpdir(), 'sluice-e2e-up-'));
  readonly data = join(this.folder, 'data');
  readonly env: NodeJS.ProcessEnv = {
    ...process.env,
    HOME: this.folder,
    XDG_CONFIG_HOME: this.folder,
    NO_COLOR: '1',
    USER: 'somebody',
    XDG_CACHE_HOME: cacheHome(),
  };
  private readonly guard = new Guard();
  private child: ChildProcess | undefined;
  /** The output of `sluice up`, except its URL. */
  stderr = '';

  /** Starts it. Resolves when everything answers. */
  async up(...args: readonly string[]): Promise<string> {
    const child = spawn(process.execPath, [SLUICE, 'up', '--data', this.data, '--port', '0', ...args], {
      env: this.env,
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    });
    this.child = child;
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => (this.stderr += chunk));
    this.guard.watch([child.pid as number]);
    let stdout = '';
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => (stdout += chunk));
    const url = await until(() => {
      if (child.exitCode !== null) throw new Error(`sluice up ended with ${child.exitCode}: ${this.stderr}`);
      return /^nats:\S+$/m.exec(stdout)?.[0];
    }, 'sluice up says its URL');
    this.env['NATS_URL'] = url;
    // On a busy machine, it stops waiting before everything answers, and says so.
    await until(() => this.stderr.includes('Press Ctrl-C'), 'sluice up says how to use it');
    if (this.stderr.includes('Not ready yet'))
      await until(async () => (await this.run('doctor')).code === 0, 'everything answers');
    return url;
  }

  /** Sends SIGINT, like Ctrl-C. Returns the exit code. */
  async interrupt(): Promise<number | null> {
    const child = this.child as ChildProcess;
    const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
    child.kill('SIGINT');
    await until(() => child.exitCode !== null || child.signalCode !== null, 'sluice up ends');
    return ended;
  }

  get upJson(): UpJson {
    return JSON.parse(readFileSync(join(this.data, 'up.json'), 'utf8')) as UpJson;
  }
  get hasUpJson(): boolean {
    return existsSync(join(this.data, 'up.json'));
  }

  /** A file of a node. Undefined if it does not exist. */
  file(node: string, path: string): string | undefined {
    const file = join(this.data, 'nodes', node, 'root', path);
    return existsSync(file) ? readFileSync(file, 'utf8') : undefined;
  }

  /** Edits a file of a node without Sluice. */
  put(node: string, path: string, content: string): void {
    writeFileSync(join(this.data, 'nodes', node, 'root', path), content);
  }

  /** Writes manifests to a file. Returns its path. */
  write(name: string, ...manifests: readonly object[]): string {
    const path = join(this.folder, name);
    writeFileSync(path, manifests.map((manifest) => JSON.stringify(manifest)).join('\n---\n'));
    return path;
  }

  run(...args: readonly string[]): Promise<CommandOutput> {
    return run(process.execPath, [SLUICE, ...args], { env: this.env, cwd: ROOT });
  }

  /** The output of a command with `-o json`, parsed. */
  async json<T = unknown>(...args: readonly string[]): Promise<T> {
    const { stdout, stderr, code } = await this.run(...args, '-o', 'json');
    if (stdout === '') throw new Error(`${args.join(' ')}: exit code ${code}: ${stderr}`);
    return JSON.parse(stdout) as T;
  }

  async close(): Promise<void> {
    if (this.child !== undefined && this.child.exitCode === null && this.child.signalCode === null)
      await this.interrupt();
    this.guard.close();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** The cache of the user, because HOME is another folder here. It contains the nats-server that was built once. */
const cacheHome = (): string => process.env['XDG_CACHE_HOME'] ?? join(process.env['HOME'] ?? '/', '.cache');

export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
