import { EMPTY_HASH } from '#libs/contracts';
import { Violation, type Oracle, type World } from '../world/world.js';

/** What a node is told to get can be got: nothing goes that somebody still needs. */
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
