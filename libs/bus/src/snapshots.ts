import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import { Objm, type ObjectStore } from '@nats-io/obj';
import { SNAPSHOTS } from '#libs/contracts';
import type { Bus } from './connection.js';
import { pause } from './signal.js';

/** A fold as it was at one sequence of the ledger. */
export interface Snapshot {
  readonly sequence: number;
  readonly state: unknown;
}

interface Slot {
  readonly name: string;
  /** -1 for an empty one. */
  readonly sequence: number;
}

const zip = promisify(gzip);
const unzip = promisify(gunzip);
/** How often a reading that goes on looks whether its object is still the same. */
const LOOK_MS = 1_000;
const TRIES = 5;

/**
 * The folds of services, kept so that a start need not read the whole ledger. Two of each version stand, written in turn:
 * who reads an object while it is overwritten waits for ever for pieces that are gone, and a write may be cut off.
 */
export class Snapshots {
  constructor(private readonly bus: Bus) {}

  async put(service: string, version: number, snapshot: Snapshot): Promise<void> {
    // Before anything is awaited: the fold goes on changing its state in place.
    const text = JSON.stringify({ service, version, ...snapshot });
    const store = await this.store();
    const slot = (await slotsOf(store, service, version)).at(-1) as Slot;
    await store.putBlob({ name: slot.name, metadata: { sequence: String(snapshot.sequence) } }, await zip(text, { level: 1 }));
  }

  /** The newest that can be read; undefined when there is none. */
  async get(service: string, version: number): Promise<Snapshot | undefined> {
    const store = await this.store();
    const refused = new Set<string>();
    for (let tries = 0; tries < TRIES; tries += 1) {
      const newest = (await slotsOf(store, service, version)).find(({ name }) => !refused.has(name));
      if (newest === undefined || newest.sequence < 0) return undefined;
      const blob = await readWhileSame(store, newest.name);
      if (blob === undefined) continue;
      const snapshot = await snapshotOf(blob);
      if (snapshot !== undefined) return snapshot;
      refused.add(newest.name);
    }
    return undefined;
  }

  private store(): Promise<ObjectStore> {
    return this.bus.unlessLost(() => new Objm(this.bus.js).open(SNAPSHOTS, false));
  }
}

/** Undefined for bytes that are no snapshot, or only a part of one. */
async function snapshotOf(blob: Uint8Array): Promise<Snapshot | undefined> {
  try {
    const { sequence, state } = JSON.parse((await unzip(blob)).toString()) as Partial<Snapshot>;
    return typeof sequence === 'number' && Number.isSafeInteger(sequence) && state !== undefined ? { sequence, state } : undefined;
  } catch {
    return undefined;
  }
}

/** The object's bytes; undefined when it was overwritten meanwhile. */
async function readWhileSame(store: ObjectStore, name: string): Promise<Uint8Array | undefined> {
  const before = (await store.info(name))?.nuid;
  const reading = store.getBlob(name).catch(() => null);
  for (;;) {
    const blob = await Promise.race([reading, pause(LOOK_MS).then(() => 'reading' as const)]);
    if (blob !== 'reading') return blob ?? undefined;
    if ((await store.info(name))?.nuid !== before) return undefined;
  }
}

/** Newest first. */
async function slotsOf(store: ObjectStore, service: string, version: number): Promise<readonly Slot[]> {
  const slots = await Promise.all(
    ['a', 'b'].map(async (slot) => {
      const name = `${service}.v${version}.${slot}`;
      // What somebody else put there counts as none, and is overwritten first.
      const info = await store.info(name).catch((error: unknown) => (error instanceof SyntaxError || error instanceof TypeError ? null : Promise.reject(error)));
      const sequence = Number(info?.metadata?.['sequence'] ?? -1);
      return { name, sequence: Number.isSafeInteger(sequence) ? sequence : -1 };
    }),
  );
  return slots.sort((a, b) => b.sequence - a.sequence);
}
