import {
  fragmentId,
  isDriftOf,
  isOverwritten,
  isRestOfDrift,
  refusedDrift,
  type Config,
  type ConfigEntry,
  type LeaseView,
} from '#libs/contracts';
import { draw } from './chance.js';
import { inOrder, notAmong } from './plan.js';
import type { Difference, Item } from './ports.js';
import { inHand, remember, START, type Drift, type Preparation, type State } from './state.js';

/** A difference as a report says it. */
export const driftText = ({ what, how, refused }: Difference): string =>
  refused === undefined ? `${what}: ${how}` : refusedDrift(`${what}: ${how}`, refused);

/** The time ended before it was read. */
export const isLate = ({ late }: Difference): boolean => late === true;

/**
 * Selects the drift from the differences between the node and a new config: the places that the new config leaves as
 * they are in the config in force. A node that is not sound is known to differ. Forgotten parts of a network are
 * added again without actions.
 */
export function driftAmong(state: State, differences: readonly Difference[]): readonly Difference[] {
  const { journal, settings } = state;
  const inForce = inHand(state, journal.inForce);
  if (inForce === undefined || !journal.sound || differences.length === 0) return [];
  const entries = new Map(
    settings.kinds.entries(inForce).map((entry) => [fragmentId(entry), JSON.stringify(entry.spec)]),
  );
  return differences.filter(
    ({ entry, forgotten }) =>
      entry !== undefined && forgotten !== true && entries.get(fragmentId(entry)) === JSON.stringify(entry.spec),
  );
}

/**
 * What the new config changes or removes, as the config in force has it, if the lease must not overwrite drift: to
 * compare with the node, because there only the config in force tells drift from the change.
 */
export function replacedItems(state: State, lease: LeaseView, to: Config): readonly Item[] {
  const { journal, settings } = state;
  const { kinds } = settings;
  const inForce = inHand(state, journal.inForce);
  if (lease.drift?.overwrite !== false || inForce === undefined || !journal.sound) return [];
  const isReplaced = notAmong(kinds.entries(to));
  return inOrder(inForce, kinds)
    .filter((entry) => kinds.resources(entry).length > 0 && isReplaced(entry))
    .map((entry) => ({ do: 'apply', entry }));
}

/**
 * Of the differences of the replaced items, what the lease would overwrite. A place that is already as the new config
 * wants it is not overwritten: somebody made the change by hand before it was published. Nor is one that is removed,
 * and that already is as it was before Sluice.
 */
export function overwrittenAmong(
  state: State,
  { lease, changed = [] }: Preparation,
  differences: readonly Difference[],
): readonly Difference[] {
  const { kinds } = state.settings;
  const to = inHand(state, lease.hash);
  const desired = new Set(to === undefined ? [] : kinds.entries(to).map(fragmentId));
  const places = new Set(changed);
  return differences.filter(({ entry, forgotten, ...difference }) => {
    // A removal is compared by its resources.
    const own = (one: ConfigEntry): readonly string[] =>
      desired.has(fragmentId(one))
        ? [difference.what]
        : kinds.resources(one).map((key) => key.slice(key.indexOf(':') + 1));
    const isThere = to !== undefined && entry !== undefined && own(entry).every((place) => !places.has(place));
    return !isThere && forgotten !== true && isOverwritten(driftText(difference));
  });
}

/**
 * The drift to report instead of starting: the lease would overwrite it and must not, its actions were not planned for
 * some of it, or the lease is a repair and nothing is left to repair. Undefined if the lease may start.
 *
 * The list keeps the drift that the lease was planned for, even if it is gone. So the list only grows, and this ends
 * even if drift comes and goes. The next drift check corrects it.
 */
export function driftToReport(
  state: State,
  { lease, changed, drift, overwritten = [] }: Preparation,
): readonly string[] | undefined {
  const { journal } = state;
  // The scheduler is older, and plans without regard to drift.
  if (lease.drift === undefined) return undefined;
  const { differences } = lease.drift;
  const repairsNothing = lease.kind === 'repair' && differences.length > 0 && changed?.length === 0;
  if (repairsNothing && journal.sound && journal.lastDealt?.escalated?.to !== lease.hash) return [];
  const all = [...overwritten, ...drift];
  if (overwritten.length === 0 && differences.some(isRestOfDrift)) return undefined;
  const isPlanned = ({ what }: Difference): boolean => differences.some((difference) => isDriftOf(difference, what));
  if (all.every(isPlanned)) return undefined;
  const gone = differences.filter((difference) => !all.some(({ what }) => isDriftOf(difference, what)));
  return [...all.map(driftText), ...gone];
}

/** After a drift check; without differences, it has failed. */
export function driftChecked(state: State, differences: readonly Difference[] | undefined, nowMs: number): State {
  const { memory, settings } = state;
  const later = (waitMs: number): Drift => ({
    ...memory.drift,
    isRunning: false,
    dueMs: Math.min(memory.drift.dueMs, nowMs + waitMs),
  });
  // Nothing is known of a target that does not answer. A notice says when it does.
  if (differences === undefined || differences.some(({ unreachable }) => unreachable === true))
    return remember(state, { drift: later(settings.driftCheckMs) });
  const { value, next } = draw(memory.chance);
  const drift = later(settings.driftCheckMs * (0.75 + value / 2));
  // It is applied again. The next check finds what still differs.
  if (differences.some(({ forgotten }) => forgotten === true))
    return remember(state, { chance: next, forgot: true, progress: START, drift });
  return remember(state, {
    chance: next,
    configs: new Map(),
    absent: new Set(),
    drift: { ...drift, latest: differences.map(driftText) },
  });
}
