import { changeSequence, isChangeId, type ChangeView } from '#libs/contracts';

/** An open change, as far as the right to pause it depends on it. */
export interface OpenChange {
  /** The kinds of its fragments. */
  readonly kinds: readonly string[];
  /** Pools whose nodes it changes; undefined while that is unknown. */
  readonly pools: readonly string[] | undefined;
}

/** The changes that have not ended, as far as this copy knows. */
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

  /**
   * Undefined for a change that has ended or can never exist: a request about it has no effect. A future change may
   * contain anything.
   */
  of(name: string): OpenChange | undefined {
    const change = this.open.get(name);
    if (change !== undefined || !isChangeId(name)) return change;
    return changeSequence(name) > this.newest ? { kinds: [], pools: undefined } : undefined;
  }
}
