import type { Journal } from '../../../services/applier/src/core/index.js';
import { UNIT_FILE } from '../world/machine.js';
import type { SimNode } from '../world/sim-node.js';
import { Violation, type Oracle } from '../world/world.js';

interface NodeRecord {
  readonly journal: Journal;
  /** What ran when the work started. */
  readonly ran: string | undefined;
}

/**
 * I4: after work that includes a restart, a healthy node runs the current content. A node that was rolled back may run
 * what it ran before.
 */
export const running = (): Oracle => {
  const known = new Map<string, NodeRecord>();
  return {
    name: 'I4 running',
    onJournal(_world, node, journal) {
      const before = known.get(node.name);
      const begins = journal.work !== undefined && before?.journal.work === undefined;
      known.set(node.name, { journal, ran: begins ? node.machine.running : before?.ran });
      if (before === undefined || before.journal.incarnation !== journal.incarnation) return;
      const { work, outstanding } = before.journal;
      // A lease that ended in no way never began: its copy of the applier does not know that it could write that.
      const isOver = work === undefined || work.lease === journal.lastDealt?.lease;
      const ends =
        isOver &&
        (work !== undefined || outstanding !== undefined) &&
        journal.work === undefined &&
        journal.outstanding === undefined &&
        journal.sound;
      const restarts = (work?.actions ?? outstanding?.actions ?? []).some(
        ({ kind }) => kind === 'restart' || kind === 'reboot',
      );
      if (ends && restarts) check(node, journal.lastDealt?.verdict === 'applied' ? [] : [before.ran]);
    },
  };
};

function check(node: SimNode, also: readonly (string | undefined)[]): void {
  const file = node.disk.files.get(UNIT_FILE);
  const { running: runs } = node.machine;
  if (runs !== file && !also.includes(runs))
    throw new Violation(`${node.name} runs ${JSON.stringify(runs)}, and has ${JSON.stringify(file)} in ${UNIT_FILE}`);
}
