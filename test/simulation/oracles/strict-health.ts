import type { Fact } from '#libs/contracts';
import { parseRolloutPolicy } from '#libs/manifests';
import { Violation, type Oracle, type World } from '../world/world.js';

/**
 * A node with a failing probe gets no change while a strict policy is committed, or is part of that change. But no
 * policy keeps it on the config of a failed change.
 */
export function strictHealth(): Oracle {
  /** Of each node, the committed config that it got last. */
  const had = new Map<string, string>();
  /** Of each node, what a change gave it that is not committed. */
  const tried = new Map<string, { readonly change: string; readonly hash: string }>();
  /** Of each node, what a change gave it that has failed, and the sequence at which that change ended. */
  const left = new Map<string, { readonly hash: string; readonly sequence: number }>();
  const carried = new Map<string, boolean>();
  const unhealthy = new Set<string>();
  let isStrict = false;
  const note = (fact: Fact, sequence: number): void => {
    switch (fact.type) {
      case 'config.accepted':
        for (const policy of fact.apply.filter(({ kind }) => kind === 'RolloutPolicy'))
          carried.set(fact.change, parseRolloutPolicy(policy).health === 'strict');
        // All people use the same name for this policy.
        if (fact.delete.some(({ kind }) => kind === 'RolloutPolicy')) carried.set(fact.change, false);
        return;
      case 'config.committed':
        isStrict = carried.get(fact.change) ?? isStrict;
        for (const [node, { change, hash }] of tried) if (change === fact.change) had.set(node, hash);
        // It may have committed the same configs.
        return left.clear();
      case 'config.ended':
        for (const [node, { change, hash }] of tried)
          // It may be the same config as the last committed one that the node had.
          if (change === fact.change && hash !== had.get(node)) left.set(node, { hash, sequence });
        return;
      case 'node.rendered':
        return void left.delete(fact.node);
      case 'node.unhealthy':
        return void unhealthy.add(fact.node);
      case 'node.healthy':
      case 'node.left':
        return void unhealthy.delete(fact.node);
      case 'node.lease.granted': {
        const { kind, lease, change, node, from } = fact;
        const isChange = kind === 'forward' || kind === 'corrective';
        if (isChange && unhealthy.has(node) && had.get(node) === from && (carried.get(change) ?? isStrict))
          throw new Violation(`${lease} changes ${node}, which is unhealthy`);
        return;
      }
      case 'node.lease.settled': {
        const { kind, node, change, hash, because } = fact;
        if (because !== 'applied') return;
        left.delete(node);
        if (kind === 'forward') tried.set(node, { change, hash });
        else tried.delete(node);
        if (change === '') had.set(node, hash);
        return;
      }
      default:
        return;
    }
  };
  return {
    name: 'strict health',
    onFact(world, fact, sequence) {
      note(fact, sequence);
      for (const [node, { hash, sequence: since }] of left)
        if (unhealthy.has(node) && world.nodes.get(node)?.journal.inForce === hash) assertNotKept(world, node, since);
    },
  };
}

/** `since`: what the scheduler must have read to know that the change has ended. */
function assertNotKept(world: World, node: string, since: number): void {
  if ((world.leader('scheduler')?.copy.folded ?? 0) < since) return;
  const why = world.why(node);
  if (why?.because === 'unhealthy' && why.text.includes('health: strict'))
    throw new Violation(`${node} keeps what a failed change left: ${why.text}`);
}
