import { EMPTY_HASH } from '#libs/contracts';
import { newJournal, type Journal, type JournalCodec } from '../../../services/applier/src/core/index.js';

/** The times in a journal are those of the NATS server: they never start over. */
export const TARGET_BOOT = 'nats-server';

export const JOURNAL_TEXT: JournalCodec = {
  encode: (journal) => JSON.stringify(journal),
  decode: (text) => JSON.parse(text) as Journal,
};

export const firstJournal = (node: string): Journal => newJournal(node, EMPTY_HASH);

/** The journal in a value of the bucket. Its first line is the owner. */
export const journalIn = (node: string, text: string): Journal =>
  text === '' ? firstJournal(node) : (JSON.parse(text.slice(text.indexOf('\n') + 1)) as Journal);
