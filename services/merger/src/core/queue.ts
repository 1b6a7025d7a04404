import { openByAge, touchedIds, type Change, type State } from './state.js';
import { touchedNodes } from './selection.js';

/** Where a change stands: its turn has come (perhaps as a correction of others), or it waits. */
export type Turn = { readonly is: 'now'; readonly replaces: readonly string[] } | { readonly is: 'waiting'; readonly behind: readonly string[] };

/** What each open change touches; computed once for a decision. */
export type Reach = ReadonlyMap<string, { readonly ids: ReadonlySet<string>; readonly nodes: ReadonlySet<string> }>;

export function reachOf(state: State, changes: readonly Change[]): Reach {
  const reach = new Map<string, { readonly ids: ReadonlySet<string>; readonly nodes: ReadonlySet<string> }>();
  for (const change of changes) {
    const nodes = new Set(touchedNodes(state, change).map((node) => node.node));
    for (const node of Object.keys(state.targets.get(change.change) ?? {})) nodes.add(node);
    reach.set(change.change, { ids: new Set(touchedIds(change)), nodes });
  }
  return reach;
}

/**
 * The merge queue: a change waits for every open one that it shares a node or a fragment with and that is earlier or on
 * its way already (a correction has taken an earlier place; a relabel lets two meet that did not before). If it touches
 * every fragment that each of the earlier ones touches, it is their correction and replaces them.
 */
export function turnOf(state: State, change: Change, reach: Reach): Turn {
  const before = openByAge(state).filter((other) => (isEarlier(other, change) || isStarted(other, change)) && overlaps(reach, other, change));
  const isCorrection = before.every((other) => isEarlier(other, change) && isCorrectedBy(reach, other, change));
  const names = before.map((other) => other.change);
  return isCorrection ? { is: 'now', replaces: names } : { is: 'waiting', behind: names };
}

const isStarted = (other: Change, change: Change): boolean => other.change !== change.change && other.rollout !== 'none';
const isEarlier = (a: Change, b: Change): boolean => Number(a.change.slice(1)) < Number(b.change.slice(1));

function overlaps(reach: Reach, a: Change, b: Change): boolean {
  const one = reach.get(a.change);
  const other = reach.get(b.change);
  if (one === undefined || other === undefined) return false;
  return meets(one.ids, other.ids) || meets(one.nodes, other.nodes);
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
