import { changeId, CHANGES, decodeFact, desiredSubject, ID_HEADER, LEDGER, type FactOf } from '#libs/contracts';
import type { Bus } from './connection.js';
import { ChangesFullError, isStreamFull } from './errors.js';
import { headersOf } from './messages.js';

/** A change to publish. */
export interface OutgoingChange {
  readonly source: string;
  readonly text: string;
  /** If the source publishes the same again with the same id within 24 h, that change ends as a duplicate. */
  readonly id?: string | undefined;
  /** Publish only if this is the newest sequence of the stream. */
  readonly after?: number | undefined;
}

/** Publishes to config.desired.<source>, and returns the ID of the change. Throws ChangesFullError. */
export async function publishChange(bus: Bus, { source, text, id, after }: OutgoingChange): Promise<string> {
  const head = id === undefined ? {} : { headers: headersOf({ [ID_HEADER]: id }) };
  const expected = after === undefined ? {} : { expect: { lastSequence: after } };
  try {
    return changeId((await bus.publish(desiredSubject(source), text, { ...head, ...expected })).seq);
  } catch (error) {
    throw isStreamFull(error) ? new ChangesFullError({ cause: error }) : error;
  }
}

/** What the merger accepted as a change; undefined if it did not, or if the ledger no longer has it. */
export async function acceptedChange(bus: Bus, change: string): Promise<FactOf<'config.accepted'> | undefined> {
  const message = await bus.stored(LEDGER, { last_by_subj: `config.accepted.${change}` });
  return message === null ? undefined : (decodeFact(message.subject, message.string()) as FactOf<'config.accepted'>);
}

/** People may look at so much of what the merger has read. */
const KEPT_CHANGES_BYTES = 64 * 2 ** 20;

/**
 * Deletes the changes up to this sequence, which the merger has read, if the stream has become large. The ledger has
 * what was accepted. Returns how many messages it deleted.
 */
export async function trimChanges(bus: Bus, upTo: number, keptBytes = KEPT_CHANGES_BYTES): Promise<number> {
  const { state } = await bus.streamInfo(CHANGES);
  if (state.bytes <= keptBytes || state.first_seq > upTo) return 0;
  return (await bus.unlessLost(() => bus.jsm.streams.purge(CHANGES, { seq: upTo + 1 }))).purged;
}
