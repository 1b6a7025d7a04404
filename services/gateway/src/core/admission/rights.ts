import { fragmentId, type Fragment } from '#libs/contracts';
import { editorsOf, selectorOf } from '#libs/manifests';
import type { AdmissionRequest } from './request.js';
import type { Wanted } from './wanted.js';

/** Who may do everything in Kubernetes may do everything here. */
export const MASTERS = 'system:masters';
const VERBS = { CREATE: 'create', UPDATE: 'update', DELETE: 'delete' } as const;

/**
 * Why somebody may not do it, or undefined. A pool with editors lets only those change it, and whatever selects one of its nodes: as it was before, or
 * as it shall be. Who may change which kind at all is for Kubernetes' own roles to say.
 */
export function forbiddenBy(
  request: AdmissionRequest,
  changed: { readonly before: Fragment | undefined; readonly now: Fragment | undefined },
  wanted: Wanted,
): string | undefined {
  if (request.groups.includes(MASTERS)) return undefined;
  const both = [changed.before, changed.now].filter((fragment) => fragment !== undefined);
  for (const pool of guardedPools(changed, wanted)) {
    const isItself = both.some((fragment) => fragmentId(fragment) === fragmentId(pool));
    if (!isItself && !both.some((fragment) => wanted.nodes.isShared(selectorOf(pool), selectorOf(fragment)))) continue;
    const words = refusalOf(request, pool, isItself);
    if (words !== undefined) return words;
  }
  return undefined;
}

/** Those in force, and the one that is being changed as it was: who takes its editors away has to be one of them. */
function guardedPools({ before }: { readonly before: Fragment | undefined }, wanted: Wanted): readonly Fragment[] {
  const pools = new Map([...wanted.ofKind('Pool')].map((pool) => [fragmentId(pool), pool]));
  if (before?.kind === 'Pool') pools.set(fragmentId(before), before);
  return [...pools.values()].filter((pool) => editorsOf(pool).length > 0).sort((a, b) => (a.name < b.name ? -1 : 1));
}

function refusalOf(
  { user, groups, operation, kind, name }: AdmissionRequest,
  pool: Fragment,
  isItself: boolean,
): string | undefined {
  const able = editorsOf(pool)
    .filter(({ kinds }) => kinds === undefined || kinds.includes(kind))
    .flatMap((editors) => editors.groups);
  if (able.some((group) => groups.includes(group))) return undefined;
  const who = able.length === 0 ? 'nobody' : `only ${[...new Set(able)].sort().join(', ')}`;
  const why = isItself
    ? `${who} may change Pool/${pool.name}`
    : `it selects nodes of Pool/${pool.name}, and there ${who} may change what is of kind ${kind}`;
  return `${JSON.stringify(user)} may not ${VERBS[operation]} ${kind}/${name}: ${why}`;
}
