import type { ServiceName } from '#libs/contracts';
import type { Core, Need } from './core.js';
import { newCopy, type Copy } from './cycle.js';
import type {
  Bounds,
  ClockPort,
  LedgerPort,
  LogPort,
  NewSnapshot,
  SnapshotPort,
  SnapshotWritePort,
  TrimPort,
} from './ports.js';
import {
  baseOf,
  byNewest,
  loadableVersions,
  migrated,
  SLOTS,
  slotForNext,
  usable,
  type Slot,
  type SnapshotInfo,
} from './snapshots.js';
import { asker, PAUSE, type Effects, type Program, type Steps } from './steps.js';

type StartPort = Pick<LedgerPort, 'bounds' | 'read-voided' | 'follow'> &
  Pick<ClockPort, 'now'> &
  SnapshotPort &
  LogPort;
type Versions = Pick<Core<unknown, never, Need, unknown>, 'version' | 'migrations'>;

/** A fold that continues to read the ledger; or the news that there is nothing to start from. */
export type FoldStart<S, I, N extends Need, G> =
  | { readonly copy: Copy<S, I, N, G> }
  | { readonly trimmedTo: number; readonly snapshots: readonly SnapshotInfo[] };

/** Starts a fold from the newest usable snapshot if that is allowed or necessary, otherwise from the ledger alone. */
export function* startFold<S, I, N extends Need, G>(
  core: Core<S, I, N, G>,
  mayLoad: boolean,
): Program<Effects<StartPort>, FoldStart<S, I, N, G>> {
  const ask = asker<StartPort>();
  const voided = yield* ask({ do: 'read-voided' });
  let bounds = yield* ask({ do: 'bounds' });
  const copy = newCopy(core);
  if (mayLoad || bounds.first > 1) {
    const refused = new Set<string>();
    for (;;) {
      const snapshots = yield* ask({ do: 'list-snapshots', service: core.name });
      // Read again after the list, which may have taken long: the ledger includes what these are snapshots of.
      bounds = yield* ask({ do: 'bounds' });
      const snapshot = candidates(core, snapshots, bounds, voided).find((one) => !refused.has(identity(one)));
      if (snapshot === undefined) break;
      // A snapshot that has replaced this one has another identity.
      refused.add(identity(snapshot));
      const content = yield* ask({ do: 'read-snapshot', snapshot });
      // A newer snapshot may have replaced it since it was listed. Its facts must not be folded twice.
      if (content === undefined || content.sequence !== snapshot.sequence) continue;
      const { sequence, version } = snapshot;
      const { monotonicMs } = yield* ask({ do: 'now' });
      const error = load(copy, snapshot, content.state, monotonicMs);
      if (error === undefined) {
        yield* ask({ do: 'log', level: 'info', text: 'snapshot loaded', details: { sequence, version } });
        break;
      }
      const details = { error, sequence, version };
      yield* ask({ do: 'log', level: 'warn', text: 'the snapshot cannot be loaded', details });
    }
    if (bounds.first > 1 && copy.folded < bounds.first - 1)
      return {
        trimmedTo: bounds.first,
        snapshots: (yield* ask({ do: 'list-snapshots', service: core.name })).filter(
          ({ sequence }) => sequence >= bounds.first - 1,
        ),
      };
    const sequences = [...voided].filter(([sequence, at]) => holds(copy.folded, sequence, at)).map(([first]) => first);
    if (sequences.length > 0) {
      const text =
        'facts were voided too late: the ledger is trimmed and every snapshot includes them, so they stay in effect';
      yield* ask({ do: 'log', level: 'error', text, details: { sequences } });
    }
  }
  yield* ask({ do: 'follow', after: copy.folded });
  return { copy };
}

/** Loads a snapshot. Returns the error if another program wrote it, so that the caller tries the next one. */
function load<S, I, N extends Need, G>(
  copy: Copy<S, I, N, G>,
  { sequence, version }: SnapshotInfo,
  state: unknown,
  readMs: number,
): unknown {
  try {
    copy.state = copy.core.load(migrated(copy.core, version, state), readMs);
    copy.folded = sequence;
    return undefined;
  } catch (error) {
    copy.state = copy.core.initial();
    return error;
  }
}

