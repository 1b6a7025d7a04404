import { changeSequence, isChangeId, type ChangeView, type Fragment } from '#libs/contracts';
import { editorsOf } from '#libs/manifests';
import type { Answer } from './answer.js';
import type { RolloutRequest } from './request.js';
import { MASTERS } from './rights.js';
import type { Wanted } from './wanted.js';

/** An open change, as far as the right to pause it asks for it. */
export interface OpenChange {
  /** Kinds that it carries. */
  readonly kinds: readonly string[];
  /** Pools whose nodes it alters; undefined while that is not known. */
  readonly pools: readonly string[] | undefined;
}

const ALLOWED: Answer = { is: 'allowed', warnings: [] };

/**
 * Whether somebody may pause a rollout, or let it go on. They hold up, or set going, what it brings to every pool that it touches: so they have to
 * be an editor of each of those that have any, for every kind that it carries.
 */
export function answerSteering({ name, user, groups, paused, wasPaused }: RolloutRequest, wanted: Wanted): Answer {
  if (paused === undefined || paused === wasPaused || groups.includes(MASTERS)) return ALLOWED;
  if (!wanted.isReady || !wanted.read.has('changes')) return { is: 'unready' };
  const guarded = [...wanted.ofKind('Pool')]
    .filter((pool) => editorsOf(pool).length > 0)
    .sort((a, b) => (a.name < b.name ? -1 : 1));
  const change = wanted.changes.of(name);
  if (change === undefined || guarded.length === 0) return ALLOWED;
  const refused = (why: string): Answer => ({
    is: 'forbidden',
    message: `${JSON.stringify(user)} may not ${paused ? 'pause' : 'resume'} Rollout/${name}: ${why}`,
  });
  if (change.pools === undefined && !guarded.every((pool) => isEditor(pool, change.kinds, groups)))
    return refused('it is not known yet which pools it touches, and some have editors; ask again when it is reviewed');
  const touched = guarded.filter((pool) => change.pools?.includes(pool.name) !== false);
  const other = touched.find((pool) => !isEditor(pool, change.kinds, groups));
  return other === undefined
    ? ALLOWED
    : refused(
        `it touches nodes of Pool/${other.name}, and there ${whoMay(other, change.kinds)} may change ${change.kinds.join(', ')}`,
      );
}

const ableFor = (pool: Fragment, kind: string): readonly string[] =>
  editorsOf(pool)
    .filter(({ kinds }) => kinds === undefined || kinds.includes(kind))
    .flatMap((editors) => editors.groups);

/** Of every kind, by way of whichever groups. */
const isEditor = (pool: Fragment, kinds: readonly string[], groups: readonly string[]): boolean =>
  editorsOf(pool).some((editors) => editors.groups.some((group) => groups.includes(group))) &&
  kinds.every((kind) => ableFor(pool, kind).some((group) => groups.includes(group)));

function whoMay(pool: Fragment, kinds: readonly string[]): string {
  const [first = [], ...rest] = kinds.map((kind) => ableFor(pool, kind));
  const able = [...new Set(first)].filter((group) => rest.every((groups) => groups.includes(group))).sort();
  return able.length === 0 ? 'nobody alone' : `only ${able.join(', ')}`;
}

/** The changes that have not ended, as far as this copy sees them. */
export class OpenChanges {
  private readonly open = new Map<string, OpenChange>();
  private newest = 0;

  show({
    change,
    phase,
    apply,
    delete: gone,
    pools,
  }: Pick<ChangeView, 'change' | 'phase' | 'apply' | 'delete' | 'pools'>): void {
    this.newest = Math.max(this.newest, changeSequence(change));
    if (phase === 'committed' || phase === 'rejected' || phase === 'ended') return void this.open.delete(change);
    const isRendered = phase !== 'accepted' && phase !== 'waiting';
    this.open.set(change, {
      kinds: [...new Set([...apply, ...gone].map(({ kind }) => kind))].sort(),
      pools: isRendered ? Object.keys(pools) : undefined,
    });
  }

  /** Undefined for one that has ended, or that can never be: whatever is wished of it does nothing. One that is yet to come may carry anything. */
  of(name: string): OpenChange | undefined {
    const found = this.open.get(name);
    if (found !== undefined || !isChangeId(name)) return found;
    return changeSequence(name) > this.newest ? { kinds: [], pools: undefined } : undefined;
  }
}
