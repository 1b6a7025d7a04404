import { fragmentId, REMOTE_APPLIER, type Fragment, type Reason } from '#libs/contracts';
import { compositeKindOf, functionKindOf, kindOf, selectorOf, selects } from '#libs/manifests';
import { canonicalJson, DEFAULT_POOL, type PoolPolicy } from '#libs/rules';
import type { Change, NodeState, State } from './state.js';

/** How many fragments and pools the warning names. */
const NAMED = 3;

/**
 * Warns of a change that may cut off targets from the applier that serves them, such as new firewall rules. A machine
 * notices that and rolls back. A target cannot: it is deferred as unreachable, and the next one gets the change too,
 * unless its pool counts silent nodes.
 */
export function cutOffWarnings(
  state: State,
  change: Pick<Change, 'apply' | 'delete'>,
  altered: readonly NodeState[],
  { poolOf, pools }: { readonly poolOf: ReadonlyMap<string, string>; readonly pools: ReadonlyMap<string, PoolPolicy> },
): readonly Reason[] {
  const risky = changedOf(state, change).filter(([fragment]) => mayCutOff(fragment.kind));
  if (risky.length === 0) return [];
  const reached = altered.filter(
    ({ node, labels, capabilities }) =>
      capabilities.includes(REMOTE_APPLIER) &&
      !(pools.get(poolOf.get(node) ?? '') ?? DEFAULT_POOL).countsSilentTargets &&
      risky.some((versions) => versions.some((one) => selects(selectorOf(one), labels))),
  );
  // Nobody gets it after a single target.
  if (reached.length < 2) return [];
  const what = list(risky.map(([fragment]) => fragmentId(fragment)));
  const where = list([...new Set(reached.map(({ node }) => poolOf.get(node) ?? DEFAULT_POOL.name))].sort());
  const message = `${what} can cut off targets from their applier. That fails no rollout: such a target counts as unreachable, and the next one gets the change too. Set silentNodes: count in the pool ${where}, so that a target that does not answer uses a unit${reached.length > NAMED ? ` (on ${reached.length} nodes)` : ''}`;
  return [
    { fragment: '', field: '', code: 'may-cut-off', message, nodes: reached.slice(0, NAMED).map(({ node }) => node) },
  ];
}

const mayCutOff = (kind: string): boolean => (functionKindOf(kind) ?? compositeKindOf(kind))?.mayCutOff === true;

/** What the change applies differently or deletes: the new version and the committed one, as far as they exist. */
function changedOf(
  { fragments }: State,
  change: Pick<Change, 'apply' | 'delete'>,
): readonly (readonly [Fragment, ...Fragment[]])[] {
  const applied = change.apply.flatMap((fragment): readonly (readonly [Fragment, ...Fragment[]])[] => {
    const before = fragments.get(fragmentId(fragment))?.fragment;
    if (before === undefined) return [[fragment]];
    // People publish whole manifests: most of their fragments are as they were.
    return canonicalJson(before.spec) === canonicalJson(fragment.spec) ? [] : [[fragment, before]];
  });
  const deleted = change.delete.flatMap((ref): readonly (readonly [Fragment])[] => {
    const before = fragments.get(fragmentId(ref))?.fragment;
    return before === undefined || kindOf(before.kind) === undefined ? [] : [[before]];
  });
  return [...applied, ...deleted];
}

const list = (names: readonly string[]): string =>
  names.length <= NAMED ? names.join(', ') : `${names.slice(0, NAMED).join(', ')} and ${names.length - NAMED} more`;