const identity = ({ name, sequence }: SnapshotInfo): string => `${name} ${sequence}`;

/** A snapshot includes a voided fact if it was taken after the fact and before it was voided. */
const holds = (folded: number, sequence: number, voidedAt: number): boolean => sequence <= folded && folded < voidedAt;

/**
 * The snapshots that a copy may start from, best first: its own version before older ones, then newest first.
 * Snapshots that include a voided fact are used only if the ledger is trimmed and no other snapshot is left.
 */
export function candidates(
  core: Versions,
  snapshots: readonly SnapshotInfo[],
  { first, last }: Bounds,
  voided: ReadonlyMap<number, number> = new Map(),
): readonly SnapshotInfo[] {
  const loads = loadableVersions(core);
  const sorted = snapshots
    .filter(({ version, sequence }) => loads.includes(version) && sequence <= last && sequence >= first - 1)
    .toSorted((a, b) => loads.indexOf(a.version) - loads.indexOf(b.version) || byNewest(a, b));
  const holdsVoided = ({ sequence: folded }: SnapshotInfo): boolean =>
    [...voided].some(([sequence, at]) => holds(folded, sequence, at));
  const clean = sorted.filter((one) => !holdsVoided(one));
  return first > 1 ? [...clean, ...sorted.filter(holdsVoided)] : clean;
}

/** The message for a copy that cannot start from any snapshot: what is missing, and what a person can do. */
export function cannotStart(
  core: Versions & { readonly name: string },
  first: number,
  snapshots: readonly SnapshotInfo[],
): string {
  const versions = [...new Set(snapshots.map(({ version }) => version))].toSorted((a, b) => a - b);
  const begins = `the ledger starts at sequence ${first}: earlier facts were trimmed, and this release can read no snapshot of ${core.name} that covers them`;
  if (versions.length === 0)
    return `${begins}. Snapshots of other releases do not exist either: restore the stream OBJ_snapshots (or the ledger) from a backup`;
  const loads = loadableVersions(core);
  if (versions.every((version) => loads.includes(version)))
    return `${begins}. The existing ones are damaged: restore the stream OBJ_snapshots from a backup`;
  return `${begins}. The existing ones have fold version ${versions.join(', ')}, but this release has version ${core.version} and reads ${loads.join(', ')}: start the previous release, or one that can read them`;
}

/**
 * Makes a snapshot of the fold as it is when this starts: the values in a dump never change, even if more facts are
 * folded meanwhile. Pauses after each row of a table.
 */
export function* snapshotOf<S, I, N extends Need, G>({ core, state, folded }: Copy<S, I, N, G>): Steps<NewSnapshot> {
  const { name: service, version } = core;
  const head = JSON.stringify({ service, version, sequence: folded }).slice(0, -1);
  const text = `${head},"state":${yield* jsonOf(core.dump(state), 2)}}`;
  return { service, version, loads: loadableVersions(core), sequence: folded, text };
}

/** The same text as JSON.stringify. Pauses after each item of the upper `levels`. */
function* jsonOf(value: unknown, levels: number): Steps<string> {
  if (levels === 0 || typeof value !== 'object' || value === null) {
    yield PAUSE;
    return JSON.stringify(value) ?? 'null';
  }
  const parts: string[] = [];
  if (Array.isArray(value)) {
    for (const item of value) parts.push(yield* jsonOf(item, levels - 1));
    return `[${parts.join()}]`;
  }
  for (const [key, item] of Object.entries(value))
    if (item !== undefined) parts.push(`${JSON.stringify(key)}:${yield* jsonOf(item, levels - 1)}`);
  return `{${parts.join()}}`;
}

/** Parses a text of `snapshotOf`; undefined if it is not one. */
export function readSnapshot(text: string): { readonly sequence: number; readonly state: unknown } | undefined {
  const { sequence, state } = JSON.parse(text) as { readonly sequence?: unknown; readonly state?: unknown };
  return typeof sequence === 'number' && Number.isSafeInteger(sequence) && state !== undefined
    ? { sequence, state }
    : undefined;
}

