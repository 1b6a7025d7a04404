import '../../../libs/process/src/lean-start.js';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { connectNodeBus } from '#libs/client';
import { connectBus, connectTarget } from '#libs/nats/lean';
import { createLogger } from '#libs/process';
import { runAppliers, serveApplier, type ApplierOptions } from '../../../services/applier/src/shell/index.js';
import { EXIT, type ExitCode } from '../output/exit.js';
import { packageVersion } from '../package-root.js';
import { aborted } from '../pause.js';
import type { Session } from '../connection/session.js';
import { refuseIgnoredFlags } from '../targets/applier-flags.js';
import { nodeFolders } from '../up/data-folder.js';
import type { InventoryNode } from '../up/inventory.js';

export interface AppliersFlags {
  readonly inventory: string;
  readonly data: string;
  readonly shard: string;
  readonly systemctl?: string;
  readonly heartbeatSeconds: number;
}

/** `sluice applier`: the applier of one node, until it is stopped. With `--targets`, those of many targets. */
export async function applier(
  session: Session,
  flags: { readonly targets?: string },
  command: Command,
): Promise<ExitCode> {
  refuseIgnoredFlags(command, flags.targets);
  if (flags.targets !== undefined) return (await import('./target-appliers.js')).targetAppliers(session, command);
  const { io } = session;
  await serveApplier(command, { version: packageVersion(), interrupted: () => io.interrupted });
  return EXIT.done;
}

/** The appliers of local nodes, or of a shard of them, in one process and on one connection; `sluice up` starts it. */
export async function appliers(session: Session, flags: AppliersFlags): Promise<ExitCode> {
  const { io } = session;
  // Loads the validators of manifests, which a single applier does not need.
  const { nodesOfShard, readInventory } = await import('../up/inventory.js');
  const nodes = nodesOfShard(readInventory(flags.inventory), flags.shard);
  const log = createLogger('appliers');
  const connection = await connectBus({ ...connectTarget(session.flags, io.env), name: 'appliers', logger: log });
  const optionsOf = ({ name, labels }: InventoryNode): ApplierOptions => {
    const { root, state } = nodeFolders(flags.data, name);
    mkdirSync(root, { recursive: true });
    return {
      node: name,
      labels,
      root,
      stateDir: state,
      // The command runs with the node's own root as its folder, so that a program can find the node's units.
      host: { systemctl: flags.systemctl },
      // `up` made these nodes itself, so nothing on them is in use before their first start.
      fresh: !existsSync(state),
      bus: () => connectNodeBus({ node: name, connection }),
      log,
      heartbeatMs: flags.heartbeatSeconds * 1_000,
      version: packageVersion(),
    };
  };
  const running = await runAppliers(
    nodes.map(optionsOf),
    join(flags.data, `guard-${flags.shard.replace('/', '-of-')}`),
  );
  await aborted(io.interrupted);
  await running.stop();
  await connection.close();
  return running.refused.length === 0 ? EXIT.done : EXIT.unexpected;
}
