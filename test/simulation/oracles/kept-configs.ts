import { EMPTY_HASH } from '#libs/contracts';
import { Violation, type Oracle, type World } from '../world/world.js';

/** Every config that a node is to get can be read: nothing that is still needed is deleted. */
export const keptConfigs: Oracle = {
  name: 'kept configs',
  onFact(world, fact) {
    if (fact.type === 'node.lease.granted') mustBeKept(world, fact.node, fact.hash, `${fact.lease} is to lead to it`);
  },
  atEnd(world) {
    for (const key of world.bus.viewKeysOf('status')) {
      const status = world.bus.view('status', key);
      if (status !== undefined && world.bus.view('nodes', key)?.state !== 'gone')
        mustBeKept(world, status.node, status.desired, 'it is what the node should have');
    }
  },
};

function mustBeKept(world: World, node: string, hash: string, why: string): void {
  if (hash === '' || hash === EMPTY_HASH || world.bus.configText(node, hash) !== undefined) return;
  throw new Violation(`the config ${hash.slice(0, 12)} of ${node} is gone, and ${why}`);
}
