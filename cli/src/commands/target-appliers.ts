import { join } from 'node:path';
import type { Command } from 'commander';
import { fleetOn } from '#libs/client';
import { connectBus, connectTarget, isMissingStream } from '#libs/nats/lean';
import { createLogger, type LogLevel } from '#libs/process';
import { connectFlagsOf } from '#libs/process/lean';
import { serveTargets } from '../../../services/applier/src/shell/targets/index.js';
import type { Session } from '../connection/session.js';
import { EXIT, UsageError, type ExitCode } from '../output/exit.js';
import { packageVersion } from '../package-root.js';
import { aborted, pause } from '../pause.js';
import { inventoryOf, type InventoryFlags } from '../targets/inventories.js';
import { Leaves } from '../targets/leaves.js';
import { ProblemNotes } from '../targets/problem-notes.js';

/** The flags of `sluice applier --targets`. */
interface Flags extends InventoryFlags {
  readonly state: string;
  readonly heartbeatSeconds: number;
  readonly checkSeconds: number;
  readonly logLevel: LogLevel;
}

const AGAIN_MS = 2_000;

/** `sluice applier --targets WHAT`: the appliers of all targets of an inventory. */
export async function targetAppliers({ io }: Session, command: Command): Promise<ExitCode> {
  const flags = command.optsWithGlobals<Flags>();
  const { targets: what } = flags;
  const log = createLogger('applier', { level: flags.logLevel });
  const inventory = await inventoryOf(flags, { log, env: io.env });
  const checkMs = flags.checkSeconds * 1_000;
  const version = packageVersion();
  const connection = await connectBus({
    ...connectTarget(connectFlagsOf(command), io.env),
    name: `applier of ${what}`,
    logger: log,
  });
  const notes = new ProblemNotes({ bus: connection, targets: what, version, log });
  const unreadable = (reason: string): void =>
    notes.update([{ object: 'what is in the inventory', reason, todo: 'the applier tries again and again' }]);
  const name = await untilDone(() => inventory.name(), unreadable, io.interrupted).catch(async (error: unknown) => {
    await connection.close();
    throw error;
  });
  notes.update([]);
  const serve = (): ReturnType<typeof serveTargets> =>
    serveTargets({
      connection,
      name: name ?? what,
      folder: join(flags.state, 'targets', what),
      version,
      heartbeatMs: flags.heartbeatSeconds * 1_000,
      // What a replica lost by restarting faster than it is asked is noticed by the next comparison.
      driftCheckMs: checkMs,
      onTrouble: (node, reason) => notes.note(node, reason),
      onContest: (node, isContested) => notes.contest(node, isContested),
      log,
    });
  const unused = (error: string): void => log.warn({ error }, 'NATS cannot be used; trying again');
  const served = await untilDone(serve, unused, io.interrupted);
  if (served !== undefined) {
    const { leaving } = inventory;
    const leaves = leaving && new Leaves({ fleet: fleetOn(connection), served, leaving, log });
    const timing = { clock: served.clock, checkMs, report: served.report, logger: log, hub: fleetOn(connection) };
    const stop = inventory.start(timing, ({ targets, problems = [], nodes = new Map() }) => {
      served.replace(targets);
      leaves?.update(nodes);
      notes.update(problems);
    });
    await aborted(io.interrupted);
    stop();
    leaves?.stop();
    await served.stop();
  }
  await notes.close();
  await inventory.close?.();
  await connection.close();
  return EXIT.done;
}

/** Undefined if it was interrupted. A usage error is final. */
async function untilDone<T>(
  work: () => Promise<T>,
  onError: (words: string) => void,
  interrupted: AbortSignal,
): Promise<T | undefined> {
  while (!interrupted.aborted) {
    try {
      return await work();
    } catch (error) {
      if (error instanceof UsageError) throw error;
      onError(isMissingStream(error) ? 'waiting for the services to create their streams' : (error as Error).message);
      await pause(AGAIN_MS, interrupted);
    }
  }
  return undefined;
}
