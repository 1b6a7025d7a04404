import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import type { Action, ConfigEntry } from '#libs/contracts';
import { FakeMachine } from '../../../testing/fake-machine.js';
import { config, file, Host, probe } from '../../applier-host.fixture.js';
import { EMPTY_HASH } from '../../index.js';

const X = 'x.service';
const PATH = '/etc/systemd/system/x.service';
const service = (command: string, rest = ''): string => `[Service]\nExecStart=${command}\n${rest}`;
const INSTALL = '[Install]\nWantedBy=multi-user.target\n';
const unit = (spec: object): ConfigEntry => ({ kind: 'SystemdUnit', name: 'x', spec: { name: X, ...spec } });
const ACTIONS: readonly Action[] = [{ kind: 'daemon-reload' }, { kind: 'restart', unit: X }];
const gate = probe('gate', { file: { path: '/etc/gate', matches: '^open' } });

let host: Host;
let machine: FakeMachine;
beforeEach(() => {
  host = new Host();
  machine = new FakeMachine(host.folder, host.root);
});
afterEach(() => host.end());

const start = () => host.start({ host: { ...machine.settings, rebootCommand: [] } });
const roll = (entries: readonly ConfigEntry[], actions = ACTIONS) => host.bus.roll(config(...entries), { actions });
/** The state of a unit: what it runs with, whether it is enabled, its files. */
const state = () => ({
  running: machine.running(X),
  enabled: machine.isEnabled(X),
  files: Object.fromEntries(
    Object.entries(host.tree()).filter(([path, is]) => path.includes(X) && !is.startsWith('dir')),
  ),
});
const NOTHING = { running: undefined, enabled: false, files: {} };

it('writes, enables and starts a unit, and leaves nothing behind when it is deleted', async () => {
  await start();
  const entry = unit({
    content: service('/a', INSTALL),
    dropIns: [{ name: '10-more.conf', content: '[Service]\nNice=5\n' }],
    enabled: true,
    state: 'started',
  });
  expect(await roll([entry])).toMatchObject({ verdict: 'applied', changed: [X] });
  expect(state()).toEqual({
    running: `${service('/a', INSTALL)}[Service]\nNice=5\n`,
    enabled: true,
    files: {
      'etc/systemd/system/x.service': `644 ${service('/a', INSTALL)}`,
      'etc/systemd/system/x.service.d/10-more.conf': '644 [Service]\nNice=5\n',
    },
  });
  machine.calls();
  expect(await roll([entry], [])).toMatchObject({ verdict: 'applied', changed: [] });
  expect(machine.calls()).toEqual([]);
  expect(await roll([])).toMatchObject({ verdict: 'applied', hash: EMPTY_HASH });
  expect(state()).toEqual(NOTHING);
  expect(host.tree()).toEqual({});
});

it.each([
  ['ran and was enabled', { active: true, enabled: true }],
  ['ran, but was not enabled', { active: true }],
  ['was enabled, but did not run', { enabled: true }],
  ['neither ran nor was enabled', {}],
])('restores a unit that %s', async (_name, is) => {
  machine.unit(X, service('/mine', INSTALL), is);
  const before = state();
  await start();
  for (const spec of [{ enabled: true, state: 'started' }, { enabled: false, state: 'stopped' }, {}]) {
    expect(await roll([unit({ content: service('/ours', INSTALL), ...spec })])).toMatchObject({ verdict: 'applied' });
    expect(state().files).toEqual({ 'etc/systemd/system/x.service': `644 ${service('/ours', INSTALL)}` });
    expect(await roll([])).toMatchObject({ verdict: 'applied' });
    expect(state()).toEqual(before);
  }
});

it('rolls back a bad change, and runs the previous content again', async () => {
  machine.unit(X, service('/mine'), { active: true });
  await start();
  await roll([file('/etc/gate', 'open'), unit({ content: service('/good') })]);
  expect(state().running).toBe(service('/good'));
  expect(
    await roll([
      file('/etc/gate', 'shut'),
      gate,
      unit({ content: service('/worse'), dropIns: [{ name: 'a.conf', content: '' }], state: 'stopped' }),
    ]),
  ).toMatchObject({ verdict: 'invalid', restored: true });
  expect(state()).toEqual({
    running: service('/good'),
    enabled: false,
    files: { 'etc/systemd/system/x.service': `644 ${service('/good')}` },
  });
});

it('rolls back to what somebody edited by hand, with its owner and mode', async () => {
  await start();
  const ours = (command: string): ConfigEntry =>
    unit({ content: service(command), dropIns: [{ name: 'a.conf', content: '# ours\n' }], state: 'started' });
  await roll([file('/etc/gate', 'open'), ours('/good')]);
  writeFileSync(host.path(PATH), service('/edited'));
  chmodSync(host.path(PATH), 0o600);
  writeFileSync(host.path(`${PATH}.d/a.conf`), '# edited\n');
  const before = host.tree();
  const drift = { differences: [], overwrite: true };
  expect(
    await host.bus.roll(config(file('/etc/gate', 'shut'), gate, ours('/worse')), { actions: ACTIONS, drift }),
  ).toMatchObject({ verdict: 'invalid', restored: true });
  expect(host.tree()).toEqual(before);
  expect(machine.running(X)).toBe(`${service('/edited')}# edited\n`);
  expect(await roll([])).toMatchObject({ verdict: 'applied' });
  expect(state()).toEqual(NOTHING);
});

