import type { NodeView, StatusView } from '#libs/contracts';
import type { FleetClient } from '#libs/client';
import type { Session } from '../connection/session.js';
import { nodeNameOf } from '../input/arguments.js';
import { EXIT, type ExitCode } from '../output/exit.js';
import { age, count, table } from '../output/table.js';

/** How a node differs from its config in force, as it last reported. */
interface NodeDrift {
  readonly node: string;
  /** The current state of a silent node is unknown. */
  readonly state: NodeView['state'];
  /** A rollback failed there, so it may have a mix of two configs, whatever the differences say. */
  readonly degraded: boolean;
  readonly pool: string;
  /** Hash of its config in force. */
  readonly config: string;
  /** When it first reported drift (RFC 3339); null without drift. */
  readonly since: string | null;
  readonly differences: readonly string[];
}

/** `sluice get drift [NODE]`: where nodes differ from their configs. JSON and YAML also list nodes without drift. */
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
  else io.say(`no drift found on ${count(nodes.length, 'node')}`);
  if (flags.output === undefined) for (const text of nodes.flatMap(doubts)) io.say(text);
  return EXIT.done;
}

/** Why the report of a node does not say what the node has now. */
export const doubts = ({
  node,
  state,
  degraded,
}: Pick<NodeDrift, 'node' | 'state' | 'degraded'>): readonly string[] => [
  ...(degraded ? [`${node} is degraded: its rollback failed, so it may have a mix of the old and the new config`] : []),
  ...(state === 'silent' ? [`${node} is silent: its last report is old, and what changed since is unknown`] : []),
];

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
  degraded: status?.restored === false,
  pool: status?.pool ?? '',
  config: status?.hash ?? '',
  since: status?.driftedSince || null,
  differences: status?.drifted ?? [],
});
