import '../../../../libs/process/src/lean-start.js';
import type { Command } from 'commander';
import { connectNodeBus } from '#libs/client';
import { createLogger } from '#libs/process';
import { runApplier } from './run-applier.js';
import { settingsOf } from './settings.js';

/** How the applier was started. */
export interface Start {
  readonly version: string;
  /** Stops it. Asked for once the applier has started: until then, a signal ends the process as it is. */
  readonly interrupted: () => AbortSignal;
  /** The command that starts a guard: this program, with `ID FILE` as the last argument. */
  readonly guardCommand?: readonly string[];
}

const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

/** Runs the applier that the command line and the environment describe, until it is interrupted. */
export async function serveApplier(command: Command, { interrupted, ...start }: Start): Promise<void> {
  const { target, logLevel, ...settings } = settingsOf(command);
  const log = createLogger('applier', { level: logLevel });
  const started = endFirstProcess();
  const running = await runApplier({
    ...settings,
    ...start,
    servers: target.servers,
    bus: () => connectNodeBus({ node: settings.node, ...target, logger: log }),
    log,
  });
  const interrupt = interrupted();
  started();
  if (!interrupt.aborted) await new Promise((resolve) => interrupt.addEventListener('abort', resolve, { once: true }));
  await running.stop();
}

/**
 * The kernel ignores a signal without a handler if it is for the first process of a container. Returns a function that
 * leaves the signals to others.
 */
function endFirstProcess(): () => void {
  if (process.pid !== 1) return () => undefined;
  const end = (): never => process.exit(0);
  for (const signal of SIGNALS) process.once(signal, end);
  return () => SIGNALS.forEach((signal) => process.off(signal, end));
}
