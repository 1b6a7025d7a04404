import { applierCommand } from './options.js';
import { settingsOf, type ApplierSettings } from './settings.js';

const settings = (argv: readonly string[], env: Readonly<Record<string, string>> = {}): ApplierSettings => {
  const before = process.env;
  process.env = { ...env, XDG_CONFIG_HOME: '/none' };
  try {
    const command = applierCommand('applier')
      .exitOverride()
      .configureOutput({ writeErr: () => undefined })
      .action(() => undefined);
    return settingsOf(command.parse([...argv], { from: 'user' }));
  } finally {
    process.env = before;
  }
};

test('every option has a flag, a variable and a description, and no two share one', () => {
  const { options } = applierCommand('applier');
  expect(options.filter(({ long, envVar, description }) => !long || !envVar || !description)).toEqual([]);
  for (const names of [options.map(({ long }) => long), options.map(({ envVar }) => envVar)])
    expect(new Set(names).size).toBe(names.length);
});

test('an option that is not set has its default', () => {
  expect(settings(['--node', 'w-1'])).toEqual({
    node: 'w-1',
    labels: {},
    root: '/',
    stateDir: '/var/lib/sluice',
    fresh: false,
    allowExec: false,
    allowSetuid: false,
    probeNetworks: [],
    host: {},
    reach: [],
    target: { servers: ['nats://127.0.0.1:4222'], from: 'the default' },
    heartbeatMs: 10_000,
    logLevel: 'info',
  });
});

test('flags and variables have the same effect', () => {
  const fromFlags = settings([
    ...['--node', 'w-1.dc1', '--label', 'zone=a', '--label', 'example.org/role=edge,empty='],
    ...['--server', 'a:4222,b:4222', '--token', 'secret', '--root', '/node', '--state', '/state', '--fresh'],
    ...[
      '--allow-exec',
      '--allow-setuid',
      '--probe-network',
      '10.0.0.0/8',
      '--probe-network',
      '2001:db8::/32,127.0.0.1',
      '--netns',
      'blue',
      '--reach',
      'a:1,b:2',
      '--reach',
      'c:3',
      '--systemctl',
      's',
    ],
    ...['--systemd-analyze', 'sa', '--reboot-command', 'systemctl reboot', '--proc', '/p', '--update-grub', 'ug -x'],
    ...['--heartbeat-seconds', '2.5', '--log-level', 'debug'],
  ]);
  expect(fromFlags).toMatchObject({
    labels: { zone: 'a', 'example.org/role': 'edge', empty: '' },
    target: { servers: ['nats://a:4222', 'nats://b:4222'], token: 'secret', from: '--server' },
    probeNetworks: ['10.0.0.0/8', '2001:db8::/32', '127.0.0.1'],
    network: { netns: 'blue' },
    reach: ['a:1', 'b:2', 'c:3'],
    host: { rebootCommand: ['systemctl', 'reboot'], updateGrub: ['ug', '-x'] },
    heartbeatMs: 2_500,
  });
  const env = {
    SLUICE_NODE: 'w-1.dc1',
    SLUICE_LABELS: 'zone=a,example.org/role=edge,empty=',
    NATS_URL: 'a:4222,b:4222',
    SLUICE_TOKEN: 'secret',
    SLUICE_ROOT: '/node',
    SLUICE_STATE: '/state',
    SLUICE_FRESH: 'true',
    SLUICE_ALLOW_EXEC: '1',
    SLUICE_ALLOW_SETUID: '1',
    SLUICE_NETNS: 'blue',
    SLUICE_PROBE_NETWORKS: '10.0.0.0/8, 2001:db8::/32,127.0.0.1',
    SLUICE_REACH: 'a:1,b:2,c:3',
    SLUICE_SYSTEMCTL: 's',
    SLUICE_SYSTEMD_ANALYZE: 'sa',
    SLUICE_REBOOT_COMMAND: 'systemctl reboot',
    SLUICE_PROC: '/p',
    SLUICE_UPDATE_GRUB: 'ug -x',
    SLUICE_HEARTBEAT_SECONDS: '2.5',
    SLUICE_LOG: 'debug',
  };
  expect(settings([], env)).toEqual({ ...fromFlags, target: { ...fromFlags.target, from: 'NATS_URL' } });
});

