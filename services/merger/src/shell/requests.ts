import { CHANGES, changeId, changeSequence, desiredSubject, isChangeId, LEDGER } from '#libs/contracts';
import { answered, refused, type Answer } from '#libs/engine';
import type { DiffRequest, RetryRequest } from '#libs/manifests';
import { readView, type Blobs, type Bus } from '#libs/nats';

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
    ? `node ${node} has no config yet`
    : `the config ${hash} of ${node} is not in the bucket configs: it was never written, was deleted because nothing referred to it for days, or does not match its hash`;

/**
 * Publishes the content of a change again, as a new change that names it. Refuses a change that was committed or
 * superseded, because its content would replace newer content.
 */
export async function retryChange(bus: Bus, { change, by }: RetryRequest): Promise<Answer> {
  const stored = isChangeId(change) ? await bus.stored(CHANGES, { seq: changeSequence(change) }) : null;
  if (stored === null) return refused('not-found', `change ${change} not found`);
  const outcome = await finalOutcome(bus, change);
  if (outcome !== undefined)
    return refused(
      'conflict',
      `${change} was ${outcome}: publishing it again would replace newer content with old content. To undo it, or to use its content again, run sluice apply with the manifests that you want`,
    );
  const body = asChange(stored.string());
  if (body === undefined) return refused('conflict', `${change} was not JSON and cannot be published again`);
  const text = JSON.stringify({ ...body, author: by, retryOf: change });
  const ack = await bus.publish(desiredSubject('retry'), text);
  return answered({ change: changeId(ack.seq), retryOf: change });
}

/** The outcome that forbids a retry; undefined if there is none. Reads the view, too: the ledger may be trimmed. */
async function finalOutcome(bus: Bus, change: string): Promise<'committed' | 'superseded' | undefined> {
  const view = await readView(bus, 'changes', change);
  const committed = await bus.stored(LEDGER, { last_by_subj: `config.committed.${change}` });
  if (committed !== null || view?.phase === 'committed') return 'committed';
  const ended = await bus.stored(LEDGER, { last_by_subj: `config.ended.${change}` });
  const outcome = ended === null ? view?.outcome : ended.json<{ readonly outcome?: string }>().outcome;
  return outcome === 'superseded' ? outcome : undefined;
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
