import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { SILENT } from '#libs/process';
import { until } from '#libs/testing';
import { Kube, type KubePod } from './index.js';

/** An API server that answers only when the test says so. */
class HeldServer {
  readonly folder = mkdtempSync(join(tmpdir(), 'sluice-kube-'));
  readonly held: ServerResponse[] = [];
  most = 0;
  connections = 0;
  holdMs: number | undefined;
  private readonly server: Server = createServer((_, answer) => void this.take(answer)).on(
    'connection',
    () => void (this.connections += 1),
  );

  async start(): Promise<this> {
    await new Promise<void>((listening) => this.server.listen(0, '127.0.0.1', listening));
    writeFileSync(
      join(this.folder, 'config'),
      JSON.stringify({
        apiVersion: 'v1',
        kind: 'Config',
        'current-context': 'c',
        contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
        users: [{ name: 'u', user: {} }],
        clusters: [
          {
            name: 'c',
            cluster: {
              'insecure-skip-tls-verify': true,
              server: `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`,
            },
          },
        ],
      }),
    );
    return this;
  }
  get kubeconfig(): string {
    return join(this.folder, 'config');
  }
  release(): void {
    for (const answer of this.held.splice(0)) answer.end('{"gitVersion":"v1"}');
  }
  async close(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((closed) => this.server.close(closed));
    rmSync(this.folder, { recursive: true, force: true });
  }
  private async take(answer: ServerResponse): Promise<void> {
    this.held.push(answer);
    this.most = Math.max(this.most, this.held.length);
    if (this.holdMs === undefined) return;
    await sleep(this.holdMs);
    this.held.splice(this.held.indexOf(answer), 1);
    answer.end('{"gitVersion":"v1"}');
  }
}

/** This process does nothing at all for this time. */
const hang = (ms: number): void => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

describe('a connection to an API server', () => {
  let server: HeldServer;
  beforeEach(async () => {
    server = await new HeldServer().start();
  });
  afterEach(() => server.close());

  const POD = { namespace: 'default', name: 'web', uid: 'u' } as unknown as KubePod;

  it('evicts a few pods at a time, so that a large drain does not flood the server or delay other requests', async () => {
    const kube = await Kube.open({ kubeconfig: server.kubeconfig });
    const answers = Array.from({ length: 80 }, () => kube.evict(POD));
    await until(() => server.held.length === 32, '32 requests are open');
    const other = kube.version();
    await until(() => server.held.length === 33, 'the single request is open');
    server.held.pop()?.end('{"gitVersion":"v1"}');
    expect(await other).toBe('v1');
    server.release();
    await until(() => server.held.length === 32, '32 requests are open again');
    server.release();
    await until(() => server.held.length === 16, 'the last 16 requests are open');
    server.release();
    expect([
      (await Promise.all(answers)).every(({ outcome }) => outcome === 'accepted'),
      server.most,
      server.connections,
    ]).toEqual([true, 33, 33]);
    await kube.close();
  });

  it('gives a queued request its whole timeout, and frees the place of a request that got no answer', async () => {
    const kube = await Kube.open({ kubeconfig: server.kubeconfig, timeoutMs: 2_000 });
    const answers = Promise.allSettled(Array.from({ length: 64 }, () => kube.evict(POD)));
    await until(() => server.held.length === 32, '32 requests are open');
    // They get no answer. The others are sent when that timeout is over for them too, and are answered at once.
    server.holdMs = 0;
    const statuses = (await answers).map(({ status }) => status);
    expect(statuses).toEqual([
      ...Array.from({ length: 32 }, () => 'rejected'),
      ...Array.from({ length: 32 }, () => 'fulfilled'),
    ]);
    await kube.close();
  });

  it('waits for the answer to a read for as long as it runs, and does not call the server slow if it hung', async () => {
    const logged: string[] = [];
    const logger = { ...SILENT, warn: (_: object, message: string) => void logged.push(message) };
    const kube = await Kube.open({ kubeconfig: server.kubeconfig, timeoutMs: 3_000, logger });
    const answers = Promise.allSettled([kube.version(), kube.evict(POD)]);
    await until(() => server.held.length === 2, 'both are sent');
    // Timers run next, and only then what has arrived is read.
    await new Promise<void>((resolve) => {
      setImmediate(() => {
        hang(4_000);
        server.release();
        resolve();
      });
    });
    const [read, write] = await answers;
    expect(read).toEqual({ status: 'fulfilled', value: 'v1' });
    // What may have consequences has its time, no matter why it was over.
    expect(write).toMatchObject({ status: 'rejected', reason: { name: 'KubeUnreachableError' } });
    expect(logged).toEqual([]);
    await kube.close();
  });

  it('reports slow answers once, with the request, and reports once when the server is fast again', async () => {
    const logged: string[] = [];
    const slowReports: (string | undefined)[] = [];
    const logger = {
      ...SILENT,
      warn: (_: object, message: string) => void logged.push(message),
      info: (_: object, message: string) => void logged.push(message),
    };
    const kube = await Kube.open({
      kubeconfig: server.kubeconfig,
      logger,
      onSlow: (message) => slowReports.push(message),
    });
    server.holdMs = 2_100;
    await Promise.all([kube.nodeNames(1), kube.nodeNames(1)]);
    const slow = expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+ answers slowly: [\d.]+ s to list nodes$/) as string;
    expect([logged, slowReports]).toEqual([[slow], [slow]]);
    server.holdMs = 1;
    // On a busy machine, an answer in between may be slow.
    await until(async () => (await kube.version()) === 'v1' && logged.length > 1, 'it is fast again');
    expect([logged.slice(1), slowReports.slice(1)]).toEqual([
      [expect.stringMatching(/ no longer answers slowly$/)],
      [undefined],
    ]);
    await kube.close();
  });
});
