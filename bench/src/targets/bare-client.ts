import { Agent, request } from 'undici';
import type { BareDone, BareWork } from './protocol.js';

/** Makes the calls of a rollout and nothing else: no decision, no journal, no check of what is there. */
const agent = new Agent();

process.on('message', (work: BareWork) => void answer(work));

async function answer(work: BareWork): Promise<void> {
  const done = await rollOut(work);
  process.send?.(done);
}

async function rollOut({ origins, calls, atOnce, object }: BareWork): Promise<BareDone> {
  const startMs = performance.now();
  const left = [...origins];
  let count = 0;
  const worker = async (): Promise<void> => {
    for (let origin = left.pop(); origin !== undefined; origin = left.pop()) {
      await configure(origin, calls, object);
      count += calls.length;
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  return { ms: performance.now() - startMs, calls: count };
}

async function configure(origin: string, calls: readonly string[], object: object): Promise<void> {
  const base = `${origin}/cgi-bin/luci`;
  const login = await request(`${base}/`, {
    dispatcher: agent,
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: 'luci_username=root&luci_password=secret',
  });
  await login.body.dump();
  const cookie = String(login.headers['set-cookie']).split(';')[0] as string;
  for (const call of calls) {
    const [method = 'GET', path = ''] = call.split(' ');
    const body = path.startsWith('v1/service/') ? { action: 'restart' } : object;
    const answer = await request(`${base}/sdewan/${path}`, {
      dispatcher: agent,
      method: method as 'GET' | 'PUT',
      headers: { cookie },
      ...(method === 'GET' ? {} : { body: JSON.stringify(body) }),
    });
    const text = await answer.body.text();
    if (answer.statusCode >= 400) throw new Error(`${call} is answered ${answer.statusCode}: ${text}`);
    JSON.parse(text);
  }
}
