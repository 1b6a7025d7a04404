import { contentOf } from '../../../services/applier/src/testing/memory-node.js';
import { NO_OBJECT } from '../world/performer.js';
import type { SimNode } from '../world/sim-node.js';
import { Violation, type Oracle, type World } from '../world/world.js';

const NEEDED_OBJECT = new RegExp(`rollback failed: .*${NO_OBJECT}`);

/**
 * I4: a healthy node without work has exactly the files of the config that it reports as in force. And to roll back, a
 * node that was healthy needs nothing from the object store.
 */
export function wholeFiles(): Oracle {
  const soundBefore = new Set<string>();
  return {
    name: 'I4 whole files',
    onJournal(world, node, { work, sound, inForce, lastDealt }) {
      if (work === undefined && sound) check(world, node, inForce);
      if (work === undefined && !sound && soundBefore.has(node.name) && NEEDED_OBJECT.test(lastDealt?.reason ?? ''))
        throw new Violation(`${node.name} cannot roll back ${lastDealt?.lease} without the object store`);
      if (sound) soundBefore.add(node.name);
      else soundBefore.delete(node.name);
    },
    atEnd(world) {
      for (const node of world.nodes.values())
        if (node.journal.work === undefined && node.journal.sound) check(world, node, node.journal.inForce);
    },
  };
}

/** The files that a machine gets from a config. */
export function filesOf(world: World, node: SimNode, hash: string): ReadonlyMap<string, string> {
  const files = new Map(node.originals);
  for (const entry of world.bus.everConfig({ node: node.name, hash })?.fragments ?? []) {
    if (entry.kind === 'File') files.set(String(entry.spec['path']), contentOf(entry));
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