it.each([
  ['stopped', { stop: X }, { running: undefined, enabled: true }],
  ['disabled', { disable: X }, { running: service('/good', INSTALL), enabled: false }],
])('rolls back to a unit that somebody %s by hand', async (_how, deed, left) => {
  await start();
  const ours = (command: string): ConfigEntry =>
    unit({ content: service(command, INSTALL), enabled: true, state: 'started' });
  await roll([file('/etc/gate', 'open'), ours('/good')]);
  machine.become(deed);
  const before = state();
  expect(before).toMatchObject(left);
  const drift = { differences: [], overwrite: true };
  expect(
    await host.bus.roll(config(file('/etc/gate', 'shut'), gate, ours('/worse')), { actions: ACTIONS, drift }),
  ).toMatchObject({ verdict: 'invalid', restored: true });
  expect(state()).toEqual(before);
});

it.each(['reloading', 'activating'])(
  'rolls back, and does not stop a unit that was %s before the lease',
  async (is) => {
    machine.unit(X, service('/mine'), { active: true });
    machine.is(X, is);
    await start();
    await roll([file('/etc/gate', 'open')], []);
    const dropIn = unit({ dropIns: [{ name: 'a.conf', content: '' }] });
    expect(await roll([file('/etc/gate', 'shut'), gate, dropIn])).toMatchObject({ verdict: 'invalid', restored: true });
    expect(machine.active(X)).toBe('active');
    expect(machine.calls()).not.toContain(`stop ${X}`);
  },
);

it('starts a unit again that was starting before the lease, if the change stopped it', async () => {
  machine.unit(X, service('/mine'), { active: true });
  machine.is(X, 'activating');
  await start();
  await roll([file('/etc/gate', 'open')], []);
  expect(await roll([file('/etc/gate', 'shut'), gate, unit({ state: 'stopped' })], [])).toMatchObject({
    verdict: 'invalid',
    restored: true,
  });
  expect(machine.active(X)).toBe('active');
});

it('ends the lease before anything changes if systemctl hangs', async () => {
  const units = [1, 2, 3, 4].map((i) => ({
    kind: 'SystemdUnit',
    name: `u${i}`,
    spec: { name: `u${i}.service`, content: service('/a') },
  }));
  await start();
  machine.program('systemctl', 'exec sleep 600');
  expect(await host.bus.roll(config(...units), { applyMs: 3_000 })).toMatchObject({
    verdict: 'failed',
    untouched: true,
    reason: expect.stringMatching(/^SystemdUnit\/u1: .*systemctl was killed after \d+ ms$/) as string,
  });
  expect(host.tree()).toEqual({});
});

it('blames the node if a unit fails to start, and rolls back', async () => {
  machine.unit(X, service('/mine'), { active: true });
  await start();
  for (const spec of [{ content: service('/fails'), state: 'started' }, { content: service('/fails') }]) {
    expect(await roll([unit(spec)])).toMatchObject({ verdict: 'failed', restored: true, hash: EMPTY_HASH });
    expect(state()).toEqual({
      running: service('/mine'),
      enabled: false,
      files: { 'etc/systemd/system/x.service': `644 ${service('/mine')}` },
    });
  }
});

describe('a unit that fails to start, after the rollback', () => {
  const failing = [unit({ content: service('/fails'), state: 'started' })];

  it('is no longer failed if it only did not run before', async () => {
    machine.unit(X, service('/mine'));
    await start();
    expect(await roll(failing, [])).toMatchObject({ verdict: 'failed', restored: true });
    expect([machine.active(X), state().files]).toEqual(['inactive', { [PATH.slice(1)]: `644 ${service('/mine')}` }]);
  });

  it('is no longer failed if it did not exist before', async () => {
    await start();
    expect(await roll(failing, [])).toMatchObject({ verdict: 'failed', restored: true });
    expect([machine.active(X), state()]).toEqual(['inactive', NOTHING]);
  });

  it('stays failed if it had failed before', async () => {
    machine.unit(X, service('/fails'));
    machine.become({ start: X });
    expect(machine.active(X)).toBe('failed');
    await start();
    expect(await roll(failing, [])).toMatchObject({ verdict: 'failed', restored: true });
    expect(machine.active(X)).toBe('failed');
  });

  it('is no longer failed if the config in force wants it stopped', async () => {
    await start();
    await roll([unit({ content: service('/good'), state: 'stopped' })]);
    expect(await roll(failing, [])).toMatchObject({ verdict: 'failed', restored: true });
    expect(machine.active(X)).toBe('inactive');
  });
});

