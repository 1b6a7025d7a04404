import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import { Objm, type ObjectInfo, type ObjectStore } from '@nats-io/obj';
import { LEDGER, SNAPSHOTS } from '#libs/contracts';
import type { Bus } from './connection.js';
import { pause } from './signal.js';
import { SLOTS, slotForNext, type Kept, type Slot } from './snapshot-slots.js';

/** A fold as it was at one sequence of the ledger. */
export interface Snapshot {
  readonly sequence: number;
  readonly state: unknown;
}

/** A snapshot that was read, and which one it was. */
export interface Found extends Snapshot {
  readonly kept: Kept;
}

/** Of which service and version, which versions can be started from by who writes it, and where the ledger begins and ends. */
export interface Keeping {
  readonly service: string;
  readonly version: number;
  readonly loads?: readonly number[];
  readonly bounds?: () => Promise<{ readonly first: number; readonly last: number }>;
}

const zip = promisify(gzip);
const unzip = promisify(gunzip);
/** How often a reading that goes on looks whether its object is still the same. */
const LOOK_MS = 1_000;
/** What is not read by then has lost a piece. */
const MOST_LOOKS = 60;
const STREAM = `OBJ_${SNAPSHOTS}`;
const META = `$O.${SNAPSHOTS}.M.`;

/**
 * The folds of services, kept so that a start need not read the whole ledger, which may be trimmed. Several of each version stand in places that are
 * written again: who reads an object while it is overwritten waits for ever for pieces that are gone, and a write may be cut off.
 */
export class Snapshots {
  constructor(private readonly bus: Bus) {}

  async put(
    { service, version, loads = [version], bounds = async () => ({ first: 1, last: Infinity }) }: Keeping,
    snapshot: Snapshot,
  ): Promise<void> {
    // Before anything is awaited: the fold goes on changing its state in place.
    const text = JSON.stringify({ service, version, ...snapshot });
    const { sequence } = snapshot;
    const store = await this.store();
    const names = SLOTS.map((slot) => `${service}.v${version}.${slot}`);
    const found = await Promise.all(
      names.map(async (name): Promise<Slot> => ({ name, kept: await keptOf(store, name) })),
    );
    // After the places were looked at: what another copy has just written is in the ledger by now.
    const { first, last } = await bounds();
    // One of what the ledger no longer holds is of no use to anybody.
    const slots = found.map(({ name, kept }): Slot =>
      kept === undefined || kept.sequence > last ? { name } : { name, kept },
    );
    const fact = sequence > 0 ? await this.bus.stored(LEDGER, { seq: sequence }) : null;
    const metadata = { sequence: String(sequence), stored: fact?.timestamp ?? '', loads: loads.join() };
    await store.putBlob({ name: slotForNext(slots, first).name, metadata }, await zip(text, { level: 1 }));
  }

  /** All of a service, of whatever version. */
  async list(service: string): Promise<readonly Kept[]> {
    const store = await this.store();
    const { state } = await this.bus.streamInfo(STREAM, { subjects_filter: `${META}>` });
    const names = Object.keys(state.subjects ?? {}).map((subject) =>
      Buffer.from(subject.slice(META.length), 'base64').toString(),
    );
    const found = await Promise.all(
      names.filter((name) => name.startsWith(`${service}.v`)).map((name) => keptOf(store, name)),
    );
    return found.filter((kept) => kept !== undefined);
  }

  /** The first that can be read of those which `choose` names, in its order; undefined when there is none. */
  async find(service: string, choose: (kept: readonly Kept[]) => readonly Kept[]): Promise<Found | undefined> {
    const refused = new Set<string>();
    for (;;) {
      const kept = choose(await this.list(service)).find((one) => !refused.has(identity(one)));
      if (kept === undefined) return undefined;
      const found = await this.read(kept);
      if (found !== undefined) return found;
      // Another one that has taken its place by now has another name in this sense.
      refused.add(identity(kept));
    }
  }

