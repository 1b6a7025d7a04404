import { takenReport } from '#libs/contracts';
import { Violation, type Oracle } from '../world/world.js';

/**
 * I7: a report is processed once, no matter how often and how late it arrives, and never after a later one of the same
 * incarnation of its node.
 */
export function takenOnce(): Oracle {
  const last = new Map<string, { readonly incarnation: number; readonly nonce: number; readonly seq: number }>();
  return {
    name: 'I7 taken once',
    onFact(_world, fact) {
      const report = takenReport(fact);
      if (report === undefined) return;
      const { node, incarnation, nonce, seq } = report;
      const before = last.get(node);
      const later =
        before === undefined ||
        incarnation > before.incarnation ||
        (incarnation === before.incarnation && nonce === before.nonce && seq > before.seq);
      if (!later)
        throw new Violation(
          `report ${incarnation}/${nonce}/${seq} of ${node} is taken after ${before.incarnation}/${before.nonce}/${before.seq}`,
        );
      last.set(node, { incarnation, nonce, seq });
    },
  };
}
