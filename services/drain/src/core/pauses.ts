import {
  KEEP_PAUSED_ANNOTATION,
  PAUSE_ANNOTATION,
  pauseAnnotationOf,
  UNPAUSED_ANNOTATION,
  type PauseAnnotation,
} from '#libs/contracts';
import { pausedName, type PausedObject } from '#libs/manifests';
import type { Drain, State } from './state.js';

// Sluice unpauses only what it paused, and only when no drain needs it paused any more. So an object that it paused has
// a mark that names one drain that needs it. Every write is a compare-and-set on the object as it was read before the
// ledger was read. A drain relies only on a mark of a lease that still needs the object, and no such mark was there
// when another copy decided to unpause it: that copy's write is refused, however late it is.

/** The parts of an object that matter for its pause. */
export interface PausableState {
  readonly uid: string;
  readonly revision: string;
  readonly paused: boolean;
  /** Sluice was the last to set the field. True if it is unknown who did. */
  readonly setBySluice: boolean;
  readonly annotations: Readonly<Record<string, string>>;
  /** The types of its conditions that are True. */
  readonly conditions: readonly string[];
  /** Its controller has not processed its latest spec yet, so its conditions are old. */
  readonly isBehind: boolean;
}

export interface PauseWrite {
  readonly paused?: boolean;
  readonly annotations: Readonly<Record<string, string | null>>;
}

/** A drain that needs objects paused: its node is being drained, or changes. */
export interface Pauser extends PauseAnnotation {
  readonly objects: readonly PausedObject[];
}

export type PauseStep =
  | { readonly type: 'held' }
  | { readonly type: 'write'; readonly write: PauseWrite }
  /** It cannot be paused now. */
  | { readonly type: 'wait'; readonly reason: string }
  /** Somebody unpaused it after this lease had paused it, or it does not keep the field: write, but not in a loop. */
  | { readonly type: 'restore'; readonly write: PauseWrite; readonly reason: string };

/** How to make sure that an object is paused for a drain. `pausers`: the drains that need objects paused now. */
export function pauseStep(
  object: PausedObject,
  seen: PausableState,
  own: PauseAnnotation,
  pausers: readonly Pauser[],
): PauseStep {
  const mark = pauseAnnotationOf(seen.annotations);
  if (seen.paused) {
    const isHeld = mark === undefined || mark.lease === own.lease || pausers.some(({ lease }) => lease === mark.lease);
    return isHeld ? { type: 'held' } : { type: 'write', write: marked(own) };
  }
  const busy = object.waitWhile.find((condition) => seen.conditions.includes(condition));
  if (busy !== undefined) return { type: 'wait', reason: `its condition ${busy} is True` };
  if (object.waitWhile.length > 0 && seen.isBehind)
    return { type: 'wait', reason: 'its controller has not processed its latest spec' };
  const write = { paused: true, ...marked(own) };
  if (mark?.lease !== own.lease) return { type: 'write', write };
  return { type: 'restore', write, reason: `somebody unpaused it, or it has no field spec.paused` };
}

/**
 * What to write on an object when this lease no longer needs it paused; undefined if nothing is left to do. The object
 * must have been read when the lease was already over: only then, no later write of another copy for it can succeed.
 */
export function unpauseWrite(
  object: PausedObject,
  seen: PausableState,
  lease: string,
  pausers: readonly Pauser[],
): PauseWrite | undefined {
  const mark = pauseAnnotationOf(seen.annotations);
  const others = pausers.filter((one) => one.lease !== lease && one.objects.some((each) => isSame(each, object)));
  const [next] = others;
  if (mark === undefined) {
    // Somebody else paused it, or the others pause it when they need it.
    if (seen.paused || next !== undefined || seen.annotations[UNPAUSED_ANNOTATION] === lease) return undefined;
    return { annotations: { [UNPAUSED_ANNOTATION]: lease } };
  }
  if (others.some((one) => one.lease === mark.lease)) return undefined;
  if (next !== undefined) return marked(next);
  const isOurs = seen.setBySluice && seen.annotations[KEEP_PAUSED_ANNOTATION] === undefined;
  return {
    ...(seen.paused && isOurs ? { paused: false } : {}),
    annotations: { [PAUSE_ANNOTATION]: null, [UNPAUSED_ANNOTATION]: lease },
  };
}

/** The drains that need objects paused. */
export const pausersOf = ({ open, drains }: State): readonly Pauser[] =>
  [...open].flatMap((node) => {
    const drain = drains.get(node);
    return drain !== undefined && drain.pauses.length > 0 && NEEDS_PAUSE.has(drain.phase)
      ? [{ lease: drain.lease, pool: drain.pool, objects: drain.pauses }]
      : [];
  });

/** What a lease needs paused after its settings have changed: it gives back at its end what it has paused before. */
export const withPauses = (before: readonly PausedObject[], now: readonly PausedObject[]): readonly PausedObject[] => [
  ...now,
  ...before.filter((one) => !now.some((other) => isSame(one, other))),
];

const NEEDS_PAUSE: ReadonlySet<Drain['phase']> = new Set<Drain['phase']>(['draining', 'drained']);

const isSame = (a: PausedObject, b: PausedObject): boolean => pausedName(a) === pausedName(b);

const marked = ({ lease, pool }: PauseAnnotation): PauseWrite => ({
  annotations: { [PAUSE_ANNOTATION]: JSON.stringify({ lease, pool }) },
});
