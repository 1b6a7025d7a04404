import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { ProbeNetworks } from './probe-networks.js';
import type { ProbeSurroundings } from './probe-types.js';
import { runProbes } from './run-probes.js';

const SURROUNDINGS = {
  root: '/',
  allowExec: false,
  probeNetworks: new ProbeNetworks(),
  ending: new AbortController().signal,
} as unknown as ProbeSurroundings;

const LIMIT_MS = 60_000;

/** A probe whose server answers each try with nonsense, this long after it by the clock of the probe. */
async function failing(...answersMs: readonly number[]): Promise<readonly unknown[]> {
  const answers = [...answersMs];
  let nowMs = 0;
  const server = createServer((socket) => {
    nowMs += answers.shift() ?? 0;
    socket.end('nonsense');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const spec = { http: { url: `http://127.0.0.1:${port}/` }, timeout: '2s', retries: answersMs.length - 1 };
  try {
    return await runProbes([{ kind: 'Probe', name: 'p', spec }], SURROUNDINGS, LIMIT_MS, () => nowMs);
  } finally {
    server.close();
  }
}

it('a try that failed within its timeout is a failure', async () => {
  expect(await failing(100)).toEqual([{ name: 'p', passed: false, reason: expect.any(String) as string }]);
});

it.each([
  ['before', 30_000],
  ['after', 90_000],
])('a try during which this process was paused is none, if it continues %s the limit', async (_, pausedMs) => {
  expect(await failing(pausedMs)).toMatchObject([{ passed: false, isCutShort: true }]);
});

it('a probe has failed if another try fails in its own time', async () => {
  const [result] = await failing(30_000, 100);
  expect(result).toMatchObject({ passed: false });
  expect(result).not.toHaveProperty('isCutShort');
});
