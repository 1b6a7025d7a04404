import type { FleetClient } from '#libs/client';
import type { RolloutView } from '#libs/contracts';

/** Why a change in another fleet has not ended, down to the node that holds it up. */
export async function whyNotDone(fleet: FleetClient, change: string): Promise<string> {
  const [view, rollout] = await Promise.all([fleet.get('changes', change), fleet.get('rollouts', change)]);
  if (view === undefined) return `${change} was published there, and no service has read it yet`;
  if (view.phase === 'waiting') {
    const others = view.needs.length > 0 ? `needs ${view.needs.join(', ')}` : `waits for ${view.waitsFor.join(', ')}`;
    return `${change} ${others} there`;
  }
  if (rollout === undefined) return `${change} is in review there`;
  const done = `${rollout.applied} of ${rollout.nodes} nodes have ${change}`;
  const paused = rollout.paused ? `, which is paused there${rollout.reason === '' ? '' : `: ${rollout.reason}`}` : '';
  const node = nodeInTheWay(rollout);
  if (node === undefined) return `${done}${paused}`;
  const why = await fleet.request<{ readonly text: string }>('ops.node.why', { node }).catch(() => undefined);
  return `${done}${paused}; ${node}: ${why?.text ?? 'the scheduler there does not say why it waits'}`;
}

const nodeInTheWay = ({ stalledBy, worst }: RolloutView): string | undefined =>
  stalledBy[0] ?? worst.find(({ state }) => !DONE.has(state))?.node;

const DONE: ReadonlySet<string> = new Set(['applied', 'deferred']);
