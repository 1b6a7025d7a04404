import type { Digest, Status } from './resource.js';

/** What to tell of an object beside its status: the API server keeps it for an hour, the status says only what holds now. */
export interface Told {
  /** The same for the same: told again, it is no second event. */
  readonly name: string;
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
}

/** Steps on the way that nobody waits for. */
const UNTOLD: ReadonlySet<unknown> = new Set(['Pending', 'Reviewing']);
const WARNINGS: ReadonlySet<unknown> = new Set(['Rejected', 'Reverting', 'Reverted', 'Aborted', 'Stalled', 'DeletionFailed']);

/** What a new status says that the one before did not: another phase, or the same of another change. */
export function toldBy(object: { readonly name: string; readonly uid: string }, before: Status | undefined, now: Status, digest: Digest): Told | undefined {
  const { phase, change = '', message = '' } = now;
  const isSame = before?.['phase'] === phase && (before?.['change'] ?? '') === change && (phase !== 'Rejected' || before?.['message'] === message);
  if (typeof phase !== 'string' || isSame || UNTOLD.has(phase)) return undefined;
  const { applied, nodes } = now;
  const counts = typeof applied === 'number' && typeof nodes === 'number' && phase === 'Ready' ? `${applied} of ${nodes} nodes` : '';
  const words = [String(change), counts, String(message)].filter((part) => part !== '').join(': ');
  return { name: `${object.name}.${digest([object.uid, phase, change, now.observedGeneration, message].join(' ')).slice(0, 16)}`, type: WARNINGS.has(phase) ? 'Warning' : 'Normal', reason: phase, message: words };
}
