/** What is known of a snapshot without reading it. */
export interface Kept {
  readonly name: string;
  readonly version: number;
  /** The last fact in it. */
  readonly sequence: number;
  /** When the server stored that fact, as it says, and in milliseconds; empty where that is not known. */
  readonly stored: string;
  readonly storedMs: number;
  /** Of which versions who wrote it could have loaded one. */
  readonly loads: readonly number[];
}

/** One of the places for the snapshots of a version; empty, or with what is no snapshot, without `kept`. */
export interface Slot {
  readonly name: string;
  readonly kept?: Kept | undefined;
}

/** Of each version: enough that one is old when the ledger may be trimmed, and that those between are a few weeks apart. */
export const SLOTS: readonly string[] = ['a', 'b', 'c', 'd', 'e', 'f'];

export const byNewest = (a: Kept, b: Kept): number => b.sequence - a.sequence;

/**
 * Where the next snapshot goes: an empty place, then the oldest of no use (the ledger begins at `first`), then the one that stands closest between its
 * neighbours. Never the newest, for the write may be cut off; nor the oldest of use, behind which the ledger was trimmed or will be.
 */
export function slotForNext(slots: readonly Slot[], first: number): Slot {
  const empty = slots.find(({ kept }) => kept === undefined);
  if (empty !== undefined) return empty;
  const full = (slots as readonly Required<Slot & { kept: Kept }>[]).toSorted((a, b) => byNewest(a.kept, b.kept));
  const oldest = full.at(-1) as Slot;
  if ((oldest.kept as Kept).sequence < first - 1) return oldest;
  const between = full.slice(1, -1);
  const room = (i: number): number =>
    (full[i] as { kept: Kept }).kept.storedMs - (full[i + 2] as { kept: Kept }).kept.storedMs;
  return between.reduce((best, slot, i) => (room(i) < best.room ? { slot, room: room(i) } : best), {
    slot: oldest,
    room: Infinity,
  }).slot;
}

/** Snapshots of a service that its newest release can start from, newest first. */
export function usable(kept: readonly Kept[]): readonly Kept[] {
  const sorted = kept.toSorted(byNewest);
  const newest = sorted[0];
  return newest === undefined ? [] : sorted.filter(({ version }) => newest.loads.includes(version));
}

/**
 * The newest snapshot that is old enough for the ledger to begin behind it. Not the newest of all: that one may turn out to be
 * unreadable. Else why there is none.
 */
export function baseOf(
  kept: readonly Kept[],
  olderThanMs: number,
): { readonly base: readonly Kept[] } | { readonly why: string } {
  const [newest, ...older] = usable(kept);
  if (newest === undefined) return { why: 'has no snapshot' };
  if (older.length === 0) return { why: 'has only one snapshot, and the ledger is trimmed behind the older of two' };
  const base = older.filter(({ storedMs }) => storedMs <= olderThanMs);
  return base.length === 0 ? { why: 'has no snapshot that old yet' } : { base };
}
