import { openByAge, touchedIds, type Change, type State } from './state.js';
import { touchedNodes } from './selection.js';

/** The position of a change in the queue: its turn has come (perhaps as a correction of others), or it waits. */
export type Turn =
  | { readonly is: 'now'; readonly replaces: readonly string[] }
  | { readonly is: 'waiting'; readonly waitsFor: readonly string[] };

/** What each open change touches. Computed once per decision. */
export type Reach = ReadonlyMap<
  string,
  {
    readonly ids: ReadonlySet<string>;
    /** Nodes that its own fragments select or selected. */
    readonly own: ReadonlySet<string>;
    /** These and its targets. The targets of a correction include those of the change that it corrects. */
    readonly nodes: ReadonlySet<string>;
  }
>;

export function reachOf(state: State, changes: readonly Change[]): Reach {
  return new Map(
    changes.map((change) => {
      const own = new Set(touchedNodes(state, change).map((node) => node.node));
      const nodes = new Set([...own, ...Object.keys(state.targets.get(change.change) ?? {})]);
      return [change.change, { ids: new Set(touchedIds(change)), own, nodes }];
    }),
  );
}

/**
 * The merge queue. A change waits for every open change that overlaps it (they share a node or a fragment) and that is
 * earlier or has already started. A later change can have started first if it is a correction, or if a node was
 * relabelled since. A change that touches every fragment of all the earlier ones corrects them and replaces them.
 */
export function turnOf(state: State, change: Change, reach: Reach): Turn {
  const before = openByAge(state).filter(
    (other) => (isEarlier(other, change) || isStarted(other, change)) && overlaps(reach, other, change),
  );
  const isCorrection = before.every((other) => isEarlier(other, change) && isCorrectedBy(reach, other, change));
  const names = before.map((other) => other.change);
  if (!isCorrection) return { is: 'waiting', waitsFor: names };
  const busy = busyWithNodesOf(state, before, reach);
  return busy.length === 0 ? { is: 'now', replaces: names } : { is: 'waiting', waitsFor: busy };
}

/**
 * Changes that have started on nodes of the replaced changes that have not started: the correction must wait for them,
 * just as the replaced changes did.
 */
function busyWithNodesOf(state: State, replaced: readonly Change[], reach: Reach): readonly string[] {
  const waiting = replaced.filter((one) => one.rollout === 'none');
  const meetsThem = (other: Change): boolean => waiting.some((one) => overlaps(reach, other, one));
  return openByAge(state)
    .filter((other) => other.rollout !== 'none' && !replaced.includes(other) && meetsThem(other))
    .map((other) => other.change);
}

const isStarted = (other: Change, change: Change): boolean =>
  other.change !== change.change && other.rollout !== 'none';
const isEarlier = (a: Change, b: Change): boolean => Number(a.change.slice(1)) < Number(b.change.slice(1));

/** Compares all nodes of the other change with only the change's own nodes, not with those that it corrects. */
function overlaps(reach: Reach, other: Change, change: Change): boolean {
  const there = reach.get(other.change);
  const here = reach.get(change.change);
  if (there === undefined || here === undefined) return false;
  return meets(there.ids, here.ids) || meets(there.nodes, here.own);
}

const meets = (a: ReadonlySet<string>, b: ReadonlySet<string>): boolean => {
  const [small, large] = a.size < b.size ? [a, b] : [b, a];
  for (const item of small) if (large.has(item)) return true;
  return false;
};

/** A change that is aborted, reverting or ended cannot be corrected: the newer change waits until it has ended. */
function isCorrectedBy(reach: Reach, older: Change, newer: Change): boolean {
  if (older.aborted || (older.rollout !== 'none' && older.rollout !== 'rolling')) return false;
  const ids = reach.get(newer.change)?.ids;
  return ids !== undefined && [...(reach.get(older.change)?.ids ?? [])].every((id) => ids.has(id));
}
