import type { SimNode } from '../world/sim-node.js';
import { Violation, type Oracle, type World } from '../world/world.js';

/** I4: a node that works on nothing and is sound has exactly the files of the config that it says is in force. */
export const wholeFiles: Oracle = {
  name: 'I4 whole files',
  onJournal(world, node, journal) {
    if (journal.work === undefined && journal.sound) check(world, node, journal.inForce);
  },
  atEnd(world) {
    for (const node of world.nodes.values())
      if (node.journal.work === undefined && node.journal.sound) check(world, node, node.journal.inForce);
  },
};

/** The files that a config makes of a machine. */
export function filesOf(world: World, node: SimNode, hash: string): ReadonlyMap<string, string> {
  const files = new Map(node.originals);
  for (const entry of world.bus.everConfig({ node: node.name, hash })?.fragments ?? []) {
    if (entry.kind === 'File') files.set(String(entry.spec['path']), String(entry.spec['content']));
  }
  return files;
}

function check(world: World, node: SimNode, hash: string): void {
  const expected = [...filesOf(world, node, hash)].sort();
  const found = [...node.disk.files].sort();
  if (JSON.stringify(expected) !== JSON.stringify(found)) {
    throw new Violation(
      `${node.name} says ${hash.slice(0, 12)} is in force, and has ${JSON.stringify(found)} instead of ${JSON.stringify(expected)}`,
    );
  }
}
