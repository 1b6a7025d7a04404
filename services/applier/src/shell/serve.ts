import '../../../../libs/process/src/lean-start.js';
import type { Command } from 'commander';
import { connectNodeBus } from '#libs/client';
import { createLogger } from '#libs/process';
import { runApplier } from './run-applier.js';
import { settingsOf } from './settings.js';

/** How the applier was started. */
export interface Start {
  readonly version: string;
  /** Stops it. */
  readonly interrupted: AbortSignal;
  /** The command that starts a guard: this program, with `ID FILE` as the last argument. */
  readonly guardCommand?: readonly string[];
}

/** Runs the applier that the command line and the environment describe, until it is interrupted. */
export async function serveApplier(command: Command, { interrupted, ...start }: Start): Promise<void> {
  const { target, logLevel, ...settings } = settingsOf(command);
  const log = createLogger('applier', { level: logLevel });
  const running = await runApplier({
    ...settings,
    ...start,
    servers: target.servers,
    bus: () => connectNodeBus({ node: settings.node, ...target, logger: log }),
    log,
  });
  if (!interrupted.aborted)
    await new Promise((resolve) => interrupted.addEventListener('abort', resolve, { once: true }));
  await running.stop();
}
