import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import { Objm, type ObjectInfo, type ObjectStore } from '@nats-io/obj';
import { LEDGER, SNAPSHOTS } from '#libs/contracts';
import {
  readSnapshot,
  SLOTS,
  type Handlers,
  type Slot,
  type SnapshotInfo,
  type SnapshotPort,
  type SnapshotWritePort,
} from '#libs/engine';
import type { Bus } from './connection.js';
import { pause } from './signal.js';

const zip = promisify(gzip);
const unzip = promisify(gunzip);
/** How often a long read checks that its object was not replaced. */
const LOOK_MS = 1_000;
/** An object that is not read by then has lost a chunk. */
const MOST_LOOKS = 60;
const STREAM = `OBJ_${SNAPSHOTS}`;
const META = `$O.${SNAPSHOTS}.M.`;

/**
 * Snapshots of folds, so that a start need not read the whole ledger. There are several slots for each version, because
 * a reader of an object that is overwritten waits forever, and a write may be interrupted.
 */
export class Snapshots {
  constructor(private readonly bus: Bus) {}

  /** For code that starts from snapshots, writes them, or trims the ledger up to them. */
  get handlers(): Handlers<SnapshotPort & Omit<SnapshotWritePort, 'bounds'>> {
    return {
      'list-snapshots': ({ service }) => this.list(service),
      'read-snapshot': ({ snapshot }) => this.read(snapshot),
      'list-slots': async ({ names }) => {
        const store = await this.store();
        return Promise.all(names.map(async (name): Promise<Slot> => ({ name, snapshot: await infoOf(store, name) })));
      },
      'write-snapshot': ({ name, sequence, loads, text }) => this.write(name, sequence, loads, text),
    };
  }

  /** All snapshots of a service, of any version. */
  async list(service: string): Promise<readonly SnapshotInfo[]> {
    const store = await this.store();
    const { state } = await this.bus.streamInfo(STREAM, { subjects_filter: `${META}>` });
    const names = Object.keys(state.subjects ?? {}).map((subject) =>
      Buffer.from(subject.slice(META.length), 'base64').toString(),
    );
    const found = await Promise.all(
      names.filter((name) => name.startsWith(`${service}.v`)).map((name) => infoOf(store, name)),
    );
    return found.filter((info) => info !== undefined);
  }

  /** Undefined if it cannot be read, or belongs to another ledger. Another one if it was replaced. */
  async read(info: SnapshotInfo): Promise<{ readonly sequence: number; readonly state: unknown } | undefined> {
    if (!(await this.isOfThisLedger(info))) return undefined;
    const blob = await readWhileSame(await this.store(), info.name);
    return blob === undefined ? undefined : unpacked(blob);
  }

  private async write(name: string, sequence: number, loads: readonly number[], text: string): Promise<void> {
    const store = await this.store();
    const fact = sequence > 0 ? await this.bus.stored(LEDGER, { seq: sequence }) : null;
    const metadata = { sequence: String(sequence), stored: fact?.timestamp ?? '', loads: loads.join() };
    await store.putBlob({ name, metadata }, await zip(text, { level: 1 }));
  }

  /** In a ledger that was restored from a backup, the last fact of a snapshot has another time. */
  private async isOfThisLedger({ sequence, stored }: SnapshotInfo): Promise<boolean> {
    const fact = stored === undefined ? null : await this.bus.stored(LEDGER, { seq: sequence });
    return fact === null || fact.timestamp === stored;
  }

  async remove({ name }: SnapshotInfo): Promise<void> {
    await (await this.store()).delete(name);
  }

  private store(): Promise<ObjectStore> {
    return this.bus.unlessLost(() => new Objm(this.bus.js).open(SNAPSHOTS, false));
  }
}

const NAME = new RegExp(`\\.v(\\d+)\\.[${SLOTS.join('')}]$`);

/** Undefined for an empty slot. A foreign object counts as empty, and is overwritten first. */
async function infoOf(store: ObjectStore, name: string): Promise<SnapshotInfo | undefined> {
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

/** An unreadable time counts as infinitely late, so that nothing is trimmed because of it. */
function metadataOf({
  metadata = {},
  mtime,
}: ObjectInfo): Pick<SnapshotInfo, 'sequence' | 'stored' | 'storedMs' | 'loads'> {
  const loads = String(metadata['loads'] ?? '')
    .split(',')
    .map(Number)
    .filter((version) => Number.isSafeInteger(version) && version > 0);
  const stored = String(metadata['stored'] ?? '') || undefined;
  const storedMs = Date.parse(stored ?? mtime);
  return {
    sequence: Number(metadata['sequence'] ?? -1),
    stored,
    storedMs: Number.isNaN(storedMs) ? Number.MAX_SAFE_INTEGER : storedMs,
    loads,
  };
}

/** Undefined for bytes that are not a whole snapshot. */
async function unpacked(blob: Uint8Array): Promise<ReturnType<typeof readSnapshot>> {
  try {
    return readSnapshot((await unzip(blob)).toString());
  } catch {
    return undefined;
  }
}

/** The bytes of the object; undefined if it was overwritten meanwhile, or is incomplete. */
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
