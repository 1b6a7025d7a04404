import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '#libs/process';
import { bootClock } from '../boot.js';
import { BUS_PROBE, controlPlane } from './control-plane.js';
import { FileSystems } from '../backends/paths/file-systems.js';
import { ProbeNetworks } from './probe-networks.js';
import { runProbes } from './run-probes.js';

const run = async (probes: readonly { kind: string; name: string; spec: object }[]) =>
  (
    await runProbes(
      probes as never,
      {
        root: '/',
        allowExec: false,
        probeNetworks: new ProbeNetworks(),
        fileSystems: new FileSystems('/'),
        ending: new AbortController().signal,
      },
      bootClock() + 120_000,
      bootClock,
    )
  ).map(({ passed, reason }) => (passed ? 'reached' : reason));
const reach = (...addresses: string[]) => ({
  kind: 'Probe',
  name: 'p',
  // No check here takes that long, but a busy machine may.
  spec: { reach: { addresses }, timeout: '60s', retries: 0 },
});

it('counts an accepted or a refused connection as reached', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  try {
    expect(
      await run([
        reach(`127.0.0.1:${(server.address() as AddressInfo).port}`),
        reach(`127.0.0.1:${await freePort()}`),
        reach(`[::1]:${await freePort()}`),
      ]),
    ).toEqual(['reached', 'reached', 'reached']);
  } finally {
    server.close();
  }
});

it('needs only one of several servers, and otherwise says why each was not reached', async () => {
  // A network that is reserved for documentation, so nothing answers.
  expect(await run([reach('192.0.2.1:9', `127.0.0.1:${await freePort()}`)])).toEqual(['reached']);
});

it('says that a name does not resolve', async () => {
  // What the name server of this machine answers, and when, must not matter.
  const folder = mkdtempSync(join(tmpdir(), 'sluice-reach-'));
  const path = process.env['PATH'];
  writeFileSync(join(folder, 'getent'), '#!/bin/sh\nexit 2\n', { mode: 0o755 });
  process.env['PATH'] = `${folder}:${path}`;
  try {
    expect(await run([reach('nobody.invalid:4222')])).toEqual(['nobody.invalid does not resolve to an address']);
  } finally {
    process.env['PATH'] = path;
    rmSync(folder, { recursive: true });
  }
});

it("checks the NATS servers, the gateway, the name server, and the operator's addresses", () => {
  const probes = controlPlane(
    ['nats://a.example:4333', 'tls://b.example', '10.0.0.1:4222', '[2001:db8::1]:4222'],
    ['10.0.0.9:6443'],
  );
  expect(probes.map(({ name, spec }) => [name, spec['reach']])).toEqual([
    ['control-plane:bus', { addresses: ['a.example:4333', 'b.example:4222', '10.0.0.1:4222', '[2001:db8::1]:4222'] }],
    ['control-plane:gateway', { gateway: true }],
    ['control-plane:nameserver', { nameserver: true }],
    ['control-plane:10.0.0.9:6443', { addresses: ['10.0.0.9:6443'] }],
  ]);
  expect(probes[0]?.name).toBe(BUS_PROBE);
});

it('fails after a try with its whole timeout, and is cut short if no try had that', async () => {
  const sleeps = {
    kind: 'Probe',
    name: 'p',
    spec: { exec: { argv: ['sleep', '60'] }, timeout: '200ms', retries: 100 },
  };
  const patient = { ...sleeps, name: 'q', spec: { ...sleeps.spec, timeout: '30s' } };
  const surroundings = {
    root: '/',
    allowExec: true,
    probeNetworks: new ProbeNetworks(),
    fileSystems: new FileSystems('/'),
    ending: new AbortController().signal,
  };
  const results = await runProbes([sleeps, patient], surroundings, bootClock() + 3_000, bootClock);
  expect(results.map(({ name, passed, isCutShort }) => ({ name, passed, isCutShort }))).toEqual([
    { name: 'p', passed: false, isCutShort: undefined },
    { name: 'q', passed: false, isCutShort: true },
  ]);
});
