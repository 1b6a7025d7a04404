import { isPolicyKind } from '#libs/manifests';
import { kindIn } from '#libs/rules';
import { meets, overlaps, reachOf, type Reach, type Spend } from './reach.js';
import { openByAge, touchedIds, type Change, type State } from './state.js';

/** The position of a change in the queue: its turn has come (perhaps as a correction of others), or it waits. */
export type Turn =
  | { readonly is: 'now'; readonly replaces: readonly string[] }
  | { readonly is: 'waiting'; readonly waitsFor: readonly string[] };

/**
 * A waiting change names at most this many of the changes that it waits for: the latest ones. If it named all of them,
 * each change that ends would cause a fact for every change behind it.
 */
export const MOST_NAMED = 16;

/** The open changes during one decision. The reach of a change is computed when it is first needed. */
export class Queue {
  readonly open: readonly Change[];
  private readonly places: ReadonlyMap<string, number>;
  private readonly reaches = new Map<string, Reach>();

  constructor(
    private readonly state: State,
    private readonly spend: Spend = () => undefined,
  ) {
    this.open = openByAge(state);
    this.places = new Map(this.open.map(({ change }, place) => [change, place]));
  }

  /** The index in `open`. A change that is not published yet comes last. */
  placeOf(change: Change): number {
    return this.places.get(change.change) ?? this.open.length;
  }

  reachOf(change: Change): Reach {
    const cached = this.reaches.get(change.change);
    if (cached !== undefined) return cached;
    const reach = reachOf(this.state, change, this.spend);
    this.reaches.set(change.change, reach);
    return reach;
  }

  overlaps(other: Change, change: Change): boolean {
    return overlaps(this.state, this.reachOf(other), this.reachOf(change), this.spend);
  }
}

/**
 * The merge queue. A change waits for every open change that overlaps it (they share a node or a fragment) and that is
 * earlier or has already started. A later change can have started first if it is a correction, or if a node was
 * relabelled since. A change that touches every fragment of all the earlier ones corrects them and replaces them. A
 * correction of a change that has started passes earlier changes of other fragments that wait: a bad rollout must not
 * go on only because somebody else is in the queue behind it.
 */
export function turnOf(queue: Queue, change: Change): Turn {
  const place = queue.placeOf(change);
  const before: Change[] = [];
  const passable = new Set<Change>();
  let isCorrection = true;
  // Starts with the latest change, and stops when it is certain that this change waits and enough changes are named.
  for (let at = queue.open.length - 1; at >= 0 && (isCorrection || before.length < MOST_NAMED); at -= 1) {
    const other = queue.open[at] as Change;
    if (at === place || (at > place && !isStarted(other)) || !queue.overlaps(other, change)) continue;
    const sharesFragments = meets(queue.reachOf(other).ids, queue.reachOf(change).ids);
    // What a change waits for may take a day, so it holds up as little as possible.
    if (isBlocked(other) && (!sharesFragments || mayPass(queue, other, change))) continue;
    before.push(other);
    if (other.phase === 'waiting' && !isStarted(other) && !sharesFragments) passable.add(other);
    else isCorrection &&= at < place && isCorrectedBy(queue, other, change);
  }
  before.reverse();
  const replaced = before.filter((other) => !passable.has(other));
  if (!isCorrection || (passable.size > 0 && !replaced.some(isStarted))) return waitingFor(before);
  const busy = busyWithNodesOf(queue, replaced);
  return busy.length === 0 ? { is: 'now', replaces: replaced.map((other) => other.change) } : waitingFor(busy);
}

const waitingFor = (changes: readonly Change[]): Turn => ({
  is: 'waiting',
  waitsFor: changes.slice(-MOST_NAMED).map(({ change }) => change),
});

/**
 * Changes that have started on nodes of the replaced changes that have not started: the correction must wait for them,
 * just as the replaced changes did.
 */
function busyWithNodesOf(queue: Queue, replaced: readonly Change[]): readonly Change[] {
  const waiting = replaced.filter((one) => !isStarted(one));
  if (waiting.length === 0) return [];
  const replacedToo = new Set(replaced);
  return queue.open.filter(
    (other) => isStarted(other) && !replacedToo.has(other) && waiting.some((one) => queue.overlaps(other, one)),
  );
}

/** It waits for fragments that do not exist yet. Once they may exist, it takes its place in the queue again. */
export const isBlocked = ({ needs, outdated, rollout }: Change): boolean =>
  needs.length > 0 && !outdated && rollout === 'none';

/**
 * Whether a newer change of the same source goes ahead of a blocked one of which it touches some fragments. Once it is
 * committed, the older change leaves these as they are. If it touches all of them, it replaces the older change. A
 * rollback is whole or not at all, and pools and policies come into force with the change that was published.
 */
function mayPass(queue: Queue, older: Change, newer: Change): boolean {
  if (older.source !== newer.source && newer.takeOver !== true) return false;
  if (older.rollbackOf !== undefined || isCorrectedBy(queue, older, newer)) return false;
  const { ids } = queue.reachOf(newer);
  return touchedIds(older).every((id) => !ids.has(id) || !isPolicyKind(kindIn(id)));
}

const isStarted = ({ rollout }: Change): boolean => rollout !== 'none';

/**
 * A change that is aborted, reverting or ended cannot be corrected: the newer change waits until it has ended. So it
 * does if the older change is of another source, unless it may take over what belongs to others.
 */
function isCorrectedBy(queue: Queue, older: Change, newer: Change): boolean {
  if (older.source !== newer.source && newer.takeOver !== true) return false;
  if (older.aborted || (isStarted(older) && older.rollout !== 'rolling')) return false;
  const { ids } = queue.reachOf(newer);
  for (const id of queue.reachOf(older).ids) if (!ids.has(id)) return false;
  return true;
}
