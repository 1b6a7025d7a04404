import { fragmentId, type Fragment } from '#libs/contracts';
import { editorsOf, selectorOf } from '#libs/manifests';
import type { AdmissionRequest, RolloutRequest } from './request.js';
import type { DesiredState } from './desired-state.js';
import { ALLOWED, type AdmissionAnswer } from './response.js';

/** A user who may do everything in Kubernetes may do everything here. */
const MASTERS = 'system:masters';

const mayDoEverything = (groups: readonly string[]): boolean => groups.includes(MASTERS);

/** The pools that have editors, sorted by name. */
const guardedPools = (pools: Iterable<Fragment>): readonly Fragment[] =>
  [...pools].filter((pool) => editorsOf(pool).length > 0).sort((a, b) => (a.name < b.name ? -1 : 1));

/** The groups whose members may change this kind in a pool. */
const editorGroups = (pool: Fragment, kind: string): readonly string[] =>
  editorsOf(pool)
    .filter(({ kinds }) => kinds === undefined || kinds.includes(kind))
    .flatMap((editors) => editors.groups);

/** Whether a user in these groups is an editor of the pool, for every one of these kinds. */
const isEditor = (pool: Fragment, kinds: readonly string[], groups: readonly string[]): boolean =>
  editorsOf(pool).some((editors) => editors.groups.some((group) => groups.includes(group))) &&
  kinds.every((kind) => editorGroups(pool, kind).some((group) => groups.includes(group)));

const VERBS = { CREATE: 'create', UPDATE: 'update', DELETE: 'delete' } as const;

/**
 * Why the user must not do it, or undefined. Only the editors of a pool may change the pool, and whatever selects one
 * of its nodes, before or after the change. Who may change which kind at all is decided by Kubernetes roles.
 */
export function forbiddenBy(
  request: AdmissionRequest,
  changed: { readonly before: Fragment | undefined; readonly now: Fragment | undefined },
  desired: DesiredState,
): string | undefined {
  if (mayDoEverything(request.groups)) return undefined;
  const both = [changed.before, changed.now].filter((fragment) => fragment !== undefined);
  for (const pool of poolsInQuestion(changed, desired)) {
    const isItself = both.some((fragment) => fragmentId(fragment) === fragmentId(pool));
    if (!isItself && !both.some((fragment) => desired.nodes.isShared(selectorOf(pool), selectorOf(fragment)))) continue;
    const words = refusalOf(request, pool, isItself);
    if (words !== undefined) return words;
  }
  return undefined;
}

/** The current pools, and the changed one as it was before, so that only an editor can remove its editors. */
function poolsInQuestion(
  { before }: { readonly before: Fragment | undefined },
  desired: DesiredState,
): readonly Fragment[] {
  const pools = new Map([...desired.ofKind('Pool')].map((pool) => [fragmentId(pool), pool]));
  if (before?.kind === 'Pool') pools.set(fragmentId(before), before);
  return guardedPools(pools.values());
}

function refusalOf(
  { user, groups, operation, kind, name }: AdmissionRequest,
  pool: Fragment,
  isItself: boolean,
): string | undefined {
  const able = editorGroups(pool, kind);
  if (able.some((group) => groups.includes(group))) return undefined;
  const who = able.length === 0 ? 'nobody' : `only ${[...new Set(able)].sort().join(', ')}`;
  const why = isItself
    ? `${who} may change Pool/${pool.name}`
    : `it selects nodes of Pool/${pool.name}, where ${who} may change objects of kind ${kind}`;
  return `${JSON.stringify(user)} may not ${VERBS[operation]} ${kind}/${name}: ${why}`;
}

/**
 * Whether somebody may pause or resume a rollout. Both affect every pool that the rollout touches. So the user must be
 * an editor of each of these pools that has editors, for every kind in the change.
 */
export function answerSteering(
  { name, user, groups, paused, wasPaused }: RolloutRequest,
  desired: DesiredState,
): AdmissionAnswer {
  if (paused === undefined || paused === wasPaused || mayDoEverything(groups)) return ALLOWED;
  if (!desired.isReady || !desired.read.has('changes')) return { is: 'unready' };
  const guarded = guardedPools(desired.ofKind('Pool'));
  const change = desired.changes.of(name);
  if (change === undefined || guarded.length === 0) return ALLOWED;
  const refused = (why: string): AdmissionAnswer => ({
    is: 'forbidden',
    message: `${JSON.stringify(user)} may not ${paused ? 'pause' : 'resume'} Rollout/${name}: ${why}`,
  });
  if (change.pools === undefined && !guarded.every((pool) => isEditor(pool, change.kinds, groups)))
    return refused(
      'it is not known yet which pools it affects, and some pools have editors; try again after its review',
    );
  const touched = guarded.filter((pool) => change.pools?.includes(pool.name) !== false);
  const other = touched.find((pool) => !isEditor(pool, change.kinds, groups));
  return other === undefined
    ? ALLOWED
    : refused(
        `it affects nodes of Pool/${other.name}, where ${whoMay(other, change.kinds)} may change ${change.kinds.join(', ')}`,
      );
}

function whoMay(pool: Fragment, kinds: readonly string[]): string {
  const [first = [], ...rest] = kinds.map((kind) => editorGroups(pool, kind));
  const able = [...new Set(first)].filter((group) => rest.every((groups) => groups.includes(group))).sort();
  return able.length === 0 ? 'no single group' : `only ${able.join(', ')}`;
}
