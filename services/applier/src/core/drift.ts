import { isDriftOf, isRestOfDrift, type ConfigEntry } from '#libs/contracts';
import type { Difference } from './ports.js';
import { inHand, type Preparation, type State } from './state.js';

/** A difference as a report says it. */
export const driftText = ({ what, how }: Difference): string => `${what}: ${how}`;

/**
 * Selects the drift from the differences between the node and a new config: the places that the new config leaves as
 * they are in the config in force. A node that is not sound is known to differ. Forgotten parts of a network are
 * added again without actions.
 */
export function driftAmong(state: State, differences: readonly Difference[]): readonly Difference[] {
  const { journal, settings } = state;
  const inForce = inHand(state, journal.inForce);
  if (inForce === undefined || !journal.sound || differences.length === 0) return [];
  const entries = new Map(settings.kinds.entries(inForce).map((entry) => [idOf(entry), JSON.stringify(entry.spec)]));
  return differences.filter(
    ({ entry, forgotten }) =>
      entry !== undefined && forgotten !== true && entries.get(idOf(entry)) === JSON.stringify(entry.spec),
  );
}

const idOf = ({ kind, name }: ConfigEntry): string => `${kind}/${name}`;

/**
 * The drift to report instead of starting, so that the lease is planned again: its actions were not planned for some
 * of it, or the lease is a repair and nothing is left to repair. Undefined if the lease may start.
 *
 * The list keeps the drift that the lease was planned for, even if it is gone. So the list only grows, and this ends
 * even if drift comes and goes. The next drift check corrects it.
 */
export function driftToReport(state: State, { lease, changed, drift }: Preparation): readonly string[] | undefined {
  const { journal } = state;
  // The scheduler is older, and plans without regard to drift.
  if (lease.drift === undefined) return undefined;
  const { differences } = lease.drift;
  const repairsNothing = lease.kind === 'repair' && differences.length > 0 && changed?.length === 0;
  if (repairsNothing && journal.sound && journal.lastDealt?.escalated?.to !== lease.hash) return [];
  if (differences.some(isRestOfDrift)) return undefined;
  const isPlanned = ({ what }: Difference): boolean => differences.some((difference) => isDriftOf(difference, what));
  if (drift.every(isPlanned)) return undefined;
  const gone = differences.filter((difference) => !drift.some(({ what }) => isDriftOf(difference, what)));
  return [...drift.map(driftText), ...gone];
}
