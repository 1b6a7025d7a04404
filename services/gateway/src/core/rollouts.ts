import type { RolloutView } from '#libs/contracts';
import { ROLLOUT_KIND } from '#libs/manifests';
import { weightOf, type Change } from './changes.js';
import { conditionsOf, isSame } from './conditions.js';
import { declaredOf } from './definitions.js';
import { drainedOf } from './drains.js';
import type { Status } from './resource.js';
import { countsOf, tellOf } from './status.js';
import type { RolloutResource, State } from './state.js';

/** What to do about a Rollout. */
export type RolloutAction =
  | { readonly do: 'make-rollout'; readonly change: string; readonly source: string }
  | { readonly do: 'remove-rollout'; readonly change: string; readonly uid: string }
  | { readonly do: 'show-rollout'; readonly change: string; readonly uid: string; readonly status: Status }
  | { readonly do: 'steer'; readonly change: string; readonly generation: number; readonly pause: boolean };

/** How many ended changes have a Rollout. */
const KEPT = 10;
const NAME = /^c[1-9][0-9]{0,15}$/;

/** One Rollout for each open change, and for the last few that have ended. */
export function rolloutActions(
  state: State,
  nowMs: number,
  at: string,
): { readonly actions: readonly RolloutAction[]; readonly wakeAtMs: number } {
  const actions: RolloutAction[] = [];
  let wakeAtMs = Infinity;
  const propose = (key: string, action: RolloutAction): void => {
    const from = state.notBefore(key);
    if (from <= nowMs) actions.push(action);
    else wakeAtMs = Math.min(wakeAtMs, from);
  };
  if (!state.listedKinds.has('Rollout')) return { actions, wakeAtMs };
  const changes = shownChanges(state);
  for (const change of changes.values()) {
    const object = state.rolloutResources.get(change.change);
    if (object === undefined)
      propose(`rollout ${change.change}`, { do: 'make-rollout', change: change.change, source: change.source });
    else if (!object.deleting) followRollout(state, change, object, at, propose);
  }
  for (const { name, uid, deleting } of state.rolloutResources.values()) {
    // Leave Rollouts alone that people made for changes that never existed.
    const isOurs = NAME.test(name) && state.index.get(name) !== undefined && !changes.has(name);
    if (isOurs && !deleting) propose(`rollout ${name}`, { do: 'remove-rollout', change: name, uid });
  }
  return { actions, wakeAtMs };
}

function shownChanges({ index }: State): ReadonlyMap<string, Change> {
  const known = [...index.all()].filter(({ phase }) => phase !== 'published');
  const isOpen = (change: Change): boolean => weightOf(change) === 'open';
  const shown = [...known.filter((change) => !isOpen(change)).slice(-KEPT), ...known.filter(isOpen)];
  return new Map(shown.map((change) => [change.change, change]));
}

function followRollout(
  state: State,
  change: Change,
  object: RolloutResource,
  at: string,
  propose: (key: string, action: RolloutAction) => void,
): void {
  const view = state.rollouts.get(change.change);
  const wish = wishOf(state, change, object, view);
  if (wish === 'pause' || wish === 'resume')
    propose(`steer ${change.change}`, {
      do: 'steer',
      change: change.change,
      generation: object.generation,
      pause: wish === 'pause',
    });
  const observed = wish === 'none' ? object.generation : (object.status?.observedGeneration ?? 0);
  const status = declaredOf(
    state.definitions,
    ROLLOUT_KIND,
    statusOfRollout(state, change, view, object, observed, at),
  );
  if (!isSame(status, object.status))
    propose(`status Rollout/${change.change}`, { do: 'show-rollout', change: change.change, uid: object.uid, status });
}

/**
 * Only an edit of the spec counts as a request, so that an older one does not undo a pause or resume from elsewhere.
 */
function wishOf(
  { steered }: State,
  { change }: Change,
  { generation, paused, status }: RolloutResource,
  view: RolloutView | undefined,
): 'none' | 'later' | 'pause' | 'resume' {
  if (
    paused === undefined ||
    generation === status?.observedGeneration ||
    steered.get(change)?.generation === generation
  )
    return 'none';
  if (view === undefined) return paused ? 'later' : 'none';
  if (view.phase !== 'rolling' || view.paused === paused) return 'none';
  return paused ? 'pause' : 'resume';
}

function statusOfRollout(
  { steered, drainTroubles, pools }: State,
  change: Change,
  view: RolloutView | undefined,
  { generation, status: before }: RolloutResource,
  observed: number,
  at: string,
): Status {
  const { phase, message, drafts } = tellOf(change, view, pools);
  const refusal = steered.get(change.change);
  const trouble = drainTroubles.ofChange.get(change.change);
  const words = [message, refusal?.generation === generation ? refusal.refusal : '', trouble?.words ?? '']
    .filter((part) => part !== '')
    .join('; ');
  return {
    phase,
    message: words,
    source: change.source,
    observedGeneration: observed,
    conditions: conditionsOf([...drafts, ...drainedOf(trouble)], observed, before, at),
    ...countsOf(change, view),
    ...(view === undefined ? {} : progressOf(view, trouble?.blocked ?? 0)),
  };
}

function progressOf(view: RolloutView, blocked: number): Status {
  const { paused, applied, nodes, stalledBy, supersededBy, startedAt, endedAt, pools } = view;
  return { paused, blocked, progress: `${applied}/${nodes}`, stalledBy, supersededBy, startedAt, endedAt, pools };
}
