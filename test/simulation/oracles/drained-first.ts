import type { FactOf } from '#libs/contracts';
import type { SimNode } from '../world/sim-node.js';
import { Violation, type Oracle, type World } from '../world/world.js';

/**
 * I5: under a lease with a drain, nothing is written or restarted unless the drain has ended and the node is still
 * held: the other tool has it cordoned, or the Node has the annotation of the lease. A Node that is gone, or was
 * recreated since, does not have it. And on the way forward, no machine is restarted under a lease that has neither
 * drain nor reboot.
 */
export function drainedFirst(): Oracle {
  const drains = new Set<string>();
  const drained = new Map<string, string | undefined>();
  const over = new Set<string>();
  const check = (world: World, node: SimNode): void => {
    const lease = node.journal.work?.lease ?? '';
    if (!drains.has(lease) || over.has(lease) || node.revived === lease) return;
    if (drained.has(lease) && isHeld(world, node.name, lease, drained.get(lease))) return;
    throw new Violation(`${node.name} works under ${lease}, and is not drained for it`);
  };
  return {
    name: 'I5 drained first',
    onFact(world, fact) {
      if (fact.type === 'node.drained') drained.set(fact.lease, seenUid(world, fact));
      if (fact.type === 'node.lease.granted' && fact.phase === 'draining') drains.add(fact.lease);
      if (fact.type === 'node.lease.settled' && fact.because !== 'applied') over.add(fact.lease);
    },
    onWrite: check,
    onAct(world, node, { kind }) {
      const { work } = node.journal;
      const isUnasked =
        kind === 'reboot' &&
        work !== undefined &&
        work.phase !== 'rolling-back' &&
        !work.actions.some((action) => action.kind === 'drain' || action.kind === 'reboot');
      if (isUnasked) throw new Violation(`${node.name} is restarted under ${work.lease}, which gives no leave to it`);
      check(world, node);
    },
  };
}

/** The uid of the observed Node. It may have been replaced before the drain was reported. */
const seenUid = ({ cluster }: World, { node, lease }: FactOf<'node.drained'>): string | undefined =>
  cluster?.saidDrained.has(lease) === true ? cluster.saidDrained.get(lease)?.uid : cluster?.nodes.get(node)?.uid;

function isHeld({ cluster, outside }: World, node: string, lease: string, uid: string | undefined): boolean {
  if (cluster === undefined) return outside.cordoned.get(node) === lease;
  const there = cluster.nodes.get(node);
  return there === undefined || there.uid !== uid || cluster.heldFor(node) === lease;
}
