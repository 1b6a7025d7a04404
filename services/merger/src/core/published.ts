import { changeId, ID_HEADER, isDnsLabel, reasonFor, type NewFactOf, type Reason } from '#libs/contracts';
import type { Digest, Draft } from '#libs/engine';
import { readChange, utf8Bytes } from '#libs/manifests';
import { boundReasons } from '#libs/rules';
import { whyOvertaken } from './bindings.js';
import { REMEMBERED_MS } from './evolve.js';
import type { Input, RenderNeed } from './inputs.js';
import { stateBefore, whyNoRetry } from './state-before.js';
import { MOST_SOURCES, quotaOf, useKey, useOn, type State } from './state.js';

export type PublishedInput = Input & { readonly type: 'published' };
type MessageId = NonNullable<NewFactOf<'config.accepted'>['messageId']>;

/** What a decision about a published change needs besides the state. */
export interface PublishSettings {
  readonly digest: Digest;
  /** How much a source may publish per day. */
  readonly quotaBytes: number;
}

export const DEFAULT_QUOTA_BYTES = 256_000_000;
/** What a message counts besides its body: it causes facts, and the value of a change. */
const MESSAGE_BYTES = 1_000;
/** The longest Sluice-Id: ids are kept in memory. */
const MAX_ID = 256;
/** How many changes of a source over its quota are answered per day: its messages must not grow the ledger forever. */
export const MOST_REFUSALS = 1_000;
/** Of the messages after them, one of this many is answered, so that what was read can be deleted from CHANGES. */
export const REFUSED_EACH = 100;
/** How much of a rejected change's message and author is kept, in characters. */
const MAX_WORDS = 200;

type MergerDraft = Draft<State, Input, RenderNeed>;

/** Answers a published change: it is accepted, rejected for its form, or repeats another one. */
export function answerPublished(
  draft: MergerDraft,
  published: PublishedInput,
  { digest, quotaBytes }: PublishSettings,
): void {
  const { sequence, source, text, id, storedMs } = published;
  const { firstUses, cursor } = draft.state;
  const head = { change: changeId(sequence), source, storedMs, bytes: utf8Bytes(text) + MESSAGE_BYTES, text };
  draft.spend(text.length);
  const { bytes, refusals } = useOn(draft.state, source, storedMs);
  if (bytes + head.bytes > quotaBytes) {
    if (refusals >= MOST_REFUSALS && sequence - cursor.get() < REFUSED_EACH) return;
    // Its content is not kept, so it does not count.
    return reject(draft, { ...head, bytes: undefined }, [
      reasonFor({}, 'over-quota', overQuota(draft.state, source, quotaBytes)),
    ]);
  }
  if (!isDnsLabel(source)) {
    const message = `the source ${quoted(source)} (the subject after config.desired.) is not a DNS label`;
    return reject(draft, head, [reasonFor({}, 'bad-source', message)]);
  }
  if (id === undefined) return accept(draft, head);
  if (id === '' || id.length > MAX_ID)
    return reject(draft, head, [
      reasonFor({}, 'bad-id', `the header ${ID_HEADER} must have 1 to ${MAX_ID} characters`),
    ]);
  draft.spend(text.length);
  const messageId = { id, digest: digest(text) };
  const first = firstUses.get(useKey(source, id));
  if (first === undefined || storedMs - first.storedMs > REMEMBERED_MS) return accept(draft, head, messageId);
  if (first.digest === messageId.digest)
    return draft.emit({ type: 'config.deduplicated', ...factOf(head), bytes: head.bytes, duplicateOf: first.change });
  const message = `${source} published ${first.change} with the same ${ID_HEADER} ${quoted(id)} and other content: give each change its own id`;
  return reject(draft, head, [reasonFor({}, 'id-reused', message)]);
}

interface Head {
  readonly change: string;
  readonly source: string;
  readonly storedMs: number;
  /** What it counts for the quota. */
  readonly bytes: number | undefined;
  readonly text: string;
}

const factOf = ({ change, source, storedMs, bytes }: Head) => ({
  change,
  source,
  storedMs,
  ...(bytes === undefined ? {} : { bytes }),
});

function accept(draft: MergerDraft, head: Head, messageId?: MessageId): void {
  const read = readChange(head.text);
  if (!read.ok) return reject(draft, head, read.reasons);
  const { rollbackOf, retryOf } = read.change;
  const tooLate = retryOf === '' ? undefined : whyNoRetry(draft.state, retryOf, read.change);
  if (tooLate !== undefined) return reject(draft, head, [reasonFor({}, 'conflict', tooLate)]);
  const overtaken = whyOvertaken(draft.state, { ...read.change, source: head.source });
  if (overtaken !== undefined) return reject(draft, head, [reasonFor({}, 'conflict', overtaken)]);
  const before = rollbackOf === undefined ? undefined : stateBefore(draft.state, rollbackOf);
  if (before?.ok === false) return reject(draft, head, [reasonFor({}, before.code, before.message)]);
  const content = before === undefined ? {} : { apply: before.apply, delete: before.delete };
  // The message of a rollback is small, and the fact may be large.
  const contentBytes = before === undefined ? 0 : JSON.stringify(content).length;
  draft.spend(contentBytes);
  const bytes = (head.bytes ?? 0) + contentBytes;
  draft.emit({
    type: 'config.accepted',
    ...factOf(head),
    bytes,
    ...read.change,
    ...content,
    ...(messageId && { messageId }),
  });
}

function reject(draft: MergerDraft, head: Head, all: readonly Reason[]): void {
  const reasons = boundReasons(all);
  // A small message can have many reasons, which are kept like content.
  const bytes = head.bytes === undefined ? undefined : head.bytes + utf8Bytes(JSON.stringify(reasons));
  draft.emit({
    type: 'config.rejected',
    stage: 'schema',
    attempt: 0,
    reasons,
    ...factOf({ ...head, bytes }),
    ...wordsIn(head.text),
  });
}

/** The message and author of a change that was not accepted, as far as its text can be read. */
function wordsIn(text: string): { readonly message?: string; readonly author?: string } {
  try {
    const { message, author } = JSON.parse(text) as { readonly message?: unknown; readonly author?: unknown };
    return { ...startOf('message', message), ...startOf('author', author) };
  } catch {
    return {};
  }
}

const startOf = (field: string, value: unknown): object =>
  typeof value === 'string' && value !== '' ? { [field]: value.slice(0, MAX_WORDS).toWellFormed() } : {};

function overQuota(state: State, source: string, quotaBytes: number): string {
  const quota = `${quotaBytes / 1e6} MB. Publish less, wait until 00:00 UTC, or raise SLUICE_SOURCE_QUOTA_MB of the merger`;
  if (quotaOf(state, source) === source) return `the source ${source} would exceed its daily quota of ${quota}`;
  return isDnsLabel(source)
    ? `${MOST_SOURCES} other sources have published today, so ${source} and all later ones share one daily quota of ${quota}`
    : `all sources whose names are not DNS labels, such as ${quoted(source)}, share one daily quota of ${quota}`;
}

const quoted = (text: string): string => JSON.stringify(text);
