import { isConnectionTrouble, type Bus } from '#libs/nats';
import { changeId, CHANGES, changeSequence, desiredSubject } from '#libs/contracts';
import type { Batch } from '../core/index.js';

const SOURCE = 'kubernetes';

/** The stream of changes. */
export class PublishedChanges {
  constructor(private readonly bus: Bus) {}

  /** The texts of changes, as they were published. */
  async read(changes: readonly string[]): Promise<readonly string[]> {
    const texts: string[] = [];
    for (const change of changes)
      texts.push((await this.bus.stored(CHANGES, { seq: changeSequence(change) }))?.string() ?? '');
    return texts;
  }

  /** The sequence of the newest. */
  async last(): Promise<number> {
    return (await this.bus.streamInfo(CHANGES)).state.last_seq;
  }

  /** Publishes if nothing was published since; undefined when something was, or when it is not known. */
  async publish({ text, id }: Batch, after: number): Promise<string | undefined> {
    try {
      const ack = await this.bus.publish(desiredSubject(SOURCE), text, {
        msgID: `${SOURCE}:${id}`,
        expect: { lastSequence: after },
      });
      return changeId(ack.seq);
    } catch (error) {
      // Whether it was stored is seen by reading on.
      if (isOvertaken(error) || isConnectionTrouble(error)) return undefined;
      throw error;
    }
  }
}

const isOvertaken = (error: unknown): boolean => /wrong last sequence/i.test((error as Error).message);
