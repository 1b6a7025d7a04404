import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { until } from '#libs/testing';
import { LocalInstallation } from './local-installation.js';
import { file, manifest, type Manifest } from './manifests.js';

const here = new LocalInstallation();
beforeAll(() => here.up('--nodes', '2'));
afterAll(() => here.close());

const probe = (name: string, path: string, matches: string, more: object = {}): Manifest =>
  manifest('Probe', name, { nodeSelector: {}, file: { path, matches }, retries: 0, interval: '1s', ...more });
const apply = (...manifests: readonly Manifest[]) =>
  here.run('apply', '-f', here.write('a.json', ...manifests), '--wait');
const onDisk = (node: string, name: string): string => join(here.data, 'nodes', node, 'root', name);

test('a change whose own probe fails is rolled back, with the reason', async () => {
  const { code, stderr } = await apply(file('app', 'broken\n'), probe('app', '/etc/app.conf', '^ok'));
  expect(stderr).toMatch(
    /node-0\d failed: the probe app must pass after this change, but fails: .*app\.conf does not match/,
  );
  expect(code).toBe(4);
  expect(here.file('node-01', '/etc/app.conf')).toBeUndefined();
});

describe('a node on which a probe fails later', () => {
  beforeAll(async () => {
    expect((await apply(file('app', 'ok\n'), probe('flag', '/flag', '^up', {}))).code).toBe(4);
    for (const node of ['node-01', 'node-02']) writeFileSync(onDisk(node, 'flag'), 'up\n');
    expect((await apply(file('app', 'ok\n'), probe('flag', '/flag', '^up'))).code).toBe(0);
    writeFileSync(onDisk('node-01', 'flag'), 'down\n');
    await until(async () => (await here.run('get', 'nodes')).stdout.includes('unhealthy'), 'the node is unhealthy');
  });

  const WHY = 'flag: /flag does not match ^up';

  test('is unhealthy wherever people look, with the reason', async () => {
    expect((await here.run('get', 'nodes')).stdout).toContain(`ready,unhealthy (${WHY})`);
    expect((await here.run('status')).stdout).toContain(`2 nodes, 1 unhealthy\n  ! node-01 is unhealthy: ${WHY}`);
    expect((await here.run('why', 'node-01')).stdout).toContain(`it has its config, but is unhealthy: ${WHY}`);
    const { code, stdout } = await here.run('doctor');
    expect(stdout).toContain(`probes fail on 1 node: node-01 (${WHY})`);
    expect(stdout).not.toContain('No problems found');
    expect(code).toBe(1);
    expect((await here.run('plan', '-f', here.write('p.json', file('app', 'ok 2\n')))).stdout).toContain(
      `! node-01 is unhealthy: ${WHY}`,
    );
  });

  test('gets a change all the same, and a strict policy defers it until it is healthy', async () => {
    expect((await apply(file('app', 'ok 2\n'))).code).toBe(0);
    expect(here.file('node-01', '/etc/app.conf')).toBe('ok 2\n');
    const strict = manifest('RolloutPolicy', 'all', { nodeSelector: {}, maxFailures: 0, health: 'strict' });
    expect((await apply(strict)).code).toBe(0);
    expect((await apply(file('app', 'ok 3\n'))).code).toBe(0);
    expect(['node-01', 'node-02'].map((node) => here.file(node, '/etc/app.conf'))).toEqual(['ok 2\n', 'ok 3\n']);
    expect((await here.run('why', 'node-01')).stdout.trim()).toBe(
      `the committed config waits: it is unhealthy (${WHY}), and RolloutPolicy/all has health: strict: repair the node until its probes pass, or set health: tolerant in RolloutPolicy/all`,
    );
    writeFileSync(onDisk('node-01', 'flag'), 'up\n');
    await until(() => here.file('node-01', '/etc/app.conf') === 'ok 3\n', 'it gets the change when it is healthy');
    const isHealed = async () => (await here.run('doctor')).stdout.includes('No problems found');
    await until(isHealed, 'the doctor finds no problem');
    expect((await here.run('get', 'nodes')).stdout).not.toContain('unhealthy');
  });

  test('is warned about when the probe passes on no node', async () => {
    for (const node of ['node-01', 'node-02']) rmSync(onDisk(node, 'flag'));
    const warning = /Probe\/flag.* it fails on all 2 nodes that have it/s;
    await until(async () => warning.test((await here.run('doctor')).stdout), 'the doctor warns');
    const tolerant = manifest('RolloutPolicy', 'all', { nodeSelector: {}, maxFailures: 0 });
    const change = [tolerant, file('app', 'ok 4\n')];
    expect((await here.run('plan', '-f', here.write('p.json', ...change))).stdout).toMatch(warning);
    const { code, stderr } = await apply(...change);
    expect([code, stderr]).toEqual([0, expect.stringMatching(warning)]);
  });
});

test('an applyTimeout that is too short for any lease is rejected, with the reason and what to write instead', async () => {
  const { code, stderr } = await apply(manifest('Pool', 'hasty', { nodeSelector: {}, applyTimeout: '100ms' }));
  expect(stderr).toMatch(
    /spec\.applyTimeout: must be at least 2s, but is 100ms: a node has half of it to prepare .*; leave it out for the default/,
  );
  expect(code).toBe(3);
});
