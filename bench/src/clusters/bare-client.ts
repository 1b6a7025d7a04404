import { Agent, request } from 'undici';
import type { BareDone, BareWork } from './protocol.js';
import type { Call } from './stand-in-server.js';

/** Makes the calls of a rollout and nothing else: no decision, no journal, no watch, no check of what is there. */
let agents: ReadonlyMap<string, Agent> | undefined;

process.on('message', (work: BareWork) => void answer(work));

async function answer(work: BareWork): Promise<void> {
  const done = await rollOut(work);
  process.send?.(done);
}

async function rollOut({ origins, calls, atOnce, ca, token }: BareWork): Promise<BareDone> {
  const startMs = performance.now();
  // As for clusters of different owners: each has its own credentials, and so its own connections.
  agents ??= new Map(origins.map((origin) => [origin, new Agent({ connect: { ca } })]));
  const left = [...origins];
  const worker = async (): Promise<void> => {
    for (let origin = left.pop(); origin !== undefined; origin = left.pop()) await configure(origin, calls, token);
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, origins.length) }, worker));
  return { ms: performance.now() - startMs };
}

async function configure(origin: string, calls: readonly Call[], token: string): Promise<void> {
  const versions = new Map<string, string>();
  for (const { method, path, type, body } of calls) {
    const [place = ''] = path.split('?');
    const answer = await request(origin + path, {
      dispatcher: agents?.get(origin) as Agent,
      method: method as 'GET',
      headers: { authorization: `Bearer ${token}`, accept: 'application/json', 'content-type': type },
      ...(body === '' ? {} : { body: withVersion(body, versions.get(place)) }),
    });
    const text = await answer.body.text();
    if (answer.statusCode >= 400 && answer.statusCode !== 404)
      throw new Error(`${method} ${path} is answered ${answer.statusCode}: ${text}`);
    const { metadata } = JSON.parse(text) as { readonly metadata?: { readonly resourceVersion?: string } };
    if (metadata?.resourceVersion !== undefined) versions.set(place, metadata.resourceVersion);
  }
}

/** Each server counts its own versions. */
function withVersion(body: string, version: string | undefined): string {
  const parsed = JSON.parse(body) as { readonly metadata?: { readonly resourceVersion?: string } };
  if (parsed.metadata?.resourceVersion === undefined) return body;
  return JSON.stringify({ ...parsed, metadata: { ...parsed.metadata, resourceVersion: version } });
}
