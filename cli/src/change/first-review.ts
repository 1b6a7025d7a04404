import type { FleetClient } from '#libs/client';
import type { ChangeView } from '#libs/contracts';
import type { Session } from '../connection/session.js';
import { reasonLines } from '../output/reasons.js';

/** A review takes much less, unless the change waits in the queue or a service is busy. */
const REVIEW_MS = 2_000;

/** What the review of a change that was just published found. */
export interface FirstReview {
  readonly lines: readonly string[];
  readonly isRejected: boolean;
}

const NOTHING_FOUND: FirstReview = { lines: [], isRejected: false };

/** What the review of a change that was just published found; nothing if it is not reviewed soon. */
export async function firstReview(session: Session, change: string): Promise<FirstReview> {
  const { interrupted, colours } = session.io;
  const soon = AbortSignal.any([interrupted, AbortSignal.timeout(REVIEW_MS)]);
  // The change is published, whatever happens now.
  const view = await reviewed(await session.fleet(), change, soon).catch(() => undefined);
  if (view === undefined) return NOTHING_FOUND;
  const warnings = reasonLines(view.warnings, colours, '!');
  if (view.phase !== 'rejected') return { lines: warnings, isRejected: false };
  const reasons = reasonLines(view.reasons, colours);
  return { lines: [`${change} was ${colours.red('rejected')}:`, ...reasons, ...warnings], isRejected: true };
}

async function reviewed(fleet: FleetClient, change: string, signal: AbortSignal): Promise<ChangeView | undefined> {
  for await (const { value } of fleet.watch('changes', change, signal))
    if (value.phase !== 'accepted' && value.phase !== 'rendered') return value;
  return undefined;
}