it('adds a drop-in to an existing unit, and removes only that', async () => {
  machine.unit(X, service('/mine'), { active: true });
  mkdirSync(host.path(`${PATH}.d`));
  writeFileSync(host.path(`${PATH}.d/theirs.conf`), '# theirs\n', { mode: 0o644 });
  await start();
  expect(await roll([unit({ dropIns: [{ name: 'ours.conf', content: '# ours\n' }] })])).toMatchObject({
    verdict: 'applied',
  });
  expect(machine.running(X)).toBe(`${service('/mine')}# ours\n# theirs\n`);
  await roll([]);
  expect(host.tree()).toMatchObject({ 'etc/systemd/system/x.service.d/theirs.conf': '644 # theirs\n' });
  expect(existsSync(host.path(`${PATH}.d/ours.conf`))).toBe(false);
  expect(
    await roll(
      [
        {
          ...unit({ dropIns: [{ name: 'a.conf', content: '' }] }),
          spec: { name: 'other.service', dropIns: [{ name: 'a.conf', content: '' }] },
        },
      ],
      [],
    ),
  ).toMatchObject({ verdict: 'failed', reason: expect.stringContaining('there is no unit other.service') as string });
});

it('does not start a unit that must not run, even if its restart is requested', async () => {
  await start();
  expect(await roll([unit({ content: service('/a', INSTALL), state: 'stopped', enabled: true })])).toMatchObject({
    verdict: 'applied',
  });
  expect(state()).toMatchObject({ running: undefined, enabled: true });
});

it('reports drift of its files, its state, and whether it is enabled', async () => {
  await host.start({ host: machine.settings, driftCheckMs: 40 });
  const entry = unit({ content: service('/a', INSTALL), enabled: true, state: 'started' });
  await roll([entry]);
  machine.become({ stop: X });
  expect(
    (await host.bus.reported(({ kind, differences }) => kind === 'drifted' && differences.length > 0)).differences,
  ).toEqual([`${X}: is inactive instead of started`]);
  machine.become({ start: X, disable: X });
  await host.bus.reported(
    ({ differences }) =>
      differences[0] === `${X}: is static instead of enabled` ||
      differences[0] === `${X}: is disabled instead of enabled`,
  );
  writeFileSync(host.path(PATH), 'edited');
  await host.bus.reported(({ differences }) => differences[0] === `${X}: ${PATH}: content differs`);
  expect(await roll([entry])).toMatchObject({ verdict: 'applied' });
  expect([readFileSync(host.path(PATH), 'utf8'), machine.active(X), machine.isEnabled(X)]).toEqual([
    service('/a', INSTALL),
    'active',
    true,
  ]);
});

const ANALYZE = spawnSync('systemd-analyze', ['--version']).status === 0;
(ANALYZE ? describe : describe.skip)(
  `what systemd does not take is invalid, before anything is touched${ANALYZE ? '' : ' (there is no systemd-analyze here)'}`,
  () => {
    it.each<[string, object, RegExp]>([
      [
        'an invalid section header',
        { content: '[Service\nExecStart=/bin/true\n' },
        /x\.service:1: Invalid section header/,
      ],
      ['a service without ExecStart', { content: '[Service]\nExecStrt=/bin/true\n' }, /Unknown key.*has no ExecStart/],
      ['garbage', { content: 'garbage' }, /Assignment outside of section/],
      [
        'an invalid drop-in',
        { content: service('/bin/true'), dropIns: [{ name: 'a.conf', content: '[Service]\nType=bogus\n' }] },
        /Failed to parse service type/,
      ],
    ])('%s', async (_name, spec, reason) => {
      await host.start({ host: { ...machine.settings, systemdAnalyze: 'systemd-analyze' } });
      const report = await roll([file('/f', 'x'), unit(spec)]);
      expect(report).toMatchObject({ verdict: 'invalid', restored: true, hash: EMPTY_HASH });
      expect(report.reason).toMatch(reason);
      expect([host.tree(), machine.calls()]).toEqual([{}, []]);
    });

    it('blames the node, not the config, for a missing program', async () => {
      await host.start({ host: { ...machine.settings, systemdAnalyze: 'systemd-analyze' } });
      expect(await roll([unit({ content: service('/nowhere/program') })])).toMatchObject({ verdict: 'applied' });
      rmSync(host.path('etc'), { recursive: true });
    });
  },
);

it('refuses to enable a unit that cannot be enabled', async () => {
  await start();
  expect(await roll([unit({ content: service('/a'), enabled: true })])).toMatchObject({
    verdict: 'invalid',
    reason: expect.stringContaining('no section [Install]') as string,
  });
});

it('reports no drift while its unit waits to be started, and drift if nothing will start it', async () => {
  await host.start({ host: { ...machine.settings, rebootCommand: [] }, driftCheckMs: 60 });
  await roll([unit({ content: service('/a', INSTALL), enabled: true, state: 'started' }), file('/etc/neighbour', 'x')]);
  machine.queue(X, true);
  writeFileSync(host.path('/etc/neighbour'), 'y');
  expect((await host.bus.reported(({ kind }) => kind === 'drifted')).differences).toEqual([
    expect.stringContaining('/etc/neighbour'),
  ]);
  machine.queue(X, false);
  const both = await host.bus.reported(({ kind, differences }) => kind === 'drifted' && differences.length > 1);
  expect(both.differences).toContain(`${X}: is inactive instead of started`);
});
