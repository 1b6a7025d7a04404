import type { NodeView, StatusView } from '#libs/contracts';
import type { FleetClient } from '#libs/client';
import type { Session } from '../connection/session.js';
import { nodeNameOf } from '../input/arguments.js';
import { EXIT, type ExitCode } from '../output/exit.js';
import { age, table } from '../output/table.js';

/** How a node differs from its config in force, as it last reported. */
interface NodeDrift {
  readonly node: string;
  /** What a silent node has now is not known. */
  readonly state: NodeView['state'];
  readonly pool: string;
  /** Hash of its config in force. */
  readonly config: string;
  /** When it first reported drift (RFC 3339); null without drift. */
  readonly since: string | null;
  readonly differences: readonly string[];
}

/**
 * `sluice get drift [NODE]`: where nodes differ from their configs. JSON and YAML list all nodes, also those without
 * drift.
 */
export async function getDrift(session: Session, name: string | undefined): Promise<ExitCode> {
  const { io, isJson, flags } = session;
  const nodes = await driftOf(await session.fleet(), name === undefined ? undefined : nodeNameOf(name));
  if (name !== undefined && nodes.length === 0)
    throw new Error(`node ${name} not found: list nodes with sluice get nodes`);
  const value = name === undefined ? nodes : nodes[0];
  const rows = nodes.flatMap(({ node, state, pool, since, differences }) =>
    differences.map((difference) => [
      node,
      state === 'ready' ? state : io.colours.yellow(state),
      pool,
      age(since ?? '', io.now()),
      difference,
    ]),
  );
  if (flags.output === 'yaml') io.out((await import('yaml')).stringify(value).trimEnd());
  else if (isJson) io.out(JSON.stringify(value));
  else if (rows.length > 0) io.out(table(['NODE', 'STATE', 'POOL', 'SINCE', 'DIFFERENCE'], rows));
  else io.say(`no drift found on ${nodes.length === 1 ? '1 node' : `${nodes.length} nodes`}`);
  return EXIT.done;
}

async function driftOf(fleet: FleetClient, name: string | undefined): Promise<readonly NodeDrift[]> {
  if (name !== undefined) {
    const [node, status] = await Promise.all([fleet.get('nodes', name), fleet.get('status', name)]);
    return node === undefined || node.state === 'gone' ? [] : [nodeDrift(node, status)];
  }
  const [nodes, statuses] = await Promise.all([fleet.list('nodes'), fleet.list('status')]);
  return [...nodes]
    .filter(([, { state }]) => state !== 'gone')
    .map(([key, node]) => nodeDrift(node, statuses.get(key)))
    .sort((a, b) => a.node.localeCompare(b.node, 'en', { numeric: true }));
}

const nodeDrift = ({ node, state }: NodeView, status: StatusView | undefined): NodeDrift => ({
  node,
  state,
  pool: status?.pool ?? '',
  config: status?.hash ?? '',
  since: status?.driftedSince || null,
  differences: status?.drifted ?? [],
});
