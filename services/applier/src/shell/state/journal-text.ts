import { isHash } from '#libs/contracts';
import type { Journal } from '../../core/index.js';
import { sha256 } from './original-store.js';

/** `{"sha256": …, "journal": {…}}`; the digest is of the journal's text as it stands there. */
export function encodeJournal(journal: Journal): string {
  const text = JSON.stringify(journal);
  return `{"sha256":"${sha256(text)}","journal":${text}}\n`;
}

/** The journal, or why the text is none. */
export function decodeJournal(text: string): Journal | string {
  const match = /^\{"sha256":"([0-9a-f]{64})","journal":(.*)\}\n$/s.exec(text);
  if (match?.[1] === undefined || match[2] === undefined) return 'not a journal, or only a part of one';
  if (sha256(match[2]) !== match[1]) return 'damaged: its digest does not match';
  const journal = JSON.parse(match[2]) as Journal;
  if ((journal.v as number) !== 1) return `written by a newer applier (v ${String(journal.v)}): start that one`;
  if (typeof journal.node !== 'string' || !isHash(journal.inForce) || typeof journal.seq !== 'number') return 'not a journal of an applier';
  return journal;
}
