import type { SimNode } from '../world/sim-node.js';
import { Violation, type Oracle, type World } from '../world/world.js';

/** A machine whose disk is full, or that restarts, takes longer: that is not the guard's doing. */
const ROLLBACK_MS = 60_000;

interface Hung {
  readonly lease: string;
  readonly bootId: string;
  readonly disk: SimNode['disk'];
  /** By the world's clock. */
  readonly byMs: number;
}

/** I4: a node whose applier hangs in a change keeps what was not confirmed no longer than its lease and a rollback. */
export function inTime(): Oracle {
  const hung = new Map<string, Hung>();
  const look = (world: World): void => {
    for (const [name, known] of hung) {
      const node = world.nodes.get(name) as SimNode;
      if (node.journal.work?.lease !== known.lease || isExcused(node, known)) hung.delete(name);
      else if (world.clock.nowMs > known.byMs)
        throw new Violation(`${name} hung in ${known.lease}, and still has what was not confirmed in time`);
    }
  };
  return {
    name: 'I4 in time',
    onHang(world, node) {
      const { work } = node.journal;
      if (work === undefined || work.bootId !== node.bootId) return;
      const byMs = world.clock.nowMs + (work.readMs + work.applyMs - node.bootMs) + ROLLBACK_MS;
      hung.set(node.name, { lease: work.lease, bootId: node.bootId, disk: node.disk, byMs });
    },
    onJournal: look,
    onFact: look,
    atEnd: look,
  };
}

const isExcused = (node: SimNode, { bootId, disk }: Hung): boolean =>
  node.scrapped ||
  node.bootId !== bootId ||
  node.disk !== disk ||
  node.trouble.full ||
  node.trouble.readOnly.length > 0;
