import type { SimNode } from '../world/sim-node.js';
import { Violation, type Oracle, type World } from '../world/world.js';

/** A machine that has a full disk, or that restarts, takes longer. The guard cannot help that. */
const ROLLBACK_MS = 60_000;

interface GoneApplier {
  readonly lease: string;
  readonly bootId: string;
  readonly disk: SimNode['disk'];
  /** By the clock of the world. */
  readonly byMs: number;
}

/**
 * I4: a node whose applier hangs or is killed during a change keeps unconfirmed files no longer than its lease and a
 * rollback take.
 */
export function inTime(): Oracle {
  const gone = new Map<string, GoneApplier>();
  const look = (world: World): void => {
    for (const [name, known] of gone) {
      const node = world.nodes.get(name) as SimNode;
      if (node.journal.work?.lease !== known.lease || isExcused(node, known)) gone.delete(name);
      else if (world.clock.nowMs > known.byMs)
        throw new Violation(
          `${name}: hung or killed in ${known.lease}, and what was not confirmed in time is still there`,
        );
    }
  };
  return {
    name: 'I4 in time',
    onGone(world, node) {
      const { work } = node.journal;
      if (work === undefined || work.bootId !== node.bootId) return;
      // A rollback that waits for a reboot may take longer than the lease.
      const leftMs = Math.max(0, work.readMs + work.applyMs - node.bootMs);
      const byMs = world.clock.nowMs + leftMs + ROLLBACK_MS;
      gone.set(node.name, { lease: work.lease, bootId: node.bootId, disk: node.disk, byMs });
    },
    onJournal: look,
    onFact: look,
    atEnd: look,
  };
}

const isExcused = (node: SimNode, { lease, bootId, disk }: GoneApplier): boolean =>
  node.scrapped ||
  node.bootId !== bootId ||
  node.disk !== disk ||
  // The rollback has told the machine to restart, and waits for that.
  node.journal.work?.reboot !== undefined ||
  // A paused process rolls nothing back.
  node.pausedIn === lease ||
  node.trouble.full ||
  node.trouble.readOnly.length > 0;
