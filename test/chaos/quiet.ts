import type { NodeView, StatusView } from '#libs/contracts';
import type { Fleet, RunningServer } from '../e2e/fleet.js';
import { DrainLog } from './host/drain-log.js';
import { journalOf, type Journal } from './journals.js';

const ENDS: ReadonlySet<string> = new Set(['committed', 'rejected', 'ended']);

/**
 * What is still in progress, as text. Empty if nothing is in progress and nothing will start, apart from deferred
 * nodes.
 */
export async function workInProgress(fleet: Fleet<RunningServer>): Promise<string> {
  const { client } = fleet;
  const [published, changes, leases, statuses, nodes] = await Promise.all([
    fleet.events('config.desired.>'),
    client.list('changes'),
    client.list('leases'),
    client.list('status'),
    client.list('nodes'),
  ]);
  const open = published
    .map(({ sequence }) => `c${sequence}`)
    .filter((change) => !ENDS.has(changes.get(change)?.phase ?? ''));
  if (open.length > 0)
    return `open: ${open.map((change) => `${change} ${changes.get(change)?.phase ?? 'unseen'}`).join(', ')}`;
  const held = [...leases].filter(([, { phase }]) => phase !== 'released');
  if (held.length > 0)
    return `leases: ${held.map(([node, { phase, lease }]) => `${node} ${phase} ${lease}`).join(', ')}`;
  const cordoned = new DrainLog(fleet.data).held();
  if (cordoned.size > 0)
    return `not given back yet: ${[...cordoned].map(([node, lease]) => `${node} for ${lease}`).join(', ')}`;
  return (
    fleet.nodes
      .map((node) =>
        nodeInProgress(journalOf(fleet, node), statuses.get(node), nodes.get(node)).replace(/^(?=.)/, `${node} `),
      )
      .find((text) => text !== '') ?? ''
  );
}

function nodeInProgress(
  journal: Journal | undefined,
  status: StatusView | undefined,
  view: NodeView | undefined,
): string {
  if (view?.state !== 'ready') return `is ${view?.state ?? 'unseen'}`;
  if (journal === undefined || status === undefined) return `has no ${journal === undefined ? 'journal' : 'status'}`;
  if (journal.work !== undefined) return 'works';
  if (journal.incarnation !== status.incarnation || journal.seq !== status.seq)
    return `reported ${journal.incarnation}.${journal.seq}, and shown is ${status.incarnation}.${status.seq}`;
  const isBehind = status.deferred !== '' || status.incompatible;
  return status.hash === status.desired || isBehind
    ? ''
    : `has ${status.hash.slice(0, 12)} and should have ${status.desired.slice(0, 12)}`;
}
