import { join } from 'node:path';
import type { Command } from 'commander';
import { fleetOn } from '#libs/client';
import { connectBus, connectTarget, isMissingStream } from '#libs/nats/lean';
import { createLogger, type Logger, type LogLevel } from '#libs/process';
import { connectFlagsOf } from '#libs/process/lean';
import {
  clusterTarget,
  fleetTarget,
  functionTarget,
  serveTargets,
  type ServedTargets,
} from '../../../services/applier/src/shell/targets/index.js';
import type { Session } from '../connection/session.js';
import { EXIT, UsageError, type ExitCode } from '../output/exit.js';
import { packageVersion } from '../package-root.js';
import { aborted, pause } from '../pause.js';
import { readClusters } from '../targets/cluster-inventory.js';
import { fileInventory } from '../targets/file-inventory.js';
import { readFleets } from '../targets/fleet-inventory.js';
import { readFunctions } from '../targets/function-inventory.js';
import type { Inventory } from '../targets/inventory.js';

/** The flags of `sluice applier --targets`. */
interface Flags {
  readonly targets: string;
  readonly inventory?: string;
  readonly state: string;
  readonly heartbeatSeconds: number;
  readonly checkSeconds: number;
  readonly logLevel: LogLevel;
}

const AGAIN_MS = 2_000;

/** `sluice applier --targets WHAT`: the appliers of all targets of an inventory. */
export async function targetAppliers({ io }: Session, command: Command): Promise<ExitCode> {
  const flags = command.optsWithGlobals<Flags>();
  const { targets: name } = flags;
  const log = createLogger('applier', { level: flags.logLevel });
  const inventory = inventoryOf(flags, log);
  const connection = await connectBus({
    ...connectTarget(connectFlagsOf(command), io.env),
    name: `applier of ${name}`,
    logger: log,
  });
  const checkMs = flags.checkSeconds * 1_000;
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
      served = await serveTargets(options);
    } catch (error) {
      const why = isMissingStream(error)
        ? 'waiting for the services to create their streams'
        : (error as Error).message;
      log.warn({ error: why }, 'NATS cannot be used; trying again');
      await pause(AGAIN_MS, io.interrupted);
    }
  }
  const timing = { checkMs, hub: fleetOn(connection), logger: log };
  const stop = served && inventory.start({ ...timing, clock: served.clock, report: served.report }, served.replace);
  await aborted(io.interrupted);
  stop?.();
  await served?.stop();
  await connection.close();
  return EXIT.done;
}

/** What lists the targets. Throws UsageError if it is missing, or wrong now. */
function inventoryOf({ targets: name, inventory: file }: Flags, log: Logger): Inventory {
  if (file === undefined)
    throw new UsageError(`--targets ${name} needs --inventory FILE, a file that lists the ${name}`);
  if (name === 'fleets') return fileInventory({ file, read: readFleets, target: fleetTarget, log });
  return name === 'clusters'
    ? fileInventory({ file, read: readClusters, target: clusterTarget, log })
    : fileInventory({ file, read: readFunctions, target: functionTarget, log });
}
