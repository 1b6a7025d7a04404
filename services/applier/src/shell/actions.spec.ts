import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Action } from '#libs/contracts';
import { until } from '#libs/testing';
import { FakeMachine } from '../testing/fake-machine.js';
import { config, file, Host, probe } from './applier-host.fixture.js';
import { Systemd } from './host/systemd.js';
import { EMPTY_HASH } from './index.js';

const DAEMON_RELOAD: Action = { kind: 'daemon-reload' };
const reload: Action = { kind: 'reload', unit: 'x.service' };
const restart: Action = { kind: 'restart', unit: 'x.service' };
const REBOOT: readonly Action[] = [{ kind: 'drain' }, { kind: 'reboot' }];
const UNIT = '/etc/systemd/system/x.service';
const service = (command: string): string => `[Service]\nExecStart=${command}\n`;
const gate = probe('gate', { file: { path: '/etc/gate', matches: '^open' } });

let host: Host;
let machine: FakeMachine;
beforeEach(() => {
  host = new Host();
  machine = new FakeMachine(host.folder, host.root);
});
afterEach(() => host.end());

it('announces actions only if systemctl answers', async () => {
  await host.start({ host: machine.settings });
  expect(host.bus.reports[0]?.capabilities).toEqual(
    expect.arrayContaining(['action:daemon-reload', 'action:reboot', 'action:reload', 'action:restart']),
  );
  for (const settings of [
    {},
    { systemctl: machine.program('offline', 'echo offline; exit 1') },
    { systemctl: '/nowhere/systemctl' },
  ]) {
    const other = new Host();
    await other.start({ host: settings });
    expect(other.bus.reports[0]?.capabilities.filter((word) => word.startsWith('action:'))).toEqual([]);
    await other.end();
  }
});

it('announces units although systemd does not answer at first', async () => {
  const calls = join(host.folder, 'asked');
  const answers = `echo asked >> ${calls}; [ $(wc -l < ${calls}) -lt 3 ] && { echo unknown; exit 1; }; echo starting; exit 1`;
  await host.start({ host: { systemctl: machine.program('busy', answers) } });
  expect(host.bus.reports[0]?.capabilities).toEqual(expect.arrayContaining(['action:restart', 'kind:SystemdUnit']));
  expect(readFileSync(calls, 'utf8')).toBe('asked\n'.repeat(3));
});

it('does not start if systemd never answers', async () => {
  const systemd = new Systemd(machine.program('silent', 'echo unknown; exit 1'), '/', new AbortController().signal);
  await expect(systemd.isThere(1)).rejects.toThrow('is-system-running printed "unknown"');
});

it('blames systemctl, not the state folder, if it fails before a change', async () => {
  const { systemctl = '' } = machine.settings;
  machine.unit('x.service', service('/old'), { active: true });
  const broken = machine.program(
    'broken',
    `for word in "$@"; do [ "$word" = show ] && { echo Transport endpoint is not connected >&2; exit 1; }; done; exec '${systemctl}' "$@"`,
  );
  const errors: string[] = [];
  const log = {
    info: () => undefined,
    warn: () => undefined,
    error: (_: object, message: string) => void errors.push(message),
  };
  await host.start({ host: { ...machine.settings, systemctl: broken }, log });
  const report = await host.bus.roll(config(file('/etc/a', 'new')), { actions: [restart] });
  expect(report).toMatchObject({ kind: 'failed', restored: true });
  expect(report.reason).toMatch(/action restart of x\.service: systemctl show: .*Transport endpoint is not connected/);
  expect([errors, host.tree()['etc/a']]).toEqual([[], undefined]);
});

it('takes actions in order after all items are applied, and again during the rollback', async () => {
  machine.unit('x.service', service('/old'), { active: true });
  await host.start({ host: machine.settings });
  const opening = [file(UNIT, service('/new')), file('/etc/gate', 'open')];
  expect(await host.bus.roll(config(...opening, gate), { actions: [DAEMON_RELOAD, restart] })).toMatchObject({
    verdict: 'applied',
  });
  expect(machine.calls()).toEqual(['daemon-reload', 'restart x.service']);
  expect(machine.running('x.service')).toBe(service('/new'));
  const bad = config(file(UNIT, service('/bad')), file('/etc/gate', 'shut'), gate);
  expect(await host.bus.roll(bad, { actions: [DAEMON_RELOAD, reload] })).toMatchObject({
    verdict: 'invalid',
    restored: true,
    probe: 'gate',
  });
  expect(machine.calls()).toEqual(['daemon-reload', 'reload x.service', 'daemon-reload', 'reload x.service']);
  expect(machine.running('x.service')).toBe(service('/new'));
});

it('changes nothing if an action is for another root or for a unit that does not exist', async () => {
  const applier = await host.start();
  expect(await host.bus.roll(config(file('/f', 'x')), { actions: [restart] })).toMatchObject({
    verdict: 'failed',
    reason: 'this node does not support action restart of x.service',
    hash: EMPTY_HASH,
  });
  await applier.stop();
  await host.start({ host: machine.settings });
  expect(await host.bus.roll(config(file('/f', 'x')), { actions: [restart] })).toMatchObject({
    verdict: 'failed',
    reason: 'action restart: there is no unit x.service',
  });
  expect([host.tree(), machine.calls()]).toEqual([{}, []]);
});

