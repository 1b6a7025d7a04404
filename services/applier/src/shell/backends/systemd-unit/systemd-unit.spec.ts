import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
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
/** What a unit is: runs with, enabled, its files. */
const standing = () => ({
  running: machine.running(X),
  enabled: machine.isEnabled(X),
  files: Object.fromEntries(
    Object.entries(host.tree()).filter(([path, is]) => path.includes(X) && !is.startsWith('dir')),
  ),
});
const NOTHING = { running: undefined, enabled: false, files: {} };

it('writes, enables and starts a unit, and leaves nothing of it when it is deleted', async () => {
  await start();
  const entry = unit({
    content: service('/a', INSTALL),
    dropIns: [{ name: '10-more.conf', content: '[Service]\nNice=5\n' }],
    enabled: true,
    state: 'started',
  });
  expect(await roll([entry])).toMatchObject({ verdict: 'applied', changed: [X] });
  expect(standing()).toEqual({
    running: `${service('/a', INSTALL)}[Service]\nNice=5\n`,
    enabled: true,
    files: {
      'etc/systemd/system/x.service': `644 ${service('/a', INSTALL)}`,
      'etc/systemd/system/x.service.d/10-more.conf': '644 [Service]\nNice=5\n',
    },
  });
  machine.asked();
  expect(await roll([entry], [])).toMatchObject({ verdict: 'applied', changed: [] });
  expect(machine.asked()).toEqual([]);
  expect(await roll([])).toMatchObject({ verdict: 'applied', hash: EMPTY_HASH });
  expect(standing()).toEqual(NOTHING);
  expect(host.tree()).toEqual({});
});

it.each([
  ['ran and was enabled', { active: true, enabled: true }],
  ['ran and was not enabled', { active: true }],
  ['was enabled and did not run', { enabled: true }],
  ['neither ran nor was enabled', {}],
])('gives a unit back that %s', async (_name, is) => {
  machine.unit(X, service('/mine', INSTALL), is);
  const before = standing();
  await start();
  for (const spec of [{ enabled: true, state: 'started' }, { enabled: false, state: 'stopped' }, {}]) {
    expect(await roll([unit({ content: service('/ours', INSTALL), ...spec })])).toMatchObject({ verdict: 'applied' });
    expect(standing().files).toEqual({ 'etc/systemd/system/x.service': `644 ${service('/ours', INSTALL)}` });
    expect(await roll([])).toMatchObject({ verdict: 'applied' });
    expect(standing()).toEqual(before);
  }
});

it('takes a bad change back, with what ran before running again', async () => {
  machine.unit(X, service('/mine'), { active: true });
  await start();
  await roll([file('/etc/gate', 'open'), unit({ content: service('/good') })]);
  expect(standing().running).toBe(service('/good'));
  expect(
    await roll([
      file('/etc/gate', 'shut'),
      gate,
      unit({ content: service('/worse'), dropIns: [{ name: 'a.conf', content: '' }], state: 'stopped' }),
    ]),
  ).toMatchObject({ verdict: 'invalid', restored: true });
  expect(standing()).toEqual({
    running: service('/good'),
    enabled: false,
    files: { 'etc/systemd/system/x.service': `644 ${service('/good')}` },
  });
});

it('that fails to start is the fault of the node, and is taken back', async () => {
  machine.unit(X, service('/mine'), { active: true });
  await start();
  for (const spec of [{ content: service('/fails'), state: 'started' }, { content: service('/fails') }]) {
    expect(await roll([unit(spec)])).toMatchObject({ verdict: 'failed', restored: true, hash: EMPTY_HASH });
    expect(standing()).toEqual({
      running: service('/mine'),
      enabled: false,
      files: { 'etc/systemd/system/x.service': `644 ${service('/mine')}` },
    });
  }
});

it('adds to a unit of others, and takes only that away again', async () => {
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

it('does not start what must not run, though its restart is asked for', async () => {
  await start();
  expect(await roll([unit({ content: service('/a', INSTALL), state: 'stopped', enabled: true })])).toMatchObject({
    verdict: 'applied',
  });
  expect(standing()).toMatchObject({ running: undefined, enabled: true });
});

it('finds what drifted: its file, its state, whether it is enabled', async () => {
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
        'a section that is none',
        { content: '[Service\nExecStart=/bin/true\n' },
        /x\.service:1: Invalid section header/,
      ],
      ['a service that does nothing', { content: '[Service]\nExecStrt=/bin/true\n' }, /Unknown key.*has no ExecStart/],
      ['garbage', { content: 'garbage' }, /Assignment outside of section/],
      [
        'a drop-in that spoils it',
        { content: service('/bin/true'), dropIns: [{ name: 'a.conf', content: '[Service]\nType=bogus\n' }] },
        /Failed to parse service type/,
      ],
    ])('%s', async (_name, spec, reason) => {
      await host.start({ host: { ...machine.settings, systemdAnalyze: 'systemd-analyze' } });
      const report = await roll([file('/f', 'x'), unit(spec)]);
      expect(report).toMatchObject({ verdict: 'invalid', restored: true, hash: EMPTY_HASH });
      expect(report.reason).toMatch(reason);
      expect([host.tree(), machine.asked()]).toEqual([{}, []]);
    });

    it("but not a program that is missing here: that is the node's", async () => {
      await host.start({ host: { ...machine.settings, systemdAnalyze: 'systemd-analyze' } });
      expect(await roll([unit({ content: service('/nowhere/program') })])).toMatchObject({ verdict: 'applied' });
      rmSync(host.path('etc'), { recursive: true });
    });
  },
);

it('refuses to enable what cannot be enabled', async () => {
  await start();
  expect(await roll([unit({ content: service('/a'), enabled: true })])).toMatchObject({
    verdict: 'invalid',
    reason: expect.stringContaining('no section [Install]') as string,
  });
});

it('has not drifted while its unit waits for its turn to be started, and has when nobody starts it', async () => {
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
