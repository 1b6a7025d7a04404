import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ConfigEntry } from '#libs/contracts';
import { until } from '#libs/testing';
import { bootClock } from '../boot.js';
import { FileSystems } from '../backends/paths/file-systems.js';
import { ProbeNetworks } from './probe-networks.js';
import { runProbes } from './run-probes.js';

/** Names that begin with `dead` are never answered, as with a name server that is down. */
const GETENT = `#!/bin/sh
for name; do :; done
case "$name" in
  dead*) echo $$ >> "$0.pids"; exec sleep 600 ;;
  *) echo '127.0.0.1 STREAM'; echo '127.0.0.1 DGRAM' ;;
esac
`;

function isAlive(pid: number): boolean {
  try {
    return /^State:\s+[^Z]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

describe('the host names of probes', () => {
  const folder = mkdtempSync(join(tmpdir(), 'host-addresses-'));
  const path = process.env['PATH'];
  const server = createServer();
  beforeAll(async () => {
    writeFileSync(join(folder, 'getent'), GETENT);
    chmodSync(join(folder, 'getent'), 0o755);
    process.env['PATH'] = `${folder}:${path}`;
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  });
  afterAll(() => {
    process.env['PATH'] = path;
    server.close();
    rmSync(folder, { recursive: true });
  });
  const reasonsOf = async (specs: Readonly<Record<string, object>>): Promise<object> => {
    const entries = Object.entries(specs).map(([name, spec]) => ({
      kind: 'Probe',
      name,
      spec: { timeout: '2s', retries: 0, ...spec },
    }));
    const surroundings = {
      root: '/',
      allowExec: false,
      probeNetworks: new ProbeNetworks(),
      fileSystems: new FileSystems('/'),
      ending: new AbortController().signal,
    };
    const results = await runProbes(entries as unknown as ConfigEntry[], surroundings, bootClock() + 30_000, bootClock);
    return Object.fromEntries(results.map(({ name, passed, reason }) => [name, passed ? 'passed' : reason]));
  };

  it('are resolved on their own: one that is not answered is named, holds up no other, and leaves nothing', async () => {
    const { port } = server.address() as AddressInfo;
    const dead = Object.fromEntries(
      Array.from({ length: 12 }, (_, i) => [`dead${i}`, { timeout: '1s', http: { url: `http://dead${i}.example/` } }]),
    );
    expect(await reasonsOf({ ...dead, tcp: { timeout: '20s', tcp: { address: `live.example:${port}` } } })).toEqual({
      ...Object.fromEntries(Object.keys(dead).map((name) => [name, `${name}.example did not resolve in 1000 ms`])),
      tcp: 'passed',
    });
    const pids = readFileSync(join(folder, 'getent.pids'), 'utf8').trim().split('\n').map(Number);
    expect(pids.length).toBeGreaterThan(0);
    // A process ends a moment after it was killed.
    await until(() => !pids.some(isAlive), 'all of them have ended');
  });
});
