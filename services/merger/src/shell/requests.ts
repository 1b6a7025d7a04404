import {
  CHANGES,
  changeId,
  changeSequence,
  decodeConfig,
  desiredSubject,
  isChangeId,
  type Config,
} from '#libs/contracts';
import { answered, refused, type Answer } from '#libs/engine';
import type { DiffRequest, RetryRequest } from '#libs/manifests';
import { readView, type Blobs, type Bus } from '#libs/nats';

/** Two configs of a node next to each other: what it has and what it should have, or any two by hash. */
export async function diffConfigs(bus: Bus, blobs: Blobs, { node, from, to }: DiffRequest): Promise<Answer> {
  const status = from === undefined || to === undefined ? await readView(bus, 'status', node) : undefined;
  if (status === undefined && (from === undefined || to === undefined))
    return refused('not-found', `node ${node} not found`);
  const hashes = { from: from ?? status?.hash ?? '', to: to ?? status?.desired ?? '' };
  const [fromConfig, toConfig] = await Promise.all([
    readConfig(blobs, node, hashes.from),
    readConfig(blobs, node, hashes.to),
  ]);
  if (fromConfig === undefined) return refused('not-found', gone(node, hashes.from));
  if (toConfig === undefined) return refused('not-found', gone(node, hashes.to));
  return answered({ node, ...hashes, fromConfig, toConfig });
}

async function readConfig(blobs: Blobs, node: string, hash: string): Promise<Config | undefined> {
  const text = hash === '' ? undefined : await blobs.config(node, hash);
  return text === undefined ? undefined : decodeConfig(text);
}

const gone = (node: string, hash: string): string =>
  hash === ''
    ? `node ${node} has no config yet`
    : `the config ${hash} of ${node} is not in the bucket configs: it was never written, or was deleted because nothing referred to it for days`;

/** Publishes the content of a change again, as a new change that names it. */
export async function retryChange(bus: Bus, { change, by }: RetryRequest): Promise<Answer> {
  const stored = isChangeId(change) ? await bus.stored(CHANGES, { seq: changeSequence(change) }) : null;
  if (stored === null) return refused('not-found', `change ${change} not found`);
  const body = asChange(stored.string());
  if (body === undefined) return refused('conflict', `${change} was not JSON and cannot be published again`);
  const text = JSON.stringify({ ...body, author: by, retryOf: change });
  const ack = await bus.publish(desiredSubject('retry'), text);
  return answered({ change: changeId(ack.seq), retryOf: change });
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
