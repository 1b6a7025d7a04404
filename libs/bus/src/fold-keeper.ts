import { newCopy, type Copy, type Core, type Need } from '#libs/kernel';
import { monotonicMs, type Logger } from '#libs/runtime';
import type { Ledger } from './ledger.js';
import type { LedgerReader } from './ledger-reader.js';
import { pause } from './signal.js';
import type { Snapshot, Snapshots } from './snapshots.js';

export interface FoldKeeperParts<S, I, N extends Need, G> {
  readonly core: Core<S, I, N, G>;
  readonly ledger: Ledger;
  readonly reader: LedgerReader;
  readonly snapshots: Snapshots;
  /** A snapshot after so many facts of the ledger. */
  readonly everyFacts: number;
  readonly logger: Logger;
}

const LAST_SNAPSHOT_MS = 2_500;

/** Begins folds, with the newest usable snapshot where there is one, and keeps snapshots of them. */
export class FoldKeeper<S, I, N extends Need, G> {
  private writing: Promise<void> | undefined;
  /** Sequence of the newest snapshot of this fold. */
  at = 0;

  constructor(private readonly parts: FoldKeeperParts<S, I, N, G>) {}

  /** A copy that has folded a snapshot or nothing, and a reader that goes on behind it. */
  async begin(mayLoad: boolean): Promise<Copy<S, I, N, G>> {
    const { core, ledger, reader, snapshots } = this.parts;
    const voided = await reader.loadVoided();
    const { first, last } = await ledger.bounds();
    const copy = newCopy(core);
    const stored = mayLoad || first > 1 ? await snapshots.get(core.name, core.version) : undefined;
    // One taken after a fact and before that fact was declared void holds it.
    const holdsVoided = [...voided].some(([sequence, at]) => stored !== undefined && sequence <= stored.sequence && stored.sequence < at);
    if (stored !== undefined && stored.sequence <= last && !holdsVoided) this.load(copy, stored);
    this.at = copy.folded;
    await reader.start(copy.folded);
    return copy;
  }

  /** One that another program wrote is passed over: the ledger has all that it could say. */
  private load(copy: Copy<S, I, N, G>, { sequence, state }: Snapshot): void {
    const { core, logger } = this.parts;
    try {
      copy.state = core.load(state, monotonicMs());
      copy.folded = sequence;
      logger.info({ sequence }, 'snapshot loaded');
    } catch (error) {
      copy.state = core.initial();
      logger.warn({ error, sequence }, 'the snapshot cannot be loaded: the fold begins anew');
    }
  }

  /** Writes a snapshot beside the work if one is due. */
  keep(copy: Copy<S, I, N, G>): void {
    if (copy.folded - this.at >= this.parts.everyFacts) this.writing ??= this.write(copy).finally(() => (this.writing = undefined));
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
    const { core, snapshots, logger } = this.parts;
    try {
      this.at = folded;
      await snapshots.put(core.name, core.version, { sequence: folded, state: core.dump(state) });
      logger.info({ sequence: folded }, 'snapshot written');
    } catch (error) {
      logger.warn({ error }, 'no snapshot could be written');
    }
  }
}
