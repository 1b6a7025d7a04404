import { either, runCommand, type CommandResult } from '../command.js';
import type { Item } from '../../core/index.js';

/** The state of a unit according to systemd. */
export interface UnitState {
  /** `not-found` if there is no such unit. */
  readonly load: string;
  readonly active: string;
  /** `enabled`, `disabled`, `static`, `masked` … */
  readonly file: string;
  readonly type: string;
  readonly result: string;
  /** Its files are newer than what systemd has read. */
  readonly isOutdated: boolean;
  /** A job for the unit is queued behind others. For example, it will be started while the machine starts. */
  readonly isQueued: boolean;
}

type Verb = 'start' | 'stop' | 'reload' | 'restart' | 'enable' | 'disable' | 'reset-failed';

const PROPERTIES = ['LoadState', 'ActiveState', 'UnitFileState', 'Type', 'Result', 'NeedDaemonReload', 'Job'];
const LOOK_MS = 10_000;
/**
 * Once systemctl has not answered in time, it gets less time for a while. Otherwise a rollback would wait that long for
 * each unit, and the files after it would keep their unconfirmed content.
 */
const SHORT_LOOK_MS = 2_000;
const SILENT_MS = 60_000;
/** How long a starting machine may take until systemd answers, and how often to ask. */
const ANSWER_MS = 120_000;
const ASK_AGAIN_MS = 500;
/**
 * The answers of `is-system-running`: if systemd is not the first process, and if it is. Without a connection it prints
 * `unknown`, or nothing.
 */
const OFFLINE = 'offline';
const ANSWERS = ['initializing', 'starting', 'running', 'degraded', 'maintenance', 'stopping'];

/** The machine's systemd, through its systemctl. Each call has a timeout, and throws if it fails. */
export class Systemd {
  /** It did not answer, and is not expected to until then. */
  private silentUntilMs = -Infinity;

  constructor(
    private readonly systemctl: string,
    private readonly root: string,
    private readonly ending: AbortSignal,
  ) {}

  /**
   * Whether it is the first process here. A machine that is starting or busy may not answer at first, so the question
   * is repeated for a while: an applier without systemd would announce that it cannot manage units, and changes would
   * skip the node. Throws if systemd does not answer in time.
   */
  async isThere(timeoutMs = ANSWER_MS): Promise<boolean> {
    const untilMs = performance.now() + timeoutMs;
    for (;;) {
      const { started, output, reason } = await this.run(['is-system-running'], LOOK_MS);
      const state = output.trim().split('\n')[0] ?? '';
      if (ANSWERS.includes(state)) return true;
      if (!started || state === OFFLINE) return false;
      if (performance.now() >= untilMs || this.ending.aborted)
        throw new Error(
          `systemd does not answer: ${this.systemctl} is-system-running printed ${JSON.stringify(state)} (${reason}). ` +
            'Check with systemctl status, then start the applier again.',
        );
      await new Promise((resolve) => setTimeout(resolve, ASK_AGAIN_MS));
    }
  }

  /** Waits until everything that starts with the machine has started or failed, but at most this long. */
  async settled(timeoutMs: number): Promise<void> {
    await this.run(['is-system-running', '--wait'], timeoutMs);
  }

  async show(unit: string, mostMs = LOOK_MS, ending?: AbortSignal): Promise<UnitState> {
    const limitMs = performance.now() < this.silentUntilMs ? SHORT_LOOK_MS : LOOK_MS;
    const { passed, reason, output, timedOut } = await this.run(
      ['show', ...PROPERTIES.map((name) => `--property=${name}`), '--', unit],
      Math.min(mostMs, limitMs),
      ending,
    );
    if (timedOut && mostMs >= limitMs) this.silentUntilMs = performance.now() + SILENT_MS;
    if (!passed) throw new Error(reason);
    this.silentUntilMs = -Infinity;
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
    if (timeoutMs <= 0) throw new Error(`not enough time to ${args.join(' ')}`);
    const { passed, reason } = await this.run(args, timeoutMs);
    if (!passed) throw new Error(reason);
  }

  private run(args: readonly string[], timeoutMs: number, ending?: AbortSignal): Promise<CommandResult> {
    const limits = { root: this.root, timeoutMs, ending: either(this.ending, ending) };
    return runCommand([this.systemctl, '--no-pager', ...args], limits);
  }
}

/** It runs, also while it reads its configuration again. */
export const isRunning = ({ active }: UnitState): boolean => ['active', 'reloading', 'refreshing'].includes(active);
/** It runs, or is about to. */
export const isActive = (unit: UnitState): boolean =>
  isRunning(unit) || unit.active === 'activating' || (unit.active === 'inactive' && unit.isQueued);
export const isEnabled = ({ file }: UnitState): boolean => file === 'enabled' || file === 'enabled-runtime';

/** The key of the state of a unit before Sluice, as `SystemdUnit` saves it. */
export const unitKey = (unit: string): string => `unit:${unit}`;

/** Whether a unit must not run after these items, because a restart would start it. */
export function restsAfter(items: readonly Item[], unit: string): boolean {
  return items.some((item) => {
    if (item.do === 'apply')
      return (
        item.entry.kind === 'SystemdUnit' && item.entry.spec['name'] === unit && item.entry.spec['state'] === 'stopped'
      );
    if (item.key !== unitKey(unit)) return false;
    const was = item.original.was as { readonly active?: unknown; readonly starting?: unknown } | null;
    return was?.active === false && was.starting !== true;
  });
}
