import { idleStep } from './idle.js';
import { mayBeWrittenLater } from './journal.js';
import type { Step } from './ports.js';
import { preparingStep } from './preparation.js';
import type { State } from './state.js';
import { workingStep } from './working.js';

/**
 * Decides what an applier does next. Pure: the same state and time give the same step.
 *
 * 1 Nothing on the node changes before the journal says what, from which config, and until when.
 * 2 After two thirds of the lease, nothing new starts and nothing is confirmed: the rollback begins.
 * 3 The config in force changes in one write of the journal. The same write ends the work and creates the report.
 * 4 Unfinished work is confirmed or rolled back before the applier reads or sends anything on NATS.
 * 5 A lease that was finished, rolled back or refused never starts again.
 * 6 Reports are sent only while there is no work.
 * 7 Work that has started does not wait for a journal that cannot be written. Only its end, and a reboot, do: the
 *   rollback is carried out from memory, and recorded when that is possible.
 * 8 Nothing on the node changes before a guard outside this process runs. Each run sets one for each lease.
 * 9 A lease in which an applier hung is not continued. A guard continues none: it only rolls back.
 */
export function nextStep(state: State, nowMs: number): Step {
  const step = chosenStep(state, nowMs);
  const { retryAtMs } = state.memory.disk;
  const waits =
    step.do === 'write-journal' && nowMs < retryAtMs && !mayBeWrittenLater(state.journal.work, step.journal.work);
  return waits ? { do: 'wait', untilMs: retryAtMs } : step;
}

function chosenStep(state: State, nowMs: number): Step {
  if (state.journal.work !== undefined) return workingStep(state, state.journal.work, nowMs);
  if (state.memory.preparation !== undefined) return preparingStep(state, state.memory.preparation, nowMs);
  return idleStep(state, nowMs);
}