  /** Undefined when it cannot be read, is another by now, or is of another ledger. */
  async read(kept: Kept): Promise<Found | undefined> {
    if (!(await this.isOfThisLedger(kept))) return undefined;
    const blob = await readWhileSame(await this.store(), kept.name);
    const snapshot = blob === undefined ? undefined : await snapshotOf(blob);
    return snapshot?.sequence === kept.sequence ? { ...snapshot, kept } : undefined;
  }

  /** A ledger that was restored from a backup goes on with other facts: the one that a snapshot ends with has another time then. */
  private async isOfThisLedger({ sequence, stored }: Kept): Promise<boolean> {
    const fact = stored === '' ? null : await this.bus.stored(LEDGER, { seq: sequence });
    return fact === null || fact.timestamp === stored;
  }

  async remove({ name }: Kept): Promise<void> {
    await (await this.store()).delete(name);
  }

  private store(): Promise<ObjectStore> {
    return this.bus.unlessLost(() => new Objm(this.bus.js).open(SNAPSHOTS, false));
  }
}

const identity = ({ name, sequence }: Kept): string => `${name} ${sequence}`;
const NAME = new RegExp(`\\.v(\\d+)\\.[${SLOTS.join('')}]$`);

/** Undefined for an empty place; what somebody else put there counts as none, and is overwritten first. */
async function keptOf(store: ObjectStore, name: string): Promise<Kept | undefined> {
  const version = Number(NAME.exec(name)?.[1] ?? Number.NaN);
  const info = await store
    .info(name)
    .catch((error: unknown) =>
      error instanceof SyntaxError || error instanceof TypeError ? null : Promise.reject(error),
    );
  if (info === null || info.deleted || !Number.isSafeInteger(version)) return undefined;
  const { sequence, stored, storedMs, loads } = metadataOf(info);
  const isOne = Number.isSafeInteger(sequence) && sequence >= 0;
  return isOne
    ? { name, version, sequence, stored, storedMs, loads: loads.length === 0 ? [version] : loads }
    : undefined;
}

/** What cannot be read as a time counts as one that never comes: nothing is trimmed for it. */
function metadataOf({ metadata = {}, mtime }: ObjectInfo): Pick<Kept, 'sequence' | 'stored' | 'storedMs' | 'loads'> {
  const loads = String(metadata['loads'] ?? '')
    .split(',')
    .map(Number)
    .filter((version) => Number.isSafeInteger(version) && version > 0);
  const stored = String(metadata['stored'] ?? '');
  const storedMs = Date.parse(stored === '' ? mtime : stored);
  return {
    sequence: Number(metadata['sequence'] ?? -1),
    stored,
    storedMs: Number.isNaN(storedMs) ? Number.MAX_SAFE_INTEGER : storedMs,
    loads,
  };
}

/** Undefined for bytes that are no snapshot, or only a part of one. */
async function snapshotOf(blob: Uint8Array): Promise<Snapshot | undefined> {
  try {
    const { sequence, state } = JSON.parse((await unzip(blob)).toString()) as Partial<Snapshot>;
    return typeof sequence === 'number' && Number.isSafeInteger(sequence) && state !== undefined
      ? { sequence, state }
      : undefined;
  } catch {
    return undefined;
  }
}

/** The object's bytes; undefined when it was overwritten meanwhile, or is not whole. */
async function readWhileSame(store: ObjectStore, name: string): Promise<Uint8Array | undefined> {
  const before = (await store.info(name))?.nuid;
  const reading = store.getBlob(name).catch(() => null);
  for (let looks = 0; looks < MOST_LOOKS; looks += 1) {
    const blob = await Promise.race([reading, pause(LOOK_MS).then(() => 'reading' as const)]);
    if (blob !== 'reading') return blob ?? undefined;
    if ((await store.info(name))?.nuid !== before) break;
  }
  return undefined;
}
