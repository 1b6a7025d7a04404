import { isConnectionTrouble, type Bus } from '#libs/bus';
import { changeId, CHANGES, changeSequence, desiredSubject } from '#libs/contracts';
import { contentsOf, type Batch, type State } from '../core/index.js';

const SOURCE = 'kubernetes';

/** The stream of changes: read to its end before anything is published, and published to only behind what was read. */
export class PublishedChanges {
  private checkedTo = 0;

  constructor(
    private readonly bus: Bus,
    private readonly state: State,
  ) {}

  /** Reads what the changes say that are named. */
  async read(changes: readonly string[]): Promise<void> {
    for (const change of changes) await this.readOne(change);
  }

  /** Reads what no view shows yet; the last sequence, and whether anything was new. */
  async catchUp(): Promise<{ readonly last: number; readonly isNew: boolean }> {
    const { state } = await this.bus.streamInfo(CHANGES);
    let isNew = false;
    while (this.checkedTo < state.last_seq) {
      const change = changeId(this.checkedTo + 1);
      if (this.state.index.get(change) === undefined) {
        await this.readOne(change);
        isNew = true;
      }
      this.checkedTo += 1;
    }
    return { last: state.last_seq, isNew };
  }

  /** Publishes if nothing was published since; undefined when something was, or when it is not known. */
  async publish({ text, id }: Batch, last: number): Promise<string | undefined> {
    try {
      const ack = await this.bus.publish(desiredSubject(SOURCE), text, {
        msgID: `${SOURCE}:${id}`,
        expect: { lastSequence: last },
      });
      const change = changeId(ack.seq);
      this.state.index.read(change, contentsOf(text, this.state.digest));
      return change;
    } catch (error) {
      // Whether it was stored is seen by reading on.
      if (isOvertaken(error) || isConnectionTrouble(error)) return undefined;
      throw error;
    }
  }

  private async readOne(change: string): Promise<void> {
    const message = await this.bus.stored(CHANGES, { seq: changeSequence(change) });
    this.state.index.read(change, contentsOf(message?.string() ?? '', this.state.digest));
  }
}

const isOvertaken = (error: unknown): boolean => /wrong last sequence/i.test((error as Error).message);
