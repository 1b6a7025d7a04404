import type { Core, Need } from './core.js';

/** What is known about a snapshot without reading it. */
export interface SnapshotInfo {
  readonly name: string;
  readonly version: number;
  /** The last fact in it. */
  readonly sequence: number;
  /** When the server stored that fact, as the server wrote it if known, and in milliseconds. */
  readonly stored: string | undefined;
  readonly storedMs: number;
  /** The versions that its writer could have loaded. */
  readonly loads: readonly number[];
}

/** One of the places for the snapshots of a version. Without `snapshot`, it is empty or holds something else. */
export interface Slot {
  readonly name: string;
  readonly snapshot?: SnapshotInfo | undefined;
}

/**
 * How many snapshots each version keeps: enough that one is old enough for trimming, and that the others are a few
 * weeks apart.
 */
export const SLOTS: readonly string[] = ['a', 'b', 'c', 'd', 'e', 'f'];

export const byNewest = (a: SnapshotInfo, b: SnapshotInfo): number => b.sequence - a.sequence;

/**
 * Chooses the place of the next snapshot: an empty one, then the oldest useless one (the ledger starts at `first`),
 * then the one that is closest to its neighbours. Never the newest, because the write may be interrupted, and never the
 * oldest useful one, because the ledger is or will be trimmed up to it.
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
 * The snapshots that are old enough to trim the ledger up to one of them, newest first; or why there is none. The
 * newest snapshot of all does not count, because it may turn out to be unreadable.
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

type FoldVersions = Pick<Core<unknown, never, Need, unknown>, 'version' | 'migrations'>;

/** The versions whose dumps a core can load, its own first: as far back as the chain of migrations goes. */
export function loadableVersions({ version, migrations }: FoldVersions): readonly number[] {
  const versions = [version];
  for (let older = version - 1; migrations?.[older] !== undefined; older -= 1) versions.push(older);
  return versions;
}

/** Converts a dump of another version to the core's own, step by step. Throws if a step is missing. */
export function migrated({ version, migrations }: FoldVersions, from: number, dumped: unknown): unknown {
  let dump = dumped;
  for (let at = from; at !== version; at += 1) {
    const step = migrations?.[at];
    if (step === undefined) throw new Error(`no migration from version ${from} to version ${version}`);
    dump = step(dump);
  }
  return dump;
}