/** Writes a snapshot to the place where an interrupted write does the least harm. */
export function* keepSnapshot({
  service,
  version,
  loads,
  sequence,
  text,
}: NewSnapshot): Program<Effects<SnapshotWritePort>> {
  const ask = asker<SnapshotWritePort>();
  const slots = yield* ask({ do: 'list-slots', names: SLOTS.map((slot) => `${service}.v${version}.${slot}`) });
  // Read this after the places, so that the ledger includes what another copy has just written a snapshot of.
  const { first, last } = yield* ask({ do: 'bounds' });
  // A snapshot that ends before the start of the ledger is useless.
  const ofUse = slots.map((slot): Slot => ((slot.snapshot?.sequence ?? 0) > last ? { name: slot.name } : slot));
  yield* ask({ do: 'write-snapshot', name: slotForNext(ofUse, first).name, sequence, loads, text });
}

const askTrim = asker<TrimPort>();

/** A service whose snapshots prevent the ledger from being trimmed further. */
export interface TrimObstacle {
  readonly service: ServiceName;
  readonly why: string;
}

export interface TrimResult {
  /** How many facts were deleted. */
  readonly trimmed: number;
  /** The first sequence of the ledger now. */
  readonly first: number;
  readonly blockedBy: readonly TrimObstacle[];
}

/**
 * Deletes facts that are older than `keepMs` and covered by a snapshot of every service. The last fact always stays.
 * Several copies may do this at once, or late: facts that may be deleted once may be deleted forever.
 */
export function* trim(services: readonly ServiceName[], keepMs: number): Program<Effects<TrimPort>, TrimResult> {
  const { first, last, messages, firstStoredMs, nowMs } = yield* askTrim({ do: 'ledger-age' });
  const olderThanMs = nowMs - keepMs;
  const nothing = (blockedBy: readonly TrimObstacle[] = []): TrimResult => ({ trimmed: 0, first, blockedBy });
  if (messages === 0 || firstStoredMs > olderThanMs) return nothing();
  const bases: { service: ServiceName; all: readonly SnapshotInfo[]; base: readonly SnapshotInfo[] }[] = [];
  const blockedBy: TrimObstacle[] = [];
  for (const service of services) {
    const snapshots = yield* askTrim({ do: 'list-snapshots', service });
    const all = snapshots.filter(({ sequence }) => sequence <= last);
    const base = baseOf(all, olderThanMs);
    if ('why' in base) blockedBy.push({ service, why: base.why });
    else bases.push({ service, all, base: base.base });
  }
  if (blockedBy.length > 0) {
    yield* askTrim({ do: 'log', level: 'info', text: 'the ledger is not trimmed', details: { first, blockedBy } });
    return nothing(blockedBy);
  }
  // Reading snapshots is expensive: do it only if something can be trimmed.
  if (Math.min(...bases.map(({ base }) => (base[0] as SnapshotInfo).sequence)) < first) return nothing();
  let upTo = last - 1;
  for (const { service, base } of bases) {
    const readable = yield* newestReadable(base);
    if (readable === undefined) blockedBy.push({ service, why: 'has no readable snapshot that is old enough' });
    upTo = Math.min(upTo, readable?.sequence ?? 0);
  }
  if (upTo < first) return nothing(blockedBy);
  // Do not rely on the age that a snapshot claims: ask for the age of the fact itself.
  const storedMs = yield* askTrim({ do: 'stored-at', sequence: upTo });
  if (storedMs === undefined || storedMs > olderThanMs) return nothing(blockedBy);
  const trimmed = yield* askTrim({ do: 'purge', upTo });
  yield* askTrim({ do: 'log', level: 'info', text: 'the ledger was trimmed', details: { trimmed, first: upTo + 1 } });
  // No copy can start from these any more. Those of the current version are overwritten anyway.
  for (const { all } of bases) {
    const current = usable(all)[0]?.version;
    for (const snapshot of all)
      if (snapshot.sequence < upTo && snapshot.version !== current) yield* askTrim({ do: 'remove-snapshot', snapshot });
  }
  return { trimmed, first: upTo + 1, blockedBy: [] };
}

function* newestReadable(base: readonly SnapshotInfo[]): Program<Effects<TrimPort>, SnapshotInfo | undefined> {
  for (const snapshot of base) {
    const content = yield* askTrim({ do: 'read-snapshot', snapshot });
    if (content?.sequence === snapshot.sequence) return snapshot;
  }
  return undefined;
}
