import { watchFile, unwatchFile } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { connectBus, connectTarget, isMissingStream } from '#libs/nats/lean';
import { createLogger, type LogLevel } from '#libs/process';
import { connectFlagsOf } from '#libs/process/lean';
import {
  functionTarget,
  serveTargets,
  type ServedTargets,
  type Target,
} from '../../../services/applier/src/shell/targets/index.js';
import type { Session } from '../connection/session.js';
import { EXIT, UsageError, type ExitCode } from '../output/exit.js';
import { packageVersion } from '../package-root.js';
import { aborted, pause } from '../pause.js';
import { readFunctions } from '../targets/function-inventory.js';

/** The flags of `sluice applier --targets`. */
interface Flags {
  readonly targets: string;
  readonly inventory?: string;
  readonly state: string;
  readonly heartbeatSeconds: number;
  readonly checkSeconds: number;
  readonly logLevel: LogLevel;
}

const LOOK_MS = 2_000;

/** `sluice applier --targets functions --inventory FILE`: the appliers of all targets of a file. */
export async function targetAppliers({ io }: Session, command: Command): Promise<ExitCode> {
  const flags = command.optsWithGlobals<Flags>();
  const { targets: name, inventory } = flags;
  if (inventory === undefined)
    throw new UsageError(`--targets ${name} needs --inventory FILE, a file that lists the ${name}`);
  // A file that is wrong at the start is an error. Later, the last good one stays.
  readFunctions(inventory);
  const log = createLogger('applier', { level: flags.logLevel });
  const connection = await connectBus({
    ...connectTarget(connectFlagsOf(command), io.env),
    name: `applier of ${name}`,
    logger: log,
  });
  const checkMs = flags.checkSeconds * 1_000;
  const targets = (clock: () => number): readonly Target[] =>
    readFunctions(inventory).map((replica) => functionTarget(replica, { clock, checkMs }));
  const options = {
    connection,
    name,
    folder: join(flags.state, 'targets', name),
    version: packageVersion(),
    heartbeatMs: flags.heartbeatSeconds * 1_000,
    // What a replica lost by restarting faster than it is asked is noticed by the next comparison.
    driftCheckMs: checkMs,
    log,
  };
  let served: ServedTargets | undefined;
  while (served === undefined && !io.interrupted.aborted) {
    try {
      served = await serveTargets(options, targets);
    } catch (error) {
      const why = isMissingStream(error)
        ? 'waiting for the services to create their streams'
        : (error as Error).message;
      log.warn({ error: why }, 'NATS cannot be used; trying again');
      await pause(LOOK_MS, io.interrupted);
    }
  }
  const reread = (): void => {
    try {
      served?.replace(targets(served.clock));
    } catch (error) {
      log.error({ error: (error as Error).message }, 'the inventory cannot be used; continuing with the last one');
    }
  };
  watchFile(inventory, { interval: LOOK_MS, persistent: false }, reread);
  await aborted(io.interrupted);
  unwatchFile(inventory, reread);
  await served?.stop();
  await connection.close();
  return EXIT.done;
}
