import '../../../libs/runtime/src/lean-start.js';
import { existsSync, mkdirSync } from 'node:fs';
import { connectBus, connectNodeBus } from '#libs/bus';
import { createLogger } from '#libs/runtime';
import { heartbeatMs, runAppliers, type ApplierOptions } from '../../../services/applier/src/shell/index.js';
import { EXIT, type ExitCode } from '../exit.js';
import { connectTarget } from '../nats-context.js';
import { packageVersion } from '../package-root.js';
import { aborted } from '../pause.js';
import type { Session } from '../session.js';
import { nodeFolders } from '../up/data-folder.js';
import { nodesOfShard, readInventory, type InventoryNode } from '../up/inventory.js';

export interface AppliersFlags {
  readonly inventory: string;
  readonly data: string;
  readonly shard: string;
  readonly systemctl?: string;
}

/** The appliers of local nodes, or of a shard of them, in one process and on one connection; `sluice up` starts it. */
export async function appliers(session: Session, flags: AppliersFlags): Promise<ExitCode> {
  const { io } = session;
  const nodes = nodesOfShard(readInventory(flags.inventory), flags.shard);
  const { from: _, ...target } = connectTarget(session.flags, io.env);
  const log = createLogger('appliers');
  const connection = await connectBus({ ...target, servers: target.servers.split(','), name: 'appliers', logger: log });
  const optionsOf = ({ name, labels }: InventoryNode): ApplierOptions => {
    const { root, state } = nodeFolders(flags.data, name);
    mkdirSync(root, { recursive: true });
    return {
      node: name,
      labels,
      root,
      stateDir: state,
      // Run in the node's own root, by which one program can tell whose units are meant.
      host: { systemctl: flags.systemctl },
      // `up` made these nodes itself: before their first start nothing on them can serve.
      fresh: !existsSync(state),
      bus: () => connectNodeBus({ node: name, connection }),
      log,
      heartbeatMs: heartbeatMs(io.env),
      version: packageVersion(),
    };
  };
  const running = await runAppliers(nodes.map(optionsOf));
  await aborted(io.interrupted);
  await running.stop();
  await connection.close();
  return running.refused.length === 0 ? EXIT.done : EXIT.unexpected;
}
