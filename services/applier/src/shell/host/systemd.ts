import { runCommand, type CommandResult } from '../command.js';

/** What systemd says of a unit. */
export interface UnitStanding {
  /** `not-found` where there is no such unit. */
  readonly load: string;
  readonly active: string;
  /** `enabled`, `disabled`, `static`, `masked` … */
  readonly file: string;
  readonly type: string;
  readonly result: string;
  /** Its files are newer than what systemd has read. */
  readonly isOutdated: boolean;
  /** Something is to be done with it, once what is before it is done: while the machine comes up, it is to be started. */
  readonly isQueued: boolean;
}

type Verb = 'start' | 'stop' | 'reload' | 'restart' | 'enable' | 'disable';

const PROPERTIES = ['LoadState', 'ActiveState', 'UnitFileState', 'Type', 'Result', 'NeedDaemonReload', 'Job'];
const LOOK_MS = 10_000;
/** What `is-system-running` says where systemd is the first process; elsewhere it says `offline`, or nothing. */
const ANSWERS = ['initializing', 'starting', 'running', 'degraded', 'maintenance', 'stopping'];

/** The machine's systemd, by its systemctl. Each call ends in its time; what fails throws. */
export class Systemd {
  constructor(
    private readonly systemctl: string,
    private readonly root: string,
    private readonly ending: AbortSignal,
  ) {}

  /** Whether it answers. */
  async answers(): Promise<boolean> {
    const { output } = await this.run(['is-system-running'], LOOK_MS);
    return ANSWERS.includes(output.trim().split('\n')[0] ?? '');
  }

  /** Waits until all is started that starts with the machine, or cannot be; at most that long. */
  async settled(timeoutMs: number): Promise<void> {
    await this.run(['is-system-running', '--wait'], timeoutMs);
  }

  async show(unit: string): Promise<UnitStanding> {
    const { passed, reason, output } = await this.run(
      ['show', ...PROPERTIES.map((name) => `--property=${name}`), '--', unit],
      LOOK_MS,
    );
    if (!passed) throw new Error(reason);
    const values = new Map(
      output.split('\n').map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1).trim()]),
    );
    const of = (name: string): string => values.get(name) ?? '';
    return {
      load: of('LoadState'),
      active: of('ActiveState'),
      file: of('UnitFileState'),
      type: of('Type'),
      result: of('Result'),
      isOutdated: of('NeedDaemonReload') === 'yes',
      isQueued: !['', '0'].includes(of('Job')),
    };
  }

  async daemonReload(timeoutMs: number): Promise<void> {
    await this.must(['daemon-reload'], timeoutMs);
  }

  async tell(verb: Verb, unit: string, timeoutMs: number): Promise<void> {
    await this.must([verb, '--', unit], timeoutMs);
  }

  private async must(args: readonly string[], timeoutMs: number): Promise<void> {
    if (timeoutMs <= 0) throw new Error(`no time was left to ${args.join(' ')}`);
    const { passed, reason } = await this.run(args, timeoutMs);
    if (!passed) throw new Error(reason);
  }

  private run(args: readonly string[], timeoutMs: number): Promise<CommandResult> {
    return runCommand([this.systemctl, '--no-pager', ...args], { root: this.root, timeoutMs, ending: this.ending });
  }
}

/** Runs, or is about to. */
export const isActive = ({ active, isQueued }: UnitStanding): boolean =>
  ['active', 'activating', 'reloading'].includes(active) || (active === 'inactive' && isQueued);
export const isEnabled = ({ file }: UnitStanding): boolean => file === 'enabled' || file === 'enabled-runtime';
