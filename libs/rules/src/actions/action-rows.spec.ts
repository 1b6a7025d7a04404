import fc from 'fast-check';
import { ordered, type Action, type Config, type ConfigEntry, type Fragment } from '#libs/contracts';
import { effectivePolicy, planActions } from '../index.js';

const entry = (kind: string, name: string, spec: object): ConfigEntry => ({
  kind,
  name,
  spec: spec as ConfigEntry['spec'],
});
const file = (path: string, content = 'x'): ConfigEntry =>
  entry('File', path.replaceAll('/', '-').slice(1), { path, content });
const unit = (name: string, spec: object = { content: '[Service]' }): ConfigEntry =>
  entry('SystemdUnit', name.split('.')[0] ?? '', { name, ...spec });
const sysctl = (key: string, value = '1'): ConfigEntry => entry('Sysctl', key.replaceAll('.', '-'), { key, value });
const keys = (user: string, ...lines: string[]): ConfigEntry => entry('SshKeys', user, { user, keys: lines });
const kernel = (...args: string[]): ConfigEntry => entry('KernelArguments', 'args', { arguments: args });
const config = (...fragments: ConfigEntry[]): Config => ({ fragments });
const policy = (spec: object): Fragment =>
  ({ kind: 'DisruptionPolicy', name: 'p', labels: {}, spec: { nodeSelector: {}, ...spec } }) as Fragment;

const [none, drain, reboot, daemonReload] = [
  { kind: 'none' },
  { kind: 'drain' },
  { kind: 'reboot' },
  { kind: 'daemon-reload' },
] as const;
const reload = (name: string): Action => ({ kind: 'reload', unit: name });
const restart = (name: string): Action => ({ kind: 'restart', unit: name });
const plan = (from: Config, to: Config, ...specs: object[]) =>
  planActions(from, to, effectivePolicy(specs.map(policy), {}));

describe('without a policy', () => {
  test.each<[string, ConfigEntry, readonly Action[]]>([
    ['a file needs nothing', file('/etc/motd'), [none]],
    ['a directory needs nothing', entry('Directory', 'd', { path: '/srv' }), [none]],
    ['a link needs nothing', entry('Link', 'l', { path: '/a', target: '/b' }), [none]],
    ['a unit needs a daemon-reload and its restart', unit('a.service'), [daemonReload, restart('a.service')]],
    ['a kernel parameter needs nothing', sysctl('vm.swappiness'), [none]],
    ['SSH keys need nothing', keys('core', 'ssh-ed25519 A'), [none]],
    ['kernel arguments need a drain and a reboot', kernel('nosmt'), [drain, reboot]],
    ['a command needs nothing', entry('Exec', 'e', { check: { argv: ['a'] } }), [none]],
    ['a VRF needs nothing', entry('Vrf', 'v', { vrf: 'red' }), [none]],
    ['a layer-2 network needs nothing', entry('Layer2Network', 'l', { id: 7 }), [none]],
    ['a routing table needs nothing', entry('RoutingTable', 'r', { tableId: 7 }), [none]],
    ['a peering needs nothing', entry('BgpPeering', 'b', {}), [none]],
    ['an unknown kind needs a reboot', entry('Warp', 'w', {}), [reboot]],
  ])('%s, when it is added, removed or changed', (_name, one, actions) => {
    const other = { ...one, spec: { ...one.spec, added: true } };
    expect(plan(config(), config(one)).actions).toEqual(actions);
    expect(plan(config(one), config()).actions).toEqual(actions);
    expect(plan(config(one), config(other)).actions).toEqual(actions);
  });
});

