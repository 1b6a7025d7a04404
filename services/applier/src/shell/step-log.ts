import { UNREACHABLE, type Outcome, type State, type Step } from '../core/index.js';
import type { Log } from './ports.js';

/** Says what people want to know of a step that was carried out: what began, what turned, what ended. */
export function logStep(log: Log, before: State, step: Step, outcome: Outcome | typeof UNREACHABLE): void {
  const node = before.journal.node;
  if (step.do === 'report' && outcome !== UNREACHABLE) {
    const { kind, lease, change, verdict, seq } = step.report;
    log.info({ node, kind, lease, change, verdict, seq }, 'reported');
  }
  if (step.do !== 'write-journal') return;
  const { work, lastDealt, inForce } = step.journal;
  if (work !== undefined && work.phase !== before.journal.work?.phase) {
    const fields = { node, lease: work.lease, change: work.change, from: work.from, to: work.to };
    if (work.phase === 'forward') log.info(fields, 'begun');
    if (work.phase === 'confirming') log.warn(fields, 'the machine was restarted: looking whether the change holds');
    if (work.phase === 'going-back') log.warn({ ...fields, reason: work.failure.reason }, 'going back');
  }
  if (lastDealt !== undefined && lastDealt.lease !== before.journal.lastDealt?.lease) {
    const fields = { node, ...lastDealt, hash: inForce, restored: step.journal.sound };
    if (step.journal.sound) log.info(fields, 'dealt with');
    else log.error(fields, 'dealt with, and the node is not restored: it is tried again');
  }
  if (step.journal.sound && !before.journal.sound) log.info({ node, hash: inForce }, 'restored');
  if (step.journal.incarnation !== before.journal.incarnation)
    log.info({ node, incarnation: step.journal.incarnation }, 'took an incarnation');
}