test('flags win over variables, and an empty variable counts as unset', () => {
  const env = { SLUICE_NODE: 'w-2', SLUICE_LABELS: 'zone=b', NATS_URL: 'b:4222', SLUICE_HEARTBEAT_SECONDS: '5' };
  const flags = ['--node', 'w-1', '--label', 'zone=a', '--server', 'a:4222', '--heartbeat-seconds', '1'];
  expect(settings(flags, env)).toMatchObject({
    node: 'w-1',
    labels: { zone: 'a' },
    target: { servers: ['nats://a:4222'] },
    heartbeatMs: 1_000,
  });
  const names = applierCommand('applier').options.flatMap(({ envVar }) =>
    envVar === undefined || envVar === 'SLUICE_REBOOT_COMMAND' ? [] : [envVar],
  );
  expect(settings(['--node', 'w-1'], Object.fromEntries(names.map((name) => [name, ''])))).toEqual(
    settings(['--node', 'w-1']),
  );
});

test('a switch is off if its variable is `false`, and an empty reboot command forbids reboots', () => {
  const env = { SLUICE_ALLOW_EXEC: 'false', SLUICE_FRESH: '0', SLUICE_REBOOT_COMMAND: '' };
  expect(settings(['--node', 'w-1'], env)).toMatchObject({
    fresh: false,
    allowExec: false,
    host: { rebootCommand: [] },
  });
});

test.each([
  ['no name', [], {}, 'the node has no name: give one with --node or SLUICE_NODE'],
  ['a bad name', ['--node', 'W_1'], {}, '--node: "W_1" is not a node name'],
  ['a label without a value', ['--label', 'zone'], {}, '"zone" is not a label. Write it like zone=a.'],
  [
    'a bad value',
    ['--node', 'a', '--label', 'zone=a b'],
    {},
    '--label: the value of the label zone must be a label value as in Kubernetes: at most 63 letters, digits, "-", "_" and ".", starting and ending with a letter or digit; or empty, but is "a b"',
  ],
  [
    'a bad key',
    ['--node', 'a', '--label', 'a..b/zone=a'],
    {},
    '--label: the key of the label "a..b/zone" must be a label key as in Kubernetes',
  ],
  ['a key that objects have', ['--node', 'a', '--label', '__proto__=a'], {}, 'the key of the label "__proto__" must'],
  ['two values for one label', ['--label', 'zone=a', '--label', 'zone=b'], {}, 'zone has two values, a and b'],
  ['a variable with a bad label', [], { SLUICE_LABELS: 'zone' }, "from env 'SLUICE_LABELS' is invalid"],
  ['a bad network', ['--probe-network', '10/8'], {}, '"10/8" is not a network. Write it like 10.0.0.0/8.'],
  ['a heartbeat interval of zero', ['--heartbeat-seconds', '0'], {}, 'It must be a number above 0, and at most 86400.'],
  [
    'a heartbeat interval that no timer can wait',
    ['--heartbeat-seconds', '2147484'],
    {},
    'above 0, and at most 86400.',
  ],
  [
    'an invalid interval in a variable',
    [],
    { SLUICE_HEARTBEAT_SECONDS: 'often' },
    "value 'often' from env 'SLUICE_HEARTBEAT_SECONDS'",
  ],
  ['an unknown log level', ['--log-level', 'loud'], {}, 'It must be one of trace, debug'],
  [
    'a switch that is neither true nor false',
    ['--node', 'a'],
    { SLUICE_FRESH: 'maybe' },
    'SLUICE_FRESH is "maybe", but must be true',
  ],
  ['an unknown flag', ['--nodes', 'a'], {}, "unknown option '--nodes'"],
] as const)('%s is refused', (_what, argv, env: Readonly<Record<string, string>>, message) => {
  expect(() => settings(argv, env)).toThrow(message);
});
