import { spawn, type ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { Guard } from '#libs/process';
import { until, findNatsCli } from '#libs/testing';
import { run, type Fleet, type CommandOutput, type RunningServer } from './fleet.js';

/** The real `nats` command line, used with a fleet. It does not use the user's contexts. */
export class NatsCli {
  private readonly children: ChildProcess[] = [];
  private readonly guard = new Guard();

  private constructor(
    readonly path: string,
    private readonly env: NodeJS.ProcessEnv,
  ) {}

  static async of(fleet: Fleet<RunningServer>): Promise<NatsCli> {
    return new NatsCli(await findNatsCli(), {
      ...process.env,
      NATS_URL: fleet.server.url,
      XDG_CONFIG_HOME: join(fleet.data, 'config'),
    });
  }

  run(...args: readonly string[]): Promise<CommandOutput> {
    return run(this.path, args, { env: this.env });
  }

  /** The answer to a request. */
  async ask(subject: string, body: string): Promise<unknown> {
    const { stdout, stderr } = await this.run('req', '--raw', subject, body);
    if (stdout.trim() === '') throw new Error(`no answer: ${stderr}`);
    return JSON.parse(stdout) as unknown;
  }

  /** Runs a program that subscribes. Resolves when it has subscribed. Its output is added to `lines`. */
  async follow(command: string, args: readonly string[]): Promise<{ readonly lines: readonly string[] }> {
    const child = spawn(command, [...args], { env: this.env, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
    this.children.push(child);
    this.guard.watch(this.children.map(({ pid }) => -(pid as number)));
    let [stdout, stderr] = ['', ''];
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => (stdout += chunk));
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => (stderr += chunk));
    await until(() => stderr.includes('Subscribing on '), `${command} ${args.join(' ')} subscribes`);
    return {
      get lines() {
        return stdout.split('\n').filter((line) => line !== '');
      },
    };
  }

  /** Ends all subscribers, with their whole process groups, by the pids that were started. */
  async close(): Promise<void> {
    await Promise.all(
      this.children
        .filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null)
        .map(
          (child) =>
            new Promise((resolve) => {
              child.once('close', resolve);
              process.kill(-(child.pid as number), 'SIGTERM');
            }),
        ),
    );
    this.guard.close();
  }
}
