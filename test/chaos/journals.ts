import { readFileSync, statSync } from 'node:fs';
import type { Fleet, RunningServer } from '../e2e/fleet.js';

/** What the driver reads of an applier's journal. */
export interface Journal {
  readonly incarnation: number;
  readonly seq: number;
  readonly inForce: string;
  readonly sound: boolean;
  readonly lastDealt?: { readonly lease: string; readonly verdict: string };
  readonly work?: { readonly lease: string; readonly phase: string };
}

/** States of a journal in which an applier may die. `confirming` is missing: it needs a machine that was restarted. */
export const STATES = ['idle', 'forward', 'rolling-back', 'just-dealt'] as const;
/** So soon after its lease was dealt with its report can hardly have been taken. */
const JUST_MS = 40;

/** The journal as it stands; undefined where there is none yet. */
export function journalOf(fleet: Fleet<RunningServer>, node: string): Journal | undefined {
  try {
    return (JSON.parse(readFileSync(fleet.folders.journal(node), 'utf8')) as { readonly journal: Journal }).journal;
  } catch {
    return undefined;
  }
}

/** In which state of its journal a node is, or was at a time if nobody wrote it since. */
export function stateOf(fleet: Fleet<RunningServer>, node: string, atMs = Date.now()): string {
  const journal = journalOf(fleet, node);
  if (journal === undefined) return 'new';
  if (journal.work !== undefined) return journal.work.phase;
  const writtenMs = statSync(fleet.folders.journal(node), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  return journal.lastDealt !== undefined && atMs - writtenMs < JUST_MS ? 'just-dealt' : 'idle';
}
