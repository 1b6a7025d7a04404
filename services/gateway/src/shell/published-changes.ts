import { manifestOf } from '#libs/manifests';
import { acceptedChange, isConnectionTrouble, publishChange, type Bus } from '#libs/nats';
import { CHANGES, changeSequence } from '#libs/contracts';
import type { Batch } from '../core/index.js';

const SOURCE = 'kubernetes';

/** The stream of changes. */
export class PublishedChanges {
  constructor(private readonly bus: Bus) {}

  /**
   * The texts of changes, as they were published. Of a change that was accepted, its content in the ledger: a rollback
   * is published without.
   */
  async read(changes: readonly string[]): Promise<readonly string[]> {
    const texts: string[] = [];
    for (const change of changes) texts.push((await this.accepted(change)) ?? (await this.published(change)));
    return texts;
  }

  private async accepted(change: string): Promise<string | undefined> {
    const fact = await acceptedChange(this.bus, change);
    return fact && JSON.stringify({ apply: fact.apply.map(manifestOf), delete: fact.delete });
  }

  private async published(change: string): Promise<string> {
    return (await this.bus.stored(CHANGES, { seq: changeSequence(change) }))?.string() ?? '';
  }

  /** The sequence of the newest. */
  async last(): Promise<number> {
    return (await this.bus.streamInfo(CHANGES)).state.last_seq;
  }

  /** Publishes if nothing was published since. Returns undefined if something was, or if it is unknown. */
  async publish({ text, id }: Batch, after: number): Promise<string | undefined> {
    try {
      return await publishChange(this.bus, { source: SOURCE, text, id, after });
    } catch (error) {
      // Reading on shows whether it was stored.
      if (isOvertaken(error) || isConnectionTrouble(error)) return undefined;
      throw error;
    }
  }
}

const isOvertaken = (error: unknown): boolean => /wrong last sequence/i.test((error as Error).message);
