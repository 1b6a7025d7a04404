import { JetStreamApiError } from '@nats-io/jetstream';
import { JOURNALS, nodeToken } from '#libs/contracts';
import type { Bus } from './connection.js';
import { REFUSALS } from './errors.js';
import { isStoredDeletion } from './messages.js';
import { kvStream, kvSubject } from './topology.js';

/** A value, and what a write that replaces it must name. */
export interface StoredJournal {
  readonly text: string;
  readonly revision: number;
}

/** Somebody else has written since the revision that a write named. */
export class OvertakenError extends Error {
  override readonly name = 'OvertakenError';
}

/** There was no connection, so nothing was sent: the write certainly did not happen. */
export class NotSentError extends Error {
  override readonly name = 'NotSentError';
}

/** The bucket of journals: one value per node, written by compare-and-set. */
export class Journals {
  constructor(private readonly bus: Bus) {}

  /** As the stream's leader has it; undefined if there is none. */
  async read(node: string): Promise<StoredJournal | undefined> {
    const message = await this.bus.stored(kvStream(JOURNALS), { last_by_subj: subjectOf(node) });
    if (message === null) return undefined;
    return { text: isStoredDeletion(message) ? '' : message.string(), revision: message.seq };
  }

  /**
   * Returns the new revision. `revision`: that of the value to replace; 0 if there is none. Throws OvertakenError, or
   * NotSentError. After any other error it is not known whether the value was written.
   */
  async write(node: string, text: string, revision: number): Promise<number> {
    if (!this.bus.connected) throw new NotSentError('there is no connection to NATS');
    try {
      const ack = await this.bus.publish(subjectOf(node), text, { expect: { lastSubjectSequence: revision } });
      return ack.seq;
    } catch (error) {
      if (error instanceof JetStreamApiError && REFUSALS.has(error.code))
        throw new OvertakenError(`the journal of ${node} is no longer at revision ${revision}`, { cause: error });
      throw error;
    }
  }

  /** A config that is kept with the journal of a node. */
  async readConfig(node: string, hash: string): Promise<string | undefined> {
    const message = await this.bus.stored(kvStream(JOURNALS), { last_by_subj: configSubject(node, hash) });
    return message === null || isStoredDeletion(message) ? undefined : message.string();
  }

  async writeConfig(node: string, hash: string, text: string): Promise<void> {
    await this.bus.publish(configSubject(node, hash), text);
  }

  /** Deletes all configs of the node but these. */
  async tidyConfigs(node: string, kept: readonly string[]): Promise<void> {
    const { state } = await this.bus.streamInfo(kvStream(JOURNALS), { subjects_filter: configSubject(node, '*') });
    const used = new Set(kept.map((hash) => configSubject(node, hash)));
    for (const filter of Object.keys(state.subjects ?? {}))
      if (!used.has(filter)) await this.bus.jsm.streams.purge(kvStream(JOURNALS), { filter });
  }

  /** Deletes the journal and the configs of a node that has left for good. */
  async remove(node: string): Promise<void> {
    for (const filter of [subjectOf(node), configSubject(node, '*')])
      await this.bus.jsm.streams.purge(kvStream(JOURNALS), { filter });
  }
}

/** The time of the server that leads the bucket. */
export async function serverTimeMs(bus: Bus): Promise<number> {
  const { ts } = (await bus.streamInfo(kvStream(JOURNALS))) as unknown as { readonly ts?: string };
  const timeMs = Date.parse(ts ?? '');
  if (Number.isNaN(timeMs)) throw new Error('the NATS server does not say what time it is');
  return timeMs;
}

const configSubject = (node: string, hash: string): string => `${subjectOf(node)}.${hash}`;
const subjectOf = (node: string): string => kvSubject(JOURNALS, nodeToken(node));
