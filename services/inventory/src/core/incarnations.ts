import {
  labelProblem,
  MOST_INCARNATION_JUMP,
  refusedJump,
  takenReport,
  type Fact,
  type NodeReport,
} from '#libs/contracts';
import type { State } from './state.js';

/** Records the incarnation of a report, of any kind, that the scheduler has processed. */
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

/** Why this announcement is refused, as a code and a sentence; undefined if it is not. */
export function refusedAnnouncement(
  state: State,
  report: NodeReport,
): readonly [code: string, reason: string] | undefined {
  const jump = refusedJump(report, lastIncarnation(state, report.node));
  if (jump !== undefined) return ['bad-incarnation', jump];
  const wrong = Object.entries(report.labels).flatMap(([key, value]) => labelProblem(key, value) ?? [])[0];
  if (wrong === undefined) return undefined;
  return [
    'bad-label',
    `${report.node} announces a label that it cannot have: ${wrong}; correct the label and restart its applier`,
  ];
}

const lastIncarnation = ({ nodes, announced, incarnations }: State, node: string): number =>
  Math.max(nodes.get(node)?.stamp.incarnation ?? 0, announced.get(node)?.incarnation ?? 0, incarnations.get(node) ?? 0);