describe('the cases that MCO tests', () => {
  const crio = { files: [{ path: '/etc/containers', actions: [reload('crio.service')] }] };
  const mco = {
    default: [drain, reboot],
    ...crio,
    units: [{ name: 'chronyd.service', actions: [daemonReload, restart('chronyd.service')] }],
    sshKeys: { actions: [none] },
  };

  test.each<[string, Config, Config, readonly object[], readonly Action[]]>([
    ['identical configs', config(file('/a'), unit('b.service')), config(file('/a'), unit('b.service')), [mco], []],
    [
      'identical configs in another order, with other names',
      config(file('/a'), file('/b')),
      config({ ...file('/b'), name: 'n' }, file('/a')),
      [mco],
      [],
    ],
    ['no config before', config(), config(file('/etc/containers/x')), [mco], [reload('crio.service')]],
    ['no config after', config(file('/etc/containers/x')), config(), [mco], [reload('crio.service')]],
    ['no config at all', config(), config(), [mco], []],
    ['a file without a path', config(), config(entry('File', 'f', { content: 'x' })), [mco], [drain, reboot]],
    ['a unit without a name', config(), config(entry('SystemdUnit', 'u', {})), [mco], [drain, reboot]],
    [
      'a spec with values of the wrong type',
      config(),
      config(entry('Sysctl', 's', { key: 7, value: [null] })),
      [{ sysctl: [{ key: 'vm', actions: [reboot] }] }],
      [none],
    ],
    ['a domain without an exception', config(), config(file('/opt/x')), [mco], [drain, reboot]],
    [
      'an exception for a folder',
      config(),
      config(file('/etc/containers/registries.d/x')),
      [mco],
      [reload('crio.service')],
    ],
    [
      'an exception for a folder does not apply to a path that only starts with its name',
      config(),
      config(file('/etc/containers2')),
      [mco],
      [drain, reboot],
    ],
    [
      'an exception for a unit',
      config(),
      config(unit('chronyd.service')),
      [mco],
      [daemonReload, restart('chronyd.service')],
    ],
    ['a unit is matched by its exact name', config(), config(unit('chronyd.socket')), [mco], [drain, reboot]],
    ['an exception for SSH keys', config(), config(keys('core', 'k')), [mco], [none]],
    [
      'SSH keys without an exception',
      config(),
      config(keys('core', 'k')),
      [{ default: [drain, reboot] }],
      [drain, reboot],
    ],
    [
      'exceptions of several domains',
      config(),
      config(file('/etc/containers/x'), keys('core', 'k'), unit('chronyd.service')),
      [mco],
      [daemonReload, reload('crio.service'), restart('chronyd.service')],
    ],
    [
      'an exception and something without one',
      config(),
      config(file('/etc/containers/x'), file('/opt/x')),
      [mco],
      [drain, reboot],
    ],
    [
      'a drain and a restart',
      config(),
      config(file('/a'), file('/b')),
      [
        {
          files: [
            { path: '/a', actions: [restart('a')] },
            { path: '/b', actions: [drain] },
          ],
        },
      ],
      [drain, restart('a')],
    ],
    [
      'an unknown action',
      config(),
      config(file('/a')),
      [{ files: [{ path: '/a', actions: [{ kind: 'kexec' }] }] }],
      [reboot],
    ],
    ['a restart without a unit', config(), config(file('/a')), [{ default: [{ kind: 'restart' }] }], [reboot]],
    ['none with another action', config(), config(file('/a')), [{ default: [none, reload('a')] }], [reload('a')]],
    [
      'a reboot with another action',
      config(),
      config(file('/a'), file('/b')),
      [
        {
          files: [
            { path: '/a', actions: [reboot] },
            { path: '/b', actions: [reload('b')] },
          ],
        },
      ],
      [reboot],
    ],
    [
      'the same action twice',
      config(),
      config(file('/etc/containers/x'), file('/etc/containers/y')),
      [mco],
      [reload('crio.service')],
    ],
    [
      'kernel arguments with a default of none',
      config(),
      config(kernel('nosmt')),
      [{ default: [none] }],
      [drain, reboot],
    ],
    [
      'no actions for a folder',
      config(),
      config(file('/a/b')),
      [{ default: [reboot], files: [{ path: '/a', actions: [] }] }],
      [],
    ],
  ])('%s', (_name, from, to, specs, actions) => {
    expect(plan(from, to, ...specs).actions).toEqual(actions);
  });
});

