import type { SchedulerDraft } from './draft.js';
import type { GatherResult, Input, Reading } from './inputs.js';
import type { State } from './state.js';

/** The longest time in which an applier sends its report again once NATS is back. */
const RESEND_MS = 60_000;
/** If reports were not read by then, for example because the last one is deleted, the lease ends anyway. */
const LONGEST_READING_MS = 5 * 60_000;

/** What this decision knows about it, once it has taken the inputs. */
export function readingOf(
  draft: SchedulerDraft,
  inputs: readonly Input[],
  gathered: ReadonlyMap<string, GatherResult>,
) {
  const { reading, cursor } = draft.state;
  const sequences = inputs.map((input) => (input.type === 'report' && !draft.waiting.has(input) ? input.sequence : 0));
  const ends = [...gathered.values()].filter((one) => 'last' in one);
  return {
    upTo: Math.max(reading.upTo, cursor.get(), ...sequences),
    end: ends.reduce((last, end) => (last === undefined || end.atMs > last.atMs ? end : last), reading.end),
  };
}

/**
 * Whether a lease that was due at `deadlineMs` may end as unknown. If not yet, this asks for what is missing, or wakes
 * the decision later. Nodes whose lease is shorter get less time to send their report again.
 */
export function hasReadReports(draft: SchedulerDraft, reading: Reading, deadlineMs: number, applyMs: number): boolean {
  const { leadingSinceMs, monotonicMs } = draft.now;
  if (leadingSinceMs === undefined) return false;
  const dueMs = Math.max(deadlineMs, leadingSinceMs + Math.min(RESEND_MS, applyMs));
  if (monotonicMs < dueMs) draft.wakeAt(dueMs);
  else if (reading.end === undefined || reading.end.atMs < dueMs)
    draft.need({ key: `the end of REPORTS at ${monotonicMs}`, atMs: monotonicMs });
  else if (reading.upTo >= reading.end.last || monotonicMs >= dueMs + LONGEST_READING_MS) return true;
  else draft.wakeAt(dueMs + LONGEST_READING_MS);
  return false;
}

/** Keeps it for the next decision. */
export function rememberReading(state: State, reading: Reading): void {
  state.reading = reading;
}
