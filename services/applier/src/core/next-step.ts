import { idleStep } from './idle.js';
import type { Step } from './ports.js';
import { preparingStep } from './preparation.js';
import type { State } from './state.js';
import { workingStep } from './working.js';

/**
 * What an applier does next. Pure: the same state and time give the same step.
 *
 * 1 Nothing is changed on the node before the journal says what, from what, and until when.
 * 2 Past the turning point of a lease nothing is started and nothing is confirmed: the rollback begins.
 * 3 What is in force changes in one write of the journal, which also ends the work and makes its report.
 * 4 Work that was started is ended, by confirming or by rolling back, before anything is asked or told on the bus.
 * 5 No lease is started twice once it was dealt with.
 * 6 A report is sent only while nothing is worked on.
 */
export function nextStep(state: State, nowMs: number): Step {
  if (state.journal.work !== undefined) return workingStep(state, state.journal.work, nowMs);
  if (state.memory.begun !== undefined) return preparingStep(state, state.memory.begun, nowMs);
  return idleStep(state, nowMs);
}
