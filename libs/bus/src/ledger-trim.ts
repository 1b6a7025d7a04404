import { LEDGER, SERVICES, type ServiceName } from '#libs/contracts';
import type { Logger } from '#libs/runtime';
import type { Bus } from './connection.js';
import { baseOf, usable, type Kept } from './snapshot-slots.js';
import { Snapshots } from './snapshots.js';

export interface TrimOptions {
  readonly bus: Bus;
  /** For how long every fact is kept. */
  readonly keepMs: number;
  /** All that fold the ledger. */
  readonly services?: readonly ServiceName[];
  readonly logger: Logger;
}

/** A service whose snapshots do not let the ledger be trimmed as far as it might be. */
export interface HeldUp {
  readonly service: ServiceName;
  readonly why: string;
}

export interface Trimming {
  /** How many facts were taken off. */
  readonly trimmed: number;
  /** Where the ledger begins now. */
  readonly first: number;
  readonly heldUpBy: readonly HeldUp[];
}

/**
 * Takes off the ledger what is older than `keepMs` and behind a snapshot of every service; the last fact always stays. May be asked by several at once,
 * and late: what a snapshot lets be trimmed once, it does for ever. Ages are the server's, for clocks differ.
 */
export async function trimLedger(options: TrimOptions): Promise<Trimming> {
  const { bus, keepMs, logger, services = SERVICES } = options;
  const { state, ts } = await bus.streamInfo(LEDGER);
  const { first_seq: first, last_seq: last } = state;
  const olderThanMs = Date.parse(ts ?? '') - keepMs;
  const nothing = (heldUpBy: readonly HeldUp[] = []): Trimming => ({ trimmed: 0, first, heldUpBy });
  if (state.messages === 0 || Date.parse(state.first_ts) > olderThanMs) return nothing();
  const snapshots = new Snapshots(bus);
  const found = await Promise.all(services.map((service) => basesOf(snapshots, service, last, olderThanMs)));
  const heldUpBy = found.flatMap((one) => ('why' in one ? [{ service: one.service, why: one.why }] : []));
  if (heldUpBy.length > 0) {
    logger.info({ first, heldUpBy }, 'the ledger is not trimmed');
    return nothing(heldUpBy);
  }
  const bases = found.flatMap((one) => ('base' in one ? [one] : []));
  // Only what can be trimmed is worth reading a snapshot of each service for.
  if (Math.min(...bases.map(({ base }) => (base[0] as Kept).sequence)) < first) return nothing();
  const readable = await Promise.all(
    bases.map(async ({ service, base }) => ({ service, sequence: await newestReadable(snapshots, base) })),
  );
  const unreadable = readable
    .filter(({ sequence }) => sequence === 0)
    .map(({ service }) => ({ service, why: 'has no snapshot of that age that can be read' }));
  const upTo = Math.min(last - 1, ...readable.map(({ sequence }) => sequence));
  if (upTo < first || !(await isOlder(bus, upTo, olderThanMs))) return nothing(unreadable);
  const { purged } = await bus.unlessLost(() => bus.jsm.streams.purge(LEDGER, { seq: upTo + 1 }));
  logger.info({ trimmed: purged, first: upTo + 1 }, 'the ledger was trimmed');
  await Promise.all(bases.map(({ all }) => removeUseless(snapshots, all, upTo)));
  return { trimmed: purged, first: upTo + 1, heldUpBy: [] };
}

type Bases = HeldUp | { readonly service: ServiceName; readonly all: readonly Kept[]; readonly base: readonly Kept[] };

async function basesOf(snapshots: Snapshots, service: ServiceName, last: number, olderThanMs: number): Promise<Bases> {
  const all = (await snapshots.list(service)).filter(({ sequence }) => sequence <= last);
  return { service, all, ...baseOf(all, olderThanMs) };
}

/** Its sequence; 0 when none of them can be read. */
async function newestReadable(snapshots: Snapshots, base: readonly Kept[]): Promise<number> {
  for (const kept of base) if ((await snapshots.read(kept)) !== undefined) return kept.sequence;
  return 0;
}

/** What a snapshot says of its age is only said: the fact itself knows. */
async function isOlder(bus: Bus, sequence: number, olderThanMs: number): Promise<boolean> {
  const fact = await bus.stored(LEDGER, { seq: sequence });
  return fact !== null && fact.time.getTime() <= olderThanMs;
}

/** Nobody can start from those any more; the places of the present version are written over anyway. */
async function removeUseless(snapshots: Snapshots, all: readonly Kept[], upTo: number): Promise<void> {
  const current = usable(all)[0]?.version;
  for (const kept of all) if (kept.sequence < upTo && kept.version !== current) await snapshots.remove(kept);
}
