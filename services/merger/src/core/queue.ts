import { openByAge, touchedIds, type Change, type State } from './state.js';
import { touchedNodes } from './selection.js';

/** Where a change stands: its turn has come (perhaps as a correction of others), or it waits. */
export type Turn =
  | { readonly is: 'now'; readonly replaces: readonly string[] }
  | { readonly is: 'waiting'; readonly waitsFor: readonly string[] };

/** What each open change touches; computed once for a decision. */
export type Reach = ReadonlyMap<
  string,
  {
    readonly ids: ReadonlySet<string>;
    /** Nodes that its own fragments select or selected. */
    readonly own: ReadonlySet<string>;
    /** These and its targets, which a correction has of the older one, too. */
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
 * The merge queue: a change waits for every open one that it shares a node or a fragment with and that is earlier or on
 * its way already (a correction has taken an earlier place; a relabel lets two meet that did not before). If it touches
 * every fragment that each of the earlier ones touches, it is their correction and replaces them.
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
 * What is on its way on nodes of older ones that have not started: until it has ended a correction of those cannot
 * start either.
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

/** The nodes that a correction rolls back are the older one's: who waits for those does not hinder it. */
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

/** Once the older one has ended or turned round there is nothing to correct: the newer waits for its end. */
function isCorrectedBy(reach: Reach, older: Change, newer: Change): boolean {
  if (older.aborted || (older.rollout !== 'none' && older.rollout !== 'rolling')) return false;
  const ids = reach.get(newer.change)?.ids;
  return ids !== undefined && [...(reach.get(older.change)?.ids ?? [])].every((id) => ids.has(id));
}
