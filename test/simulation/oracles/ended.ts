import { changeId, nodeToken } from '#libs/contracts';
import { Violation, type Oracle, type World } from '../world.js';
import { filesOf } from './whole-files.js';

/** I8, I10 and I7: what was accepted has an end, nothing published is unanswered, and every node has what it shall have. */
export function ended(): Oracle {
  const taken = new Map<string, string>();
  return {
    name: 'I7 I8 I10 ended',
    onFact(_world, fact) {
      if (fact.type === 'config.accepted') taken.set(fact.change, 'open');
      if (fact.type === 'config.rejected' || fact.type === 'config.committed' || fact.type === 'config.ended') {
        if (taken.get(fact.change) !== undefined && taken.get(fact.change) !== 'open') throw new Violation(`${fact.change} ends twice: ${taken.get(fact.change)} and ${fact.type}`);
        taken.set(fact.change, fact.type);
      }
    },
    atEnd(world) {
      for (const { sequence } of world.bus.changes) {
        const change = changeId(sequence);
        if (taken.get(change) === undefined) throw new Violation(`${change} was published and never answered`);
        if (taken.get(change) === 'open') throw new Violation(`${change} has no end: ${JSON.stringify(world.bus.view('rollouts', change))} ${JSON.stringify(world.bus.view('changes', change))}`);
      }
      for (const node of world.nodes.values()) converged(world, node.name);
    },
  };
}

function converged(world: World, name: string): void {
  const node = world.nodes.get(name);
  const status = world.bus.view('status', nodeToken(name));
  // A node that was removed is out of the fleet until it announces itself anew.
  if (node === undefined || !node.alive || world.bus.view('nodes', nodeToken(name))?.state === 'gone') return;
  if (status === undefined) throw new Violation(`${name} has no status`);
  // A config that the node itself refuses, or that does not fit it, is not forced upon it.
  if (status.unfit || status.desired === '' || status.owed.includes('invalid')) return;
  const lease = world.bus.view('leases', nodeToken(name));
  if (status.owed.includes('this disk does not take it') || lease?.reason.includes('this disk does not take it') === true) return;
  const expected = JSON.stringify([...filesOf(world, node, status.desired)].sort());
  const found = JSON.stringify([...node.disk.files].sort());
  if (expected !== found) throw new Violation(`${name} shall have ${expected}, and has ${found}: ${JSON.stringify(status)} ${JSON.stringify(lease)}`);
}