it('skips a unit that the change removed, and reloads no unit that does not run', async () => {
  await host.start({ host: machine.settings });
  await host.bus.roll(config(file(UNIT, service('/a'))), { actions: [DAEMON_RELOAD] });
  expect(await host.bus.roll(config(file(UNIT, service('/b'))), { actions: [DAEMON_RELOAD, reload] })).toMatchObject({
    verdict: 'applied',
  });
  expect(await host.bus.roll(config(), { actions: [DAEMON_RELOAD, restart] })).toMatchObject({
    verdict: 'applied',
    hash: EMPTY_HASH,
  });
  expect(machine.calls()).toEqual(['daemon-reload', 'daemon-reload', 'daemon-reload']);
});

describe('an action that fails or hangs', () => {
  it.each([
    ['fails', 20_000],
    ['hangs', 2_400],
  ])('is followed by a rollback on a machine that must not reboot (it %s)', async (how, applyMs) => {
    machine.unit('x.service', service('/old'), { active: true });
    await host.start({ host: { ...machine.settings, rebootCommand: [] } });
    const report = await host.bus.roll(config(file(UNIT, service(`/${how}`))), {
      actions: [DAEMON_RELOAD, restart],
      applyMs,
    });
    expect(report).toMatchObject({ verdict: 'failed', restored: true, hash: EMPTY_HASH });
    expect(report.reason).toMatch(
      new RegExp(
        `^action restart x.service: .* ${how === 'fails' ? 'ended with 1: Job for x.service failed' : 'was killed after'}`,
      ),
    );
    expect(machine.running('x.service')).toBe(service('/old'));
  });

  it('rolls back and asks for a reboot if its lease allows neither a drain nor a reboot', async () => {
    machine.unit('x.service', service('/old'), { active: true });
    await host.start({ host: machine.settings });
    const report = await host.bus.roll(config(file(UNIT, service('/fails'))), { actions: [DAEMON_RELOAD, restart] });
    expect(report).toMatchObject({ verdict: 'failed', needsRestart: true, restored: true, hash: EMPTY_HASH });
    expect([machine.running('x.service'), machine.rebootAsked]).toEqual([service('/old'), false]);
  });

  it('is escalated on a drained node: the machine is asked to reboot, and the result decides', async () => {
    for (const comesUp of [true, false]) {
      machine.unit('x.service', service('/old'), { active: true, enabled: true });
      const first = await host.start({ host: machine.settings, bootId: 'one' });
      host.bus.grant(config(file(UNIT, service('/fails'))), { actions: [{ kind: 'drain' }, DAEMON_RELOAD, restart] });
      await until(() => machine.rebootAsked);
      await first.stop();
      machine.boot();
      if (comesUp) machine.unit('x.service', service('/fails'), { active: true });
      const second = await host.start({ host: machine.settings, bootId: 'two' });
      const report = await host.bus.reported(({ lease }) => lease === 'l1');
      expect(report.reason).toMatch(/^action restart x.service: .*Job for x.service failed/);
      expect(report).toMatchObject(
        comesUp ? { verdict: 'applied', bootId: 'two' } : { verdict: 'failed', bootId: 'two', restored: true },
      );
      expect(report.reason).toContain(comesUp ? 'the machine was restarted instead' : 'x.service has failed');
      expect(machine.running('x.service')).toBe(service(comesUp ? '/fails' : '/old'));
      expect(machine.calls()).not.toContain('reboot');
      await second.stop();
      await host.end();
      host = new Host();
      machine = new FakeMachine(host.folder, host.root);
    }
  });
});

describe('a reboot', () => {
  it('is requested once by a real command, and confirmed on another boot', async () => {
    const first = await host.start({ host: machine.settings, bootId: 'one' });
    host.bus.grant(config(file('/f', 'new')), { actions: REBOOT });
    await until(() => machine.rebootAsked);
    expect(host.bus.reports.some(({ lease }) => lease === 'l1')).toBe(false);
    await first.stop();
    await host.start({ host: machine.settings, bootId: 'two' });
    expect(await host.bus.reported(({ lease }) => lease === 'l1')).toMatchObject({ verdict: 'applied', bootId: 'two' });
    expect(machine.calls()).toEqual(['reboot']);
  });

  it('is followed by a rollback with one more reboot if a probe fails after it', async () => {
    const first = await host.start({ host: machine.settings, bootId: 'one' });
    await host.bus.roll(config(file('/etc/gate', 'open')));
    host.bus.grant(config(file('/etc/gate', 'shut'), gate), { actions: REBOOT });
    await until(() => machine.rebootAsked);
    await first.stop();
    machine.boot();
    const second = await host.start({ host: machine.settings, bootId: 'two', awaitReport: false });
    await until(() => machine.rebootAsked);
    expect(host.tree()).toMatchObject({ 'etc/gate': '644 open' });
    await second.stop();
    machine.boot();
    await host.start({ host: machine.settings, bootId: 'three' });
    expect(await host.bus.reported(({ lease, kind }) => lease === 'l2' && kind === 'invalid')).toMatchObject({
      probe: 'gate',
      restored: true,
      bootId: 'three',
    });
  });

  it('is given up if it does not happen in time, and the node is restored', async () => {
    await host.start({ host: machine.settings, bootId: 'one' });
    const report = await host.bus.roll(config(file('/f', 'new')), { actions: REBOOT, applyMs: 1_500 });
    expect(report).toMatchObject({ verdict: 'failed', restored: true, hash: EMPTY_HASH });
    expect(report.reason).toContain('the machine was told to restart, but did not');
    expect(host.tree()).toEqual({});
  });
});
