import { byNewest, keepSnapshot, type SnapshotInfo } from '#libs/engine';
import { carryOut } from './carry-out.js';
import type { Snapshots } from './snapshots.js';

/** Stores a snapshot as a service does. The ledger may be imaginary. */
export const putSnapshot = (
  snapshots: Snapshots,
  { service, version, loads = [version] }: { service: string; version: number; loads?: readonly number[] },
  { sequence, state }: { sequence: number; state: unknown },
): Promise<void> =>
  carryOut(
    keepSnapshot({ service, version, loads, sequence, text: JSON.stringify({ service, version, sequence, state }) }),
    { ...snapshots.handlers, bounds: () => ({ first: 1, last: Infinity }) },
  );

/** The newest readable snapshot of a service. */
export async function newestSnapshot(
  snapshots: Snapshots,
  service: string,
): Promise<(SnapshotInfo & { readonly state: unknown }) | undefined> {
  for (const info of (await snapshots.list(service)).toSorted(byNewest)) {
    const found = await snapshots.read(info);
    if (found !== undefined) return { ...info, ...found };
  }
  return undefined;
}
