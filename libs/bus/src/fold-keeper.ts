import { loadableVersions, migrated, newCopy, type Copy, type Core, type Need } from '#libs/kernel';
import { monotonicMs, type Logger } from '#libs/runtime';
import type { Ledger } from './ledger.js';
import type { LedgerReader } from './ledger-reader.js';
import { pause } from './signal.js';
import { byNewest, type Kept } from './snapshot-slots.js';
import type { Found, Snapshots } from './snapshots.js';

export interface FoldKeeperParts<S, I, N extends Need, G> {
  readonly core: Core<S, I, N, G>;
  readonly ledger: Ledger;
  readonly reader: LedgerReader;
  readonly snapshots: Snapshots;
  /** A snapshot after so many facts of the ledger. */
  readonly everyFacts: number;
  /** A snapshot after so long, if facts came since. */
  readonly everyMs: number;
  readonly logger: Logger;
}

const LAST_SNAPSHOT_MS = 2_500;

/** Begins folds, with the newest usable snapshot where there is one, and keeps snapshots of them. */
export class FoldKeeper<S, I, N extends Need, G> {
  private writing: Promise<void> | undefined;
  private writtenMs = monotonicMs();
  /** Sequence of the newest snapshot of this fold. */
  at = 0;

  constructor(private readonly parts: FoldKeeperParts<S, I, N, G>) {}

  /** A copy that has folded a snapshot or nothing, and a reader that goes on behind it. */
  async begin(mayLoad: boolean): Promise<Copy<S, I, N, G>> {
    const { core, ledger, reader } = this.parts;
    const voided = await reader.loadVoided();
    const bounds = await ledger.bounds();
    const copy = newCopy(core);
    const isTrimmed = bounds.first > 1;
    if (mayLoad || isTrimmed) await this.load(copy, bounds, voided);
    reader.stuck =
      isTrimmed && copy.folded < bounds.first - 1
        ? { reason: await this.wayOut(bounds), isFreed: () => this.reaches() }
        : undefined;
    this.at = copy.folded;
    this.writtenMs = monotonicMs();
    reader.start(copy.folded);
    return copy;
  }

  /** From the first snapshot that can be read and loaded. One that another program wrote is passed over. */
  private async load(copy: Copy<S, I, N, G>, bounds: Bounds, voided: ReadonlyMap<number, number>): Promise<void> {
    const { core, snapshots, logger } = this.parts;
    const refused = new Set<string>();
    for (;;) {
      const found = await snapshots.find(core.name, (kept) =>
        candidates(core, kept, bounds, voided).filter(({ name, sequence }) => !refused.has(`${name} ${sequence}`)),
      );
      if (found === undefined || this.loaded(copy, found)) {
        const late = [...voided]
          .filter(([sequence, at]) => holds(copy.folded, sequence, at))
          .map(([sequence]) => sequence);
        if (late.length > 0)
          logger.error(
            { sequences: late },
            'declared void too late: the ledger before was trimmed, and every snapshot holds them: they stay',
          );
        return;
      }
      refused.add(`${found.kept.name} ${found.sequence}`);
    }
  }

  private loaded(copy: Copy<S, I, N, G>, { kept, sequence, state }: Found): boolean {
    const { core, logger } = this.parts;
    try {
      copy.state = core.load(migrated(core, kept.version, state), monotonicMs());
      copy.folded = sequence;
      logger.info({ sequence, version: kept.version }, 'snapshot loaded');
      return true;
    } catch (error) {
      copy.state = core.initial();
      logger.warn({ error, sequence, version: kept.version }, 'the snapshot cannot be loaded');
      return false;
    }
  }

  /** Whether there is a snapshot to start from now. */
  private async reaches(): Promise<boolean> {
    const { core, ledger, snapshots } = this.parts;
    const bounds = await ledger.bounds();
    return (await snapshots.find(core.name, (kept) => candidates(core, kept, bounds, new Map()))) !== undefined;
  }

  /** What a person can do for a copy that can start from nothing that is there. */
  private async wayOut({ first }: Bounds): Promise<string> {
    const { core, snapshots } = this.parts;
    const reaching = (await snapshots.list(core.name)).filter(({ sequence }) => sequence >= first - 1);
    const versions = [...new Set(reaching.map(({ version }) => version))].toSorted((a, b) => a - b);
    const begins = `the ledger begins at ${first}: what lay before was trimmed, and no snapshot of ${core.name} that this release can read reaches up to there`;
    if (versions.length === 0)
      return `${begins}, nor is there one of another release: restore the stream OBJ_snapshots (or the ledger) from a backup`;
    const loads = loadableVersions(core);
    if (versions.every((version) => loads.includes(version)))
      return `${begins} (those there are cannot be read): restore the stream OBJ_snapshots from a backup`;
    return `${begins}. There ${versions.length === 1 ? 'is one' : 'are some'} of fold version ${versions.join(', ')}, and this release folds version ${core.version} (it reads ${loads.join(', ')}): start the release that ran before, or one that can read ${versions.length === 1 ? 'it' : 'them'}`;
  }

  /** Writes a snapshot beside the work if one is due. */
  keep(copy: Copy<S, I, N, G>): void {
    const { everyFacts, everyMs } = this.parts;
    const isDue =
      copy.folded - this.at >= everyFacts || (copy.folded > this.at && monotonicMs() - this.writtenMs >= everyMs);
    if (isDue) this.writing ??= this.write(copy).finally(() => (this.writing = undefined));
  }

  /** Writes the last one, but does not hold up an end for long. */
  async end(copy: Copy<S, I, N, G> | undefined): Promise<void> {
    const last = async (): Promise<void> => {
      await this.writing;
      if (copy !== undefined && copy.folded > this.at) await this.write(copy);
    };
    await Promise.race([last(), pause(LAST_SNAPSHOT_MS)]);
  }

  private async write({ folded, state }: Copy<S, I, N, G>): Promise<void> {
    const { core, ledger, snapshots, logger } = this.parts;
    try {
      this.at = folded;
      this.writtenMs = monotonicMs();
      await snapshots.put(
        { service: core.name, version: core.version, loads: loadableVersions(core), bounds: () => ledger.bounds() },
        { sequence: folded, state: core.dump(state) },
      );
      logger.info({ sequence: folded }, 'snapshot written');
    } catch (error) {
      logger.warn({ error }, 'no snapshot could be written');
    }
  }
}

interface Bounds {
  readonly first: number;
  readonly last: number;
}

/** A snapshot taken after a fact and before that fact was declared void holds it. */
const holds = (folded: number, sequence: number, voidedAt: number): boolean => sequence <= folded && folded < voidedAt;

/**
 * What a copy may start from, best first: its own version before older ones, the newest before others. One that holds what is void only
 * where nothing else reaches behind what was trimmed: what was void for nobody before is then void for nobody at all.
 */
function candidates(
  core: Parameters<typeof loadableVersions>[0],
  kept: readonly Kept[],
  { first, last }: Bounds,
  voided: ReadonlyMap<number, number>,
): readonly Kept[] {
  const loads = loadableVersions(core);
  const fitting = kept.filter(
    ({ version, sequence }) => loads.includes(version) && sequence <= last && sequence >= first - 1,
  );
  const sorted = fitting.toSorted((a, b) => loads.indexOf(a.version) - loads.indexOf(b.version) || byNewest(a, b));
  const tainted = sorted.filter(({ sequence: folded }) =>
    [...voided].some(([sequence, at]) => holds(folded, sequence, at)),
  );
  const clean = sorted.filter((one) => !tainted.includes(one));
  return first > 1 ? [...clean, ...tainted] : clean;
}
