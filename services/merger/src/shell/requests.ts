import { CHANGES, changeSequence, isChangeId, LEDGER, sourceOf, type FactOf } from '#libs/contracts';
import { answered, refused, type Answer } from '#libs/engine';
import {
  manifestOf,
  writtenStrategy,
  type DiffRequest,
  type RetryRequest,
  type RollbackRequest,
} from '#libs/manifests';
import { acceptedChange, publishChange, readView, type Blobs, type Bus } from '#libs/nats';

/** Two configs of a node next to each other: what it has and what it should have, or any two by hash. */
export async function diffConfigs(bus: Bus, blobs: Blobs, { node, from, to }: DiffRequest): Promise<Answer> {
  const status = from === undefined || to === undefined ? await readView(bus, 'status', node) : undefined;
  if (status === undefined && (from === undefined || to === undefined))
    return refused('not-found', `node ${node} not found`);
  const hashes = { from: from ?? status?.hash ?? '', to: to ?? status?.desired ?? '' };
  const read = async (hash: string) => (hash === '' ? undefined : (await blobs.configs([{ node, hash }]))[0]);
  const [fromConfig, toConfig] = await Promise.all([read(hashes.from), read(hashes.to)]);
  if (fromConfig === undefined) return refused('not-found', gone(node, hashes.from));
  if (toConfig === undefined) return refused('not-found', gone(node, hashes.to));
  return answered({ node, ...hashes, fromConfig, toConfig });
}

const gone = (node: string, hash: string): string =>
  hash === ''
    ? `node ${node} has no such config now: see sluice why ${node}`
    : `the config ${hash} of ${node} is not in the bucket configs: it was never written, was deleted because nothing referred to it for days, or does not match its hash`;

/**
 * Publishes the content of a change again, as a new change of the same source that names it. Refuses a change that was
 * committed or superseded, because its content would replace newer content, and one that repeats another. `tooLate`
 * says which later changes forbid it. The retry of a retry names the first change: the content is as old as that one.
 */
export async function retryChange(bus: Bus, { change, by }: RetryRequest, tooLate?: string): Promise<Answer> {
  const refusal = isChangeId(change) ? ((await whyEnded(bus, change)) ?? tooLate) : undefined;
  if (refusal !== undefined) return refused('conflict', refusal);
  const published = isChangeId(change) ? await publishedChange(bus, change) : undefined;
  if (published === undefined)
    return refused('not-found', `change ${change} not found, or its content is no longer stored: publish it again`);
  if (published.body === undefined) return refused('conflict', `${change} was not JSON and cannot be published again`);
  const retryOf = 'retryOf' in published.body && isFirst(published.body.retryOf) ? published.body.retryOf : change;
  const text = JSON.stringify({ ...published.body, author: by, retryOf });
  return answered({ change: await publishChange(bus, { source: published.source, text }), retryOf });
}

const isFirst = (value: unknown): value is string => typeof value === 'string' && isChangeId(value);

interface PublishedChange {
  readonly source: string;
  /** Undefined if it was not JSON. */
  readonly body: object | undefined;
}

/** A change as it was published: from the ledger if it was accepted, because CHANGES is trimmed. */
async function publishedChange(bus: Bus, change: string): Promise<PublishedChange | undefined> {
  const fact = await acceptedChange(bus, change);
  if (fact !== undefined) return { source: fact.source, body: bodyOf(fact) };
  const message = await bus.stored(CHANGES, { seq: changeSequence(change) });
  if (message === null) return undefined;
  // The facts about an older message are trimmed: it may have been committed long ago.
  const { state } = await bus.streamInfo(LEDGER);
  if (state.first_seq > 1 && message.time.getTime() < Date.parse(state.first_ts)) return undefined;
  return { source: sourceOf(message.subject), body: asChange(message.string()) };
}

function bodyOf(fact: FactOf<'config.accepted'>): object {
  const { apply, delete: gone, message, strategy, takeOver, rollbackOf, retryOf } = fact;
  const content = rollbackOf === undefined ? { apply: apply.map(manifestOf), delete: gone } : { rollbackOf };
  return {
    ...content,
    message,
    retryOf,
    ...(strategy && { strategy: writtenStrategy(strategy) }),
    ...(takeOver === true ? { takeOver } : {}),
  };
}

/**
 * Publishes that a change is to be rolled back, for its source. The merger finds the content when it reads this, and
 * refuses it if another change was faster. It takes over: fragments that a rollback gave back to their former source
 * belong to that one.
 */
export async function publishRollback(bus: Bus, source: string, { change, by }: RollbackRequest): Promise<Answer> {
  const text = JSON.stringify({ rollbackOf: change, author: by, takeOver: true });
  return answered({ change: await publishChange(bus, { source, text }), rollbackOf: change });
}

/** Why a change that has ended must not be retried, if so. Reads the view, too: the ledger may be trimmed. */
async function whyEnded(bus: Bus, change: string): Promise<string | undefined> {
  const view = await readView(bus, 'changes', change);
  const old = 'publishing it again would replace newer content with old content';
  const committed = await bus.stored(LEDGER, { last_by_subj: `config.committed.${change}` });
  if (committed !== null || view?.phase === 'committed')
    return `${change} was committed: ${old}. To undo it, run sluice rollback ${change}`;
  const ended = await bus.stored(LEDGER, { last_by_subj: `config.ended.${change}` });
  const outcome = ended === null ? view?.outcome : ended.json<{ readonly outcome?: string }>().outcome;
  if (outcome === 'superseded')
    return `${change} was superseded: ${old}. Run sluice apply with the manifests that you want`;
  const repeated = await bus.stored(LEDGER, { last_by_subj: `config.deduplicated.${change}` });
  const first = repeated?.json<{ readonly duplicateOf?: string }>().duplicateOf ?? view?.duplicateOf;
  return first === undefined ? undefined : `${change} repeats ${first}: run sluice retry ${first}`;
}

/** A change may have been published as one bare manifest. */
function asChange(text: string): object | undefined {
  try {
    const body = JSON.parse(text) as object | null;
    if (typeof body !== 'object' || body === null) return undefined;
    return 'kind' in body ? { apply: [body] } : body;
  } catch {
    return undefined;
  }
}