describe('rules for kernel parameters and networks', () => {
  const rules = {
    sysctl: [
      { key: 'net', actions: [drain] },
      { key: 'net.ipv4', actions: [reload('a')] },
      { key: 'net.ipv4.ip_forward', actions: [none] },
    ],
    network: [{ kind: 'Vrf', actions: [drain] }],
  };
  test.each<[string, ConfigEntry, readonly Action[], string]>([
    ['the key itself', sysctl('net.ipv4.ip_forward'), [none], 'DisruptionPolicy/p sysctl net.ipv4.ip_forward'],
    ['the longest prefix', sysctl('net.ipv4.tcp_syncookies'), [reload('a')], 'DisruptionPolicy/p sysctl net.ipv4'],
    ['only whole segments', sysctl('net.ipv4x.y'), [drain], 'DisruptionPolicy/p sysctl net'],
    ['another key', sysctl('vm.swappiness'), [none], 'default of Sysctl'],
    ['the network kind', entry('Vrf', 'v', {}), [drain], 'DisruptionPolicy/p network Vrf'],
    ['another network kind', entry('RoutingTable', 'r', {}), [none], 'default of RoutingTable'],
  ])('%s', (_name, one, actions, rule) => {
    expect(plan(config(), config(one), rules)).toMatchObject({ actions, because: [{ rule, actions }] });
  });

  test('a change is named by its unit, key or path, whatever its fragment is called', () => {
    const to = config(unit('a.service'), sysctl('vm.swappiness'), file('/etc/a'), keys('core', 'k'));
    expect(plan(config(), to).changed).toEqual(['/etc/a', 'SshKeys/core', 'a.service', 'vm.swappiness']);
    expect(
      plan(to, config(...to.fragments.map((one) => (one.kind === 'SshKeys' ? one : { ...one, name: 'other' }))))
        .changed,
    ).toEqual([]);
  });
});

test('the parts of a change never need more than the whole, and the whole no more than its parts', () => {
  const entries = fc.subarray([
    file('/etc/a'),
    file('/etc/b/c'),
    unit('a.service'),
    unit('b.service'),
    sysctl('vm.a'),
    keys('core', 'k'),
    kernel('x'),
    entry('Vrf', 'v', {}),
  ]);
  const rules = effectivePolicy(
    [
      policy({
        files: [{ path: '/etc/b', actions: [restart('b.service')] }],
        units: [{ name: 'a.service', actions: [drain, reload('a.service')] }],
        sysctl: [{ key: 'vm', actions: [daemonReload] }],
      }),
    ],
    {},
  );
  fc.assert(
    fc.property(entries, entries, (some, others) => {
      const whole = planActions(config(), config(...new Set([...some, ...others])), rules).actions;
      const parts = [
        ...planActions(config(), config(...some), rules).actions,
        ...planActions(config(), config(...others), rules).actions,
      ];
      expect(whole).toEqual(ordered(parts));
    }),
  );
});

test('the plan is the same in any order of fragments and keys', () => {
  const entries = [file('/etc/a'), file('/etc/b'), unit('a.service'), sysctl('vm.a'), keys('core', 'k'), kernel('x')];
  const shuffled = (): fc.Arbitrary<ConfigEntry[]> =>
    fc.shuffledSubarray(entries).map((all) =>
      all.map(({ kind, name, spec }) => ({
        spec: Object.fromEntries(Object.entries(spec).reverse()) as ConfigEntry['spec'],
        name,
        kind,
      })),
    );
  fc.assert(
    fc.property(shuffled(), shuffled(), (from, to) => {
      const sorted = (all: readonly ConfigEntry[]): Config =>
        config(...entries.filter((one) => all.some(({ kind, name }) => one.kind === kind && one.name === name)));
      expect(plan(config(...from), config(...to))).toEqual(plan(sorted(from), sorted(to)));
    }),
  );
});
