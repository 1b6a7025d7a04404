import { wallTime, type Logger } from '#libs/process';
import { WireError } from '#libs/contracts';
import type { Answer } from '#libs/engine';
import type { Bus } from './connection.js';
import type { BusMessage } from './messages.js';
import { kvSubject, POISON } from './topology.js';

/** An input that could not be used, as it is stored for a person. */
export interface PoisonRecord {
  readonly stream: string;
  readonly sequence: number;
  readonly subject: string;
  readonly reason: string;
  readonly at: string;
}

/** An error may quote what it refuses, which may be as large as a message. */
const MOST_REASON = 1_000;

/** Sets aside what cannot be read or is refused, so that nothing loops and nothing is silently lost. */
export class Poison {
  constructor(
    private readonly bus: Bus,
    private readonly logger: Logger,
  ) {}

  /** Decodes each message. Those that `decode` refuses with a WireError are set aside and left out. */
  async decoded<T>(stream: string, messages: readonly BusMessage[], decode: (message: BusMessage) => T): Promise<T[]> {
    const good: T[] = [];
    for (const message of messages) {
      try {
        good.push(decode(message));
      } catch (error) {
        if (!(error instanceof WireError)) throw error;
        await this.setAside(stream, message, error.message);
      }
    }
    return good;
  }

  /** Sets aside the messages that were refused; `answers` are in the order of the messages. */
  async refused(
    stream: string,
    messages: readonly BusMessage[],
    answers: readonly (Answer | undefined)[],
  ): Promise<void> {
    for (const [i, message] of messages.entries()) {
      const answer = answers[i];
      if (answer?.ok === false) await this.setAside(stream, message, answer.message);
    }
  }

  async setAside(stream: string, message: BusMessage, reason: string): Promise<void> {
    const { sequence, subject } = message;
    this.logger.warn(
      { stream, sequence, subject, reason: reason.slice(0, MOST_REASON) },
      'set aside: it cannot be used',
    );
    const value: PoisonRecord = { stream, sequence, subject, reason: reason.slice(0, MOST_REASON), at: wallTime() };
    // Core NATS has no sequence, so the newest message of each subject is kept.
    const key =
      sequence > 0 ? `${stream}.${sequence}` : `${stream}.${subject.replaceAll(/[^-\w]/g, '_').slice(0, 200)}`;
    await this.bus.publish(kvSubject(POISON, key), JSON.stringify(value));
  }
}
