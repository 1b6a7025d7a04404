import { isHash } from '#libs/contracts';
import type { Journal } from '../../core/index.js';
import { sha256 } from '../content.js';

/** `{"sha256": …, "journal": {…}}`. The digest is of the journal's text as it is in the file. */
export function encodeJournal(journal: Journal): string {
  const text = JSON.stringify(journal);
  return `{"sha256":"${sha256(text)}","journal":${text}}\n`;
}

/** The journal, or why the text is not one. */
export function decodeJournal(text: string): Journal | string {
  const match = /^\{"sha256":"([0-9a-f]{64})","journal":(.*)\}\n$/s.exec(text);
  if (match?.[1] === undefined || match[2] === undefined) return 'not a journal, or an incomplete one';
  if (sha256(match[2]) !== match[1]) return 'damaged: its checksum does not match';
  const journal = parsed(match[2]);
  if (!isObject(journal)) return 'not the journal of an applier';
  if (journal['v'] !== 1) return `written by a newer applier (v ${JSON.stringify(journal['v'])}): start that version`;
  const wrong = Object.entries(SHAPE).find(([field, holds]) => !holds(journal[field]))?.[0];
  return wrong === undefined
    ? (journal as unknown as Journal)
    : `not the journal of an applier: the field ${wrong} is invalid`;
}

/** Whether a journal is complete and was written by a newer applier. Then no older copy may replace it. */
export function isNewer(text: string): boolean {
  const match = /^\{"sha256":"([0-9a-f]{64})","journal":(.*)\}\n$/s.exec(text);
  if (match?.[2] === undefined || sha256(match[2]) !== match[1]) return false;
  const journal = parsed(match[2]);
  return isObject(journal) && typeof journal['v'] === 'number' && journal['v'] > 1;
}

type Check = (value: unknown) => boolean;
const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isText: Check = (value) => typeof value === 'string';
const isCount: Check = (value) => Number.isSafeInteger(value) && (value as number) >= 0;
const isList: Check = (value) => Array.isArray(value);
const isAbsentOr =
  (holds: Check): Check =>
  (value) =>
    value === undefined || holds(value);
const has =
  (shape: Readonly<Record<string, Check>>): Check =>
  (value) =>
    isObject(value) && Object.entries(shape).every(([field, holds]) => holds(value[field]));

const isOriginals: Check = (value) =>
  isObject(value) && Object.values(value).every(has({ kind: isText, was: (was) => was !== undefined, made: isList }));

const isEscalated = has({ action: has({ kind: isText }), reason: isText });

/**
 * A digest shows that a text is complete, not that an applier wrote it. A journal that was edited by hand must not stop
 * the other appliers of the process.
 */
const SHAPE: Readonly<Record<string, Check>> = {
  node: isText,
  incarnation: isCount,
  nonce: isCount,
  seq: isCount,
  inForce: (value) => typeof value === 'string' && isHash(value),
  sound: (value) => typeof value === 'boolean',
  lastDealt: isAbsentOr(
    has({
      lease: isText,
      change: isText,
      pool: isText,
      ledger: isAbsentOr(isCount),
      verdict: isText,
      reason: isText,
      escalated: isAbsentOr(isEscalated),
      notUndone: isAbsentOr(isList),
      untouched: isAbsentOr((value) => value === true),
    }),
  ),
  work: isAbsentOr(
    has({
      phase: (value) => value === 'forward' || value === 'confirming' || value === 'rolling-back',
      lease: isText,
      change: isText,
      pool: isText,
      ledger: isAbsentOr(isCount),
      from: isText,
      to: isText,
      actions: isList,
      applyMs: Number.isFinite,
      bootId: isText,
      readMs: Number.isFinite,
      rollBackAtMs: Number.isFinite,
      probes: isObject,
      ran: isList,
      toUndo: isList,
      changed: isList,
      before: isAbsentOr(isOriginals),
      scope: has({ touched: isAbsentOr(isList), aside: isObject }),
      idleUnits: isAbsentOr(isList),
      begunOn: isAbsentOr(isText),
      reboot: isAbsentOr(has({ from: isText, untilMs: Number.isFinite })),
      escalated: isAbsentOr(isEscalated),
      rollbackEscalated: isAbsentOr(isEscalated),
      restartsApplier: isAbsentOr((value) => value === true),
    }),
  ),
  outstanding: isAbsentOr(
    has({
      actions: isList,
      bootId: isText,
      restartMs: isAbsentOr(Number.isFinite),
      degradedUntilMs: isAbsentOr(Number.isFinite),
      failing: isAbsentOr(isList),
      startedTooEarly: isAbsentOr(Number.isFinite),
    }),
  ),
  originals: isOriginals,
  leaving: isAbsentOr(isOriginals),
  ran: isAbsentOr(isList),
  had: isAbsentOr((value) => typeof value === 'string' && isHash(value)),
  madeIn: isAbsentOr(isText),
  report: isAbsentOr(
    has({ kind: isText, node: isText, incarnation: isCount, nonce: isCount, seq: isCount, hash: isText }),
  ),
};

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
