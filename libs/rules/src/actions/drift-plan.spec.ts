import type { Action, Config, ConfigEntry, Fragment } from '#libs/contracts';
import { effectivePolicy, NO_POLICY, planDriftActions } from '../index.js';

const entry = (kind: string, name: string, spec: object): ConfigEntry => ({
  kind,
  name,
  spec: spec as ConfigEntry['spec'],
});
const file = (path: string, content = 'x'): ConfigEntry => entry('File', path, { path, content });
const config = (...fragments: ConfigEntry[]): Config => ({ fragments });
const restart = (unit: string): Action => ({ kind: 'restart', unit });
const BOOT: readonly Action[] = [{ kind: 'drain' }, { kind: 'reboot' }];
const policy = effectivePolicy(
  [
    {
      kind: 'DisruptionPolicy',
      name: 'p',
      labels: {},
      spec: {
        nodeSelector: {},
        files: [
          { path: '/etc/a', actions: [restart('a.service')] },
          { path: '/etc/b', actions: [restart('b.service')] },
          { path: '/boot', actions: BOOT },
        ],
        network: [{ kind: 'Vrf', actions: [restart('router.service')] }],
      },
    } as unknown as Fragment,
  ],
  {},
);
const vrf = entry('Vrf', 'blue', {});
const ALL = config(
  file('/etc/a/x'),
  file('/etc/b'),
  file('/boot/c'),
  file('/free'),
  entry('SystemdUnit', 'u', { name: 'u.service' }),
  entry('Exec', 'e', {}),
  vrf,
);

it.each<[string, readonly string[], readonly Action[]]>([
  ['no actions, if nothing has drifted', [], []],
  ['the actions of its rule', ['/etc/a/x: content differs'], [restart('a.service')]],
  [
    'the actions of the rules for all paths',
    ['/etc/b: missing', '/etc/a/x: mode 0600 instead of 0644'],
    [restart('a.service'), restart('b.service')],
  ],
  ['a drain and a reboot', ['/boot/c: content differs', '/etc/b: missing'], BOOT],
  ['none, if the rule says none', ['/free: content differs'], [{ kind: 'none' }]],
  [
    'the default of a unit',
    ['u.service: /etc/systemd/system/u.service: content differs'],
    [{ kind: 'daemon-reload' }, restart('u.service')],
  ],
  ['the default of a kind without a path', ['Exec/e: check ended with 1'], [{ kind: 'none' }]],
  [
    'the actions of all network fragments, if the report names an interface',
    ['br.blue: missing'],
    [restart('router.service')],
  ],
  ['the actions of the whole config, if the report does not list all drift', ['/free: missing', '… and 3 more'], BOOT],
])('drift needs %s', (_name, drift, actions) => {
  expect(planDriftActions(ALL, ALL, drift, policy)).toEqual(actions);
});

it('plans for every place that a truncated text may refer to', () => {
  const long = `/etc/b/${'x'.repeat(260)}`;
  const drift = [`${`${long}1: missing`.slice(0, 255)}…`];
  expect(planDriftActions(EMPTY, config(file(`${long}1`), file('/etc/a')), drift, policy)).toEqual([
    restart('b.service'),
  ]);
});

it('plans for every place if no place has the name and there is no network', () => {
  expect(planDriftActions(EMPTY, config(file('/etc/a'), file('/free')), ['odd: missing'], policy)).toEqual([
    restart('a.service'),
  ]);
});

it('does not plan for a place that the lease removes, because that is a change', () => {
  expect(planDriftActions(config(file('/etc/a')), config(file('/boot/c')), ['/etc/a: missing'], policy)).toEqual([]);
});

it('does not confuse a path with its prefix', () => {
  const both = config(file('/etc/a'), file('/etc/a/b'));
  expect(planDriftActions(both, both, ['/etc/a: missing'], NO_POLICY)).toEqual([{ kind: 'none' }]);
  const one = config(file('/etc/b'), file('/etc/bb'));
  expect(planDriftActions(one, one, ['/etc/bb: missing'], policy)).toEqual([{ kind: 'none' }]);
});

const EMPTY = config();
