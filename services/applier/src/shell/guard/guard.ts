import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, openSync, closeSync } from 'node:fs';
import { join } from 'node:path';
import type { NetworkSettings } from '../backends/network/tools.js';
import type { HostSettings } from '../host/host.js';
import type { Clock } from '../ports.js';

/** What another process needs to know to roll back in place of an applier that cannot any more. */
export interface GuardOrder {
  readonly node: string;
  readonly root: string;
  readonly stateDir: string;
  readonly network: NetworkSettings;
  readonly host?: HostSettings | undefined;
  readonly lease: string;
  /** Milliseconds of CLOCK_BOOTTIME: from here on the applier itself would roll back. */
  readonly atMs: number;
}

/** Sets and ends what rolls back when the applier was killed. */
export interface Guard {
  /** Throws when there can be none: then the change is not begun. */
  set(lease: string, atMs: number): Promise<void>;
  /** It is not needed any more; one that is not ended finds nothing to do. */
  release(): void;
}

/** The applier's own turn comes first. */
const LATER_MS = 1_000;
/** A service manager ends all processes of a unit with it: what has to outlive the applier must not be one of them. */
const SYSTEMD = '/run/systemd/system';

export interface GuardOptions extends Omit<GuardOrder, 'lease' | 'atMs'> {
  /** Starts `runGuard` with the order as its last word. */
  readonly command: readonly string[];
  readonly clock: Clock;
}

/**
 * A guard sleeps as a timer of systemd where there is one, else as a shell of its own session: no memory is held for
 * it.
 */
export function guardFor({ command, clock, ...settings }: GuardOptions): Guard {
  let end: (() => void) | undefined;
  return {
    set: async (lease, atMs) => {
      end?.();
      const afterMs = Math.max(0, atMs - clock()) + LATER_MS;
      const argv = [...command, JSON.stringify({ ...settings, lease, atMs } satisfies GuardOrder)];
      end =
        (existsSync(SYSTEMD) ? await asTimer(argv, afterMs, unitOf(settings.stateDir, lease)) : undefined) ??
        (await asSleeper(argv, afterMs, settings.stateDir));
    },
    release: () => {
      end?.();
      end = undefined;
    },
  };
}

/** The words that let systemd start it at that time. */
export const timerWords = (argv: readonly string[], afterMs: number, unit: string): readonly string[] => [
  'systemd-run',
  '--quiet',
  '--collect',
  `--unit=${unit}`,
  `--on-active=${(afterMs / 1_000).toFixed(3)}s`,
  '--timer-property=AccuracySec=100ms',
  '--',
  ...argv,
];

const unitOf = (stateDir: string, lease: string): string =>
  `sluice-guard-${createHash('sha256').update(`${stateDir} ${lease} ${process.pid}`).digest('hex').slice(0, 12)}`;

/** Undefined where systemd does not take it. */
async function asTimer(argv: readonly string[], afterMs: number, unit: string): Promise<(() => void) | undefined> {
  const [command = '', ...rest] = timerWords(argv, afterMs, unit);
  const code = await new Promise<number>((resolve) => {
    const child = spawn(command, rest, { stdio: 'ignore' });
    child.on('error', () => resolve(1));
    child.on('exit', (status) => resolve(status ?? 1));
  });
  if (code !== 0) return undefined;
  return () =>
    void spawn('systemctl', ['stop', `${unit}.timer`], { stdio: 'ignore', detached: true })
      .on('error', () => undefined)
      .unref();
}

function asSleeper(argv: readonly string[], afterMs: number, stateDir: string): Promise<() => void> {
  const log = openSync(join(stateDir, 'guard.log'), 'w', 0o600);
  return new Promise<() => void>((resolve, reject) => {
    const child = spawn('/bin/sh', ['-c', 'sleep "$0" && exec "$@"', (afterMs / 1_000).toFixed(3), ...argv], {
      stdio: ['ignore', log, log],
      detached: true,
      cwd: '/',
    });
    child.on('error', (error) => reject(new Error(`the guard cannot be started: ${error.message}`, { cause: error })));
    child.on('spawn', () => {
      child.unref();
      resolve(() => endGroup(child.pid));
    });
  }).finally(() => closeSync(log));
}

function endGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGTERM');
  } catch {
    // it has ended
  }
}
