import { readFileSync, statSync } from 'node:fs';
import type { Fleet, RunningServer } from '../e2e/fleet.js';

/** The fields of an applier's journal that the driver reads. */
export interface Journal {
  readonly incarnation: number;
  readonly seq: number;
  readonly inForce: string;
  readonly sound: boolean;
  readonly lastDealt?: { readonly lease: string; readonly verdict: string };
  readonly work?: { readonly lease: string; readonly phase: string };
}

/**
 * The states of a journal in which an applier may die. `confirming` is missing, because it needs a restarted machine.
 */
export const STATES = ['idle', 'forward', 'rolling-back', 'just-dealt'] as const;
/** So soon after a lease ended, its report is probably not stored yet. */
const JUST_MS = 40;

/** The current journal. Undefined if there is none yet. */
export function journalOf(fleet: Fleet<RunningServer>, node: string): Journal | undefined {
  try {
    return (JSON.parse(readFileSync(fleet.folders.journal(node), 'utf8')) as { readonly journal: Journal }).journal;
  } catch {
    return undefined;
  }
}

/** The state of a node's journal now, or at a given time if it was not written since. */
export function stateOf(fleet: Fleet<RunningServer>, node: string, atMs = Date.now()): string {
  const journal = journalOf(fleet, node);
  if (journal === undefined) return 'new';
  if (journal.work !== undefined) return journal.work.phase;
  const writtenMs = statSync(fleet.folders.journal(node), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  return journal.lastDealt !== undefined && atMs - writtenMs < JUST_MS ? 'just-dealt' : 'idle';
}
