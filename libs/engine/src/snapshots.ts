import type { Core, Need } from './core.js';

/** What is known of a snapshot without reading it. */
export interface SnapshotInfo {
  readonly name: string;
  readonly version: number;
  /** The last fact in it. */
  readonly sequence: number;
  /** When the server stored that fact, as it says where it is known, and in milliseconds. */
  readonly stored: string | undefined;
  readonly storedMs: number;
  /** Of which versions who wrote it could have loaded one. */
  readonly loads: readonly number[];
}

/** One of the places for the snapshots of a version; without `snapshot` it is empty, or holds something else. */
export interface Slot {
  readonly name: string;
  readonly snapshot?: SnapshotInfo | undefined;
}

/**
 * Of each version: enough that one is old when the ledger may be trimmed, and that those between are a few weeks apart.
 */
export const SLOTS: readonly string[] = ['a', 'b', 'c', 'd', 'e', 'f'];

export const byNewest = (a: SnapshotInfo, b: SnapshotInfo): number => b.sequence - a.sequence;

/**
 * Where the next snapshot goes: an empty place, then the oldest of no use (the ledger begins at `first`), then the one
 * that stands closest between its neighbours. Never the newest, for the write may be cut off; nor the oldest of use,
 * behind which the ledger was trimmed or will be.
 */
export function slotForNext(slots: readonly Slot[], first: number): Slot {
  const empty = slots.find(({ snapshot }) => snapshot === undefined);
  if (empty !== undefined) return empty;
  const full = slots.flatMap(({ snapshot }) => snapshot ?? []).toSorted(byNewest);
  const oldest = full.at(-1) as SnapshotInfo;
  if (oldest.sequence < first - 1) return oldest;
  const room = (i: number): number => (full[i] as SnapshotInfo).storedMs - (full[i + 2] as SnapshotInfo).storedMs;
  let best = { name: oldest.name, room: Infinity };
  for (const [i, { name }] of full.slice(1, -1).entries()) if (room(i) < best.room) best = { name, room: room(i) };
  return { name: best.name };
}

/** Snapshots of a service that its newest release can start from, newest first. */
export function usable(snapshots: readonly SnapshotInfo[]): readonly SnapshotInfo[] {
  const sorted = snapshots.toSorted(byNewest);
  const newest = sorted[0];
  return newest === undefined ? [] : sorted.filter(({ version }) => newest.loads.includes(version));
}

/**
 * The snapshots old enough for the ledger to begin behind one, newest first. Not the newest of all: that one may turn
 * out to be unreadable. Else why there is none.
 */
export function baseOf(
  snapshots: readonly SnapshotInfo[],
  olderThanMs: number,
): { readonly base: readonly SnapshotInfo[] } | { readonly why: string } {
  const [newest, ...older] = usable(snapshots);
  if (newest === undefined) return { why: 'has no snapshot' };
  if (older.length === 0) return { why: 'has only one snapshot; trimming needs two, and goes up to the older one' };
  const base = older.filter(({ storedMs }) => storedMs <= olderThanMs);
  return base.length === 0 ? { why: 'has no snapshot that is old enough yet' } : { base };
}

type Migrating = Pick<Core<unknown, never, Need, unknown>, 'version' | 'migrations'>;

/** The versions whose dumps a core can load, its own first: as far back as there is a step from each to the next. */
export function loadableVersions({ version, migrations }: Migrating): readonly number[] {
  const versions = [version];
  for (let older = version - 1; migrations?.[older] !== undefined; older -= 1) versions.push(older);
  return versions;
}

/** A dump of another version as one of the core's own, step by step. Throws when a step is missing. */
export function migrated({ version, migrations }: Migrating, from: number, dumped: unknown): unknown {
  let dump = dumped;
  for (let at = from; at !== version; at += 1) {
    const step = migrations?.[at];
    if (step === undefined) throw new Error(`no migration from version ${from} to version ${version}`);
    dump = step(dump);
  }
  return dump;
}
