import { MOST_INCARNATION_JUMP, refusedJump, takenReport, type Fact, type NodeReport } from '#libs/contracts';
import type { State } from './state.js';

/** Records the incarnation of a report that the scheduler has taken, of any kind. */
export function noteIncarnation(state: State, fact: Fact): void {
  const report = takenReport(fact);
  if (report !== undefined) state.incarnations.set(report.node, report.incarnation);
}

/**
 * A removed node counts its incarnations from 0 again, as in the scheduler. Low ones stay. Returns whether it starts
 * over.
 */
export function forgetIncarnation(state: State, node: string): boolean {
  if (lastIncarnation(state, node) <= MOST_INCARNATION_JUMP) return false;
  state.incarnations.delete(node);
  state.announced.delete(node);
  return true;
}

/** Why this announcement is refused; undefined if it is not. */
export const refusedAnnouncement = (state: State, report: NodeReport): string | undefined =>
  refusedJump(report, lastIncarnation(state, report.node));

const lastIncarnation = ({ nodes, announced, incarnations }: State, node: string): number =>
  Math.max(nodes.get(node)?.stamp.incarnation ?? 0, announced.get(node)?.incarnation ?? 0, incarnations.get(node) ?? 0);
