import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Guard } from '#libs/process';
import { GuestAgent, NoAnswer, type GuestResult } from './guest-agent.js';
import { saveState } from './monitor.js';
import { qemuWords } from './qemu.js';
import type { VmTools } from './tools.js';

/** The address of the host's loopback in the guest. */
export const HOST_IN_GUEST = '10.0.2.2';
/** A boot takes 10 s on an idle machine, and has taken minutes on a busy one. */
const BOOT_MS = 300_000;
const COMMAND_MS = 120_000;

/**
 * An emulated machine with kernel, boot loader, disk and network. Its folder has `disk.img`, which is its disk, and
 * `grub.img`. It restarts like a real machine; `cut` is a power cut.
 */
export class VirtualMachine {
  private process: ChildProcess | undefined;
  private readonly guard = new Guard();
  private turn: Promise<unknown> = Promise.resolve();

  constructor(
    readonly folder: string,
    private readonly tools: VmTools,
  ) {}

  /** Switches it on, from its disk or from a saved state. Use `up` to wait for it. */
  start(state?: string): void {
    const log = openSync(join(this.folder, 'qemu.log'), 'a');
    const argv = [
      ...qemuWords(this.tools.firmware),
      ...(state === undefined ? [] : ['-incoming', `exec:cat '${state}'`]),
    ];
    const child = spawn('qemu-system-x86_64', argv, {
      cwd: this.folder,
      env: this.tools.env,
      stdio: ['ignore', log, log],
      detached: true,
    });
    closeSync(log);
    child.on('error', () => undefined);
    this.process = child;
    if (child.pid !== undefined) this.guard.watch([child.pid]);
  }

  /** Waits until commands can run in it. */
  async up(timeoutMs = BOOT_MS): Promise<void> {
    await this.talk((agent) => Promise.resolve(agent), 'it is up', timeoutMs);
  }

  /** Cuts the power: what was not yet on its disk is lost. */
  async cut(): Promise<void> {
    const child = this.process;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await ended;
  }

  /** Saves its whole state into this file, and ends it. */
  async save(file: string): Promise<void> {
    await this.inTurn(() => saveState(join(this.folder, 'qmp.sock'), file));
  }

  /** Runs a shell command. Waits first until the machine is up. */
  try(script: string, timeoutMs = COMMAND_MS): Promise<GuestResult> {
    return this.talk((agent) => agent.run(['/bin/bash', '-c', script], '', timeoutMs), 'it answers');
  }

  /** The output of a command, without the final newline. Throws if the command fails. */
  async run(script: string, timeoutMs = COMMAND_MS): Promise<string> {
    const { code, out, error } = await this.try(script, timeoutMs);
    if (code !== 0)
      throw new Error(`in the VM: ${script.slice(0, 300)} ended with ${code}: ${error.trim() || out.trim()}`);
    return out.trimEnd();
  }

  put(path: string, content: string | Buffer): Promise<void> {
    return this.talk((agent) => agent.put(path, Buffer.from(content)), 'it answers');
  }

  /** For finding out why something failed. */
  get console(): string {
    const path = join(this.folder, 'console.log');
    return existsSync(path) ? readFileSync(path, 'latin1') : '';
  }

  async close(): Promise<void> {
    await this.cut();
    this.guard.close();
  }

  /** During a restart there is no answer. Wait for it, and do not repeat a command that was started. */
  private talk<T>(use: (agent: GuestAgent) => Promise<T>, what: string, timeoutMs = BOOT_MS): Promise<T> {
    return this.inTurn(async () => {
      const agent = await this.agent(what, performance.now() + timeoutMs);
      try {
        return await use(agent);
      } finally {
        agent.close();
      }
    });
  }

  private async agent(what: string, endMs: number): Promise<GuestAgent> {
    for (;;) {
      try {
        return await GuestAgent.open(join(this.folder, 'ga.sock'));
      } catch (error) {
        if (!(error instanceof NoAnswer)) throw error;
        if (performance.now() > endMs || !this.runs)
          throw new Error(
            `waiting for the VM in ${this.folder} until ${what}: ${this.runs ? error.message : 'it does not run'}\n${this.last}`,
            { cause: error },
          );
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    }
  }

  private get runs(): boolean {
    return (
      this.process !== undefined &&
      this.process.pid !== undefined &&
      this.process.exitCode === null &&
      this.process.signalCode === null
    );
  }

  private get last(): string {
    const log = join(this.folder, 'qemu.log');
    return `${existsSync(log) ? readFileSync(log, 'utf8').slice(-500) : ''}${this.console.slice(-1_000)}`;
  }

  private inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.turn.then(work, work);
    this.turn = done.catch(() => undefined);
    return done;
  }
}
