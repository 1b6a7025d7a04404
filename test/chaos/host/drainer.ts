import { setTimeout as sleep } from 'node:timers/promises';
import { connectFleet, type FleetClient } from '#libs/client';
import type { DrainView } from '#libs/contracts';
import { DrainLog } from './drain-log.js';

const EVERY_MS = 150;
/** How long pods take to end. */
const ENDING_MS = 200;

/**
 * An external drainer, as another team would write it. It reads the bucket `drains`, holds the nodes that wait, reports
 * when they are drained, and gives them back. All its state is in files and in that bucket, so that it can be killed at
 * any moment.
 */
async function main([url = '', data = '']: readonly string[]): Promise<never> {
  const log = new DrainLog(data);
  const client = await connectUntilItAnswers(url);
  for (;;) {
    const drains = await client.list('drains').catch(() => new Map<string, DrainView>());
    await Promise.all([...drains.values()].map((drain) => attend(client, log, drain)));
    await sleep(EVERY_MS);
  }
}

async function attend(client: FleetClient, log: DrainLog, { node, lease, state }: DrainView): Promise<void> {
  if (state === 'uncordoned') return log.giveBack(node, lease);
  if (state !== 'draining') return;
  log.hold(node, lease);
  await sleep(ENDING_MS);
  log.drained(node, lease);
  // A refusal is fine: the lease has ended meanwhile. If there is no answer, the next round repeats the request.
  await client.request('ops.node.drained', { node, lease, evicted: 1, by: 'another drainer' }).catch(() => undefined);
}

async function connectUntilItAnswers(url: string): Promise<FleetClient> {
  for (;;) {
    const client = await connectFleet({ servers: [url], timeoutMs: 5_000 }).catch(() => undefined);
    if (client !== undefined) return client;
    await sleep(EVERY_MS);
  }
}

void main(process.argv.slice(2));
