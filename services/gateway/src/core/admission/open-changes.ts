import { changeSequence, isChangeId, type ChangeView } from '#libs/contracts';

/** An open change, as far as the right to pause it asks for it. */
export interface OpenChange {
  /** Kinds that it carries. */
  readonly kinds: readonly string[];
  /** Pools whose nodes it alters; undefined while that is not known. */
  readonly pools: readonly string[] | undefined;
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

  /**
   * Undefined for one that has ended, or that can never be: whatever is wished of it does nothing. One that is yet to
   * come may carry anything.
   */
  of(name: string): OpenChange | undefined {
    const found = this.open.get(name);
    if (found !== undefined || !isChangeId(name)) return found;
    return changeSequence(name) > this.newest ? { kinds: [], pools: undefined } : undefined;
  }
}
