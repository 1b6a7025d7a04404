import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { checkManifest } from '#libs/manifests';
import { compileFragment, renderNode } from '#libs/rules';
import { importDocuments } from './import-documents.js';
import { file, files, machineConfig, specs, messagesOf } from './machine-config.fixture.js';

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
const KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGq6 core@example';
const drainAndReboot = [{ kind: 'drain' }, { kind: 'reboot' }];
/** MCO does nothing after a change of SSH keys that no rule names. */
const nothing = { actions: [{ kind: 'none' }] };
const WORKERS = { matchExpressions: [{ key: 'node-role.kubernetes.io/worker', operator: 'Exists' }] };
const resource = (kind: string, name: string, spec: object): object => ({
  apiVersion: 'network.schiff.telekom.de/v1alpha1',
  kind,
  metadata: { name },
  spec,
});

describe('a MachineConfig', () => {
  test("becomes files, directories, units, keys and kernel arguments of the nodes of its role, with MCO's default", () => {
    const { manifests, words: messages } = importDocuments([
      machineConfig('99-worker', {
        config: {
          storage: {
            files: [file('/etc/motd', 'data:,hello%20you%0A', { mode: 420, overwrite: true })],
            directories: [{ path: '/srv/x', mode: 493 }],
          },
          systemd: {
            units: [
              { name: 'a.service', enabled: true, contents: '[Service]\nExecStart=/bin/true\n' },
              { name: 'crio.service', dropins: [{ name: '10-x.conf', contents: '[Service]\n' }] },
            ],
          },
          passwd: { users: [{ name: 'core', sshAuthorizedKeys: [KEY] }] },
        },
        kernelArguments: ['nosmt', 'hugepages=64'],
      }),
    ]);
    expect(messages).toEqual([]);
    expect(manifests.map(({ kind, metadata, spec }) => [kind, (metadata as { name: string }).name, spec])).toEqual([
      [
        'File',
        '99-worker-etc-motd',
        { nodeSelector: WORKERS, path: '/etc/motd', content: 'hello you\n', mode: '0644' },
      ],
      ['Directory', '99-worker-srv-x', { nodeSelector: WORKERS, path: '/srv/x', mode: '0755' }],
      [
        'SystemdUnit',
        '99-worker-a-service',
        { nodeSelector: WORKERS, name: 'a.service', content: '[Service]\nExecStart=/bin/true\n', enabled: true },
      ],
      [
        'SystemdUnit',
        '99-worker-crio-service',
        { nodeSelector: WORKERS, name: 'crio.service', dropIns: [{ name: '10-x.conf', content: '[Service]\n' }] },
      ],
      ['SshKeys', 'worker-core', { nodeSelector: WORKERS, user: 'core', keys: [KEY] }],
      ['KernelArguments', 'worker', { nodeSelector: WORKERS, arguments: ['nosmt', 'hugepages=64'] }],
      ['DisruptionPolicy', 'mco-worker', { nodeSelector: WORKERS, default: drainAndReboot, sshKeys: nothing }],
    ]);
  });

  const gzip = `data:;base64,${gzipSync('packed ä\n').toString('base64')}`;
  test.each<[string, object, string]>([
    ['percent-encoded', file('/a', 'data:text/plain;charset=utf-8,%C3%A4+b%25'), 'ä+b%'],
    ['base64', file('/a', `data:;base64,${Buffer.from('hi\n').toString('base64')}`), 'hi\n'],
    ['gzip', file('/a', gzip, {}, { compression: 'gzip' }), 'packed ä\n'],
    ['none', { path: '/a' }, ''],
    [
      'with a digest',
      file('/a', 'data:,x', {}, { verification: { hash: `sha256-${createHash('sha256').update('x').digest('hex')}` } }),
      'x',
    ],
  ])('reads contents: %s', (_name, one, content) => {
    expect(specs('File', machineConfig('m', files(one)))).toMatchObject([{ path: '/a', content }]);
  });

  test('writes contents that are not UTF-8 in base64, also if only a part of them is not', () => {
    const bytes = Buffer.from([0xff, 0, 0xfe, 0x7b, 0x7b]);
    const source = `data:;base64,${bytes.toString('base64')}`;
    const appended = { path: '/b', contents: { source: 'data:,%C3' }, append: [{ source: 'data:,%A4%FF' }] };
    const split = { path: '/c', contents: { source: 'data:,%C3' }, append: [{ source: 'data:,%A4' }] };
    const document = machineConfig('m', files(file('/a', source, { mode: 0o600 }), appended, split));
    const nodeSelector = WORKERS;
    expect(specs('File', document)).toEqual([
      { nodeSelector, path: '/a', content: '/wD+e3s=', encoding: 'base64', mode: '0600' },
      { nodeSelector, path: '/b', content: 'w6T/', encoding: 'base64' },
      { nodeSelector, path: '/c', content: 'ä' },
    ]);
    expect(messagesOf(document)).toEqual([]);
  });

  test('imports symbolic links, and names what it leaves out of them', () => {
    const links = [
      { path: '/etc/localtime', target: '../usr/share/zoneinfo/{{UTC', overwrite: true, hard: false },
      { path: '/owned', target: '/x', user: { name: 'core' } },
      { path: '/hard', target: '/x', hard: true },
      { path: '/nowhere' },
    ];
    const document = machineConfig('m', { config: { storage: { links } } });
    expect(specs('Link', document)).toEqual([
      { nodeSelector: WORKERS, path: '/etc/localtime', target: '../usr/share/zoneinfo/{{{{UTC' },
      { nodeSelector: WORKERS, path: '/owned', target: '/x' },
    ]);
    expect(messagesOf(document)).toEqual([
      'MachineConfig/m /owned: skipped user: unsupported field',
      'skipped MachineConfig/m /hard: hard links are not supported',
      'skipped MachineConfig/m /nowhere: it has no target',
    ]);
  });

  test.each<[string, object, RegExp]>([
    [
      'remote contents',
      file('/a', 'https://example.com/x'),
      /\/a: import does not download its content from https:\/\/example\.com\/x$/,
    ],
    [
      'contents that claim to be gzip but are not',
      file('/a', 'data:,plain', {}, { compression: 'gzip' }),
      /is not valid gzip/,
    ],
    [
      'a gzip bomb',
      file('/a', `data:;base64,${gzipSync(Buffer.alloc(10_000_000)).toString('base64')}`, {}, { compression: 'gzip' }),
      /larger than 921600 bytes/,
    ],
    [
      'a wrong digest',
      file('/a', 'data:,x', {}, { verification: { hash: `sha512-${'0'.repeat(128)}` } }),
      /does not match its sha512 digest/,
    ],
    [
      'a file that Sluice would refuse',
      file('relative', 'data:,x'),
      /skipped File\/m-relative: spec\.path must be absolute/,
    ],
  ])('skips %s, and says so', (_name, one, word) => {
    expect(specs('File', machineConfig('m', files(one)))).toEqual([]);
    expect(messagesOf(machineConfig('m', files(one)))).toEqual([expect.stringMatching(word)]);
  });

  test('names what is unsupported', () => {
    expect(
      messagesOf(
        machineConfig('m', {
          config: {
            storage: { files: [file('/a', 'data:,')], links: [{ path: '/l' }] },
            passwd: { users: [{ name: 'core', passwordHash: 'x' }], groups: [{ name: 'g' }] },
            systemd: { units: [{ name: 'm.service', mask: true }] },
          },
          osImageURL: 'x',
          fips: true,
          kernelType: 'realtime',
          extensions: ['usbguard'],
          somethingNew: 1,
        }),
      ),
    ).toEqual([
      'MachineConfig/m user core: skipped passwordHash: unsupported field',
      'MachineConfig/m: skipped passwd.groups: unsupported field',
      ...['osImageURL', 'fips', 'kernelType', 'extensions', 'somethingNew'].map(
        (field) => `MachineConfig/m: skipped ${field}: unsupported field`,
      ),
      'skipped MachineConfig/m /l: it has no target',
      'MachineConfig/m m.service: unsupported field mask: imported as a unit that is disabled and stopped',
    ]);
  });

  test('with a later name replaces the paths of earlier ones with the same role, and adds keys and arguments', () => {
    const both = [
      machineConfig('b', { ...files(file('/a', 'data:,b')), kernelArguments: ['x', 'y'] }),
      machineConfig('a', { ...files(file('/a', 'data:,a')), kernelArguments: ['x'] }),
      machineConfig('c', files(file('/a', 'data:,c')), 'master'),
    ];
    expect(specs('File', ...both)).toMatchObject([{ content: 'c' }, { content: 'b' }]);
    expect(specs('KernelArguments', ...both)).toMatchObject([{ arguments: ['x', 'y'] }]);
    expect(messagesOf(...both)).toEqual(['MachineConfig/a: content of /a is overridden by MachineConfig/b']);
  });

  test('contains no templates: its text reaches the node unchanged', () => {
    const text = '{{ .Name }} {{{x}}} {{{{';
    const [manifest] = importDocuments([
      machineConfig('m', files(file('/a', `data:,${encodeURIComponent(text)}`))),
    ]).manifests;
    const checked = checkManifest(manifest, 'm');
    if (!checked.ok) throw new Error(JSON.stringify(checked.reasons));
    expect(
      JSON.stringify(renderNode([compileFragment(checked.fragment)], { name: 'n', labels: {} }, sha256)),
    ).toContain(JSON.stringify(text).slice(1, -1));
  });

  test('with a name that is too long gets a shorter one that is still unique', () => {
    const long = `/${'x'.repeat(100)}`;
    const { manifests } = importDocuments([
      machineConfig(
        'm',
        files(file(`${long}a`, 'data:,'), file(`${long}b`, 'data:,'), file('/a/b', 'data:,'), file('/a-b', 'data:,')),
      ),
    ]);
    const names = manifests.map(({ metadata }) => (metadata as { name: string }).name);
    expect(new Set(names).size).toBe(5);
    expect(names.every((name) => /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(name))).toBe(true);
  });
});

test("a node disruption policy keeps MCO's default for everything that it does not name", () => {
  const policy = {
    files: [
      { path: '/etc/a', actions: [{ type: 'Reload', reload: { serviceName: 'a.service' } }, { type: 'Drain' }] },
      { path: '/etc/containers/registries.conf', actions: [{ type: 'Special' }] },
    ],
    units: [
      {
        name: 'b.service',
        actions: [{ type: 'DaemonReload' }, { type: 'Restart', restart: { serviceName: 'b.service' } }],
      },
    ],
    sshkey: { actions: [{ type: 'None' }] },
  };
  const document = {
    apiVersion: 'operator.openshift.io/v1',
    kind: 'MachineConfiguration',
    metadata: { name: 'cluster' },
    spec: { nodeDisruptionPolicy: policy, managementState: 'Managed' },
  };
  const spec = {
    nodeSelector: {},
    default: drainAndReboot,
    files: [
      { path: '/etc/a', actions: [{ kind: 'reload', unit: 'a.service' }, { kind: 'drain' }] },
      {
        path: '/etc/containers/registries.conf',
        actions: [{ kind: 'drain' }, { kind: 'reload', unit: 'crio.service' }],
      },
    ],
    units: [{ name: 'b.service', actions: [{ kind: 'daemon-reload' }, { kind: 'restart', unit: 'b.service' }] }],
    sshKeys: { actions: [{ kind: 'none' }] },
  };
  expect(importDocuments([document])).toMatchObject({
    manifests: [{ kind: 'DisruptionPolicy', metadata: { name: 'cluster' }, spec }],
    words: [expect.stringContaining('unsupported action Special: imported as drain and reload crio.service')],
  });
  expect(specs('DisruptionPolicy', { kind: 'NodeDisruptionPolicy', metadata: { name: 'x' }, spec: policy })).toEqual([
    spec,
  ]);
});

describe('the resources of the network operator', () => {
  test('become VRFs, layer-2 networks and routing tables', () => {
    const { manifests, words: messages } = importDocuments([
      resource('VRFRouteConfiguration', 'internet', {
        vrf: 'internet',
        seq: 10,
        vni: 100,
        routeTarget: '64512:100',
        import: [{ cidr: '10.0.0.0/8', action: 'permit', le: 32 }],
        export: [],
        aggregate: ['10.0.0.0/8'],
        sbrPrefixes: [],
        community: '64512:1',
        loopbacks: [
          { name: 'lo.a', subnet: '192.0.2.7/32' },
          { name: 'lo.b', subnet: '10.9.0.0/24' },
        ],
        nodeSelector: { matchLabels: { role: 'edge' } },
      }),
      {
        kind: 'Layer2NetworkConfigurationList',
        items: [
          resource('Layer2NetworkConfiguration', 'storage', {
            id: 100,
            mtu: 9000,
            vni: 10_100,
            vrf: '',
            anycastMac: '02:00:00:00:00:01',
            anycastGateways: ['10.0.0.1/24'],
            createMACVLANInterface: true,
            neighSuppression: null,
            advertiseNeighbors: false,
          }),
        ],
      },
      resource('RoutingTable', 'egress', { tableId: 300 }),
    ]);
    expect(manifests.map(({ kind, spec }) => [kind, spec])).toEqual([
      [
        'Vrf',
        {
          nodeSelector: { matchLabels: { role: 'edge' } },
          vrf: 'internet',
          seq: 10,
          aggregate: ['10.0.0.0/8'],
          community: '64512:1',
          vni: 100,
          routeTarget: '64512:100',
          import: [{ cidr: '10.0.0.0/8', action: 'permit', le: 32 }],
          loopbacks: [{ name: 'lo.a', subnet: '192.0.2.7/32' }],
        },
      ],
      [
        'Layer2Network',
        {
          nodeSelector: {},
          id: 100,
          mtu: 9000,
          vni: 10_100,
          anycastMac: '02:00:00:00:00:01',
          anycastGateways: ['10.0.0.1/24'],
          advertiseNeighbors: false,
          createMacvlanInterface: true,
        },
      ],
      ['RoutingTable', { nodeSelector: {}, tableId: 300 }],
    ]);
    expect(messages).toEqual([
      expect.stringContaining('skipped loopback lo.b: Sluice does not assign addresses from 10.9.0.0/24'),
    ]);
  });

  test('include peerings, which listen in the network that they belong to', () => {
    const network = resource('Layer2NetworkConfiguration', 'peering.vlan', {
      id: 7,
      anycastMac: '02:00:00:00:00:01',
      anycastGateways: ['10.7.0.1/24'],
      nodeSelector: { matchLabels: { role: 'edge' } },
    });
    const peering = resource('BGPPeering', 'router', {
      peeringVlan: { name: 'peering.vlan' },
      remoteASN: 64_513,
      enableBFD: true,
      maximumPrefixes: 100,
      holdTime: '1m30s',
      keepaliveTime: '30s',
      import: [{ cidr: '10.50.0.0/16', action: 'permit', le: 24 }],
      export: [{ cidr: '0.0.0.0/0', action: 'deny' }],
    });
    expect(importDocuments([peering, network])).toMatchObject({
      manifests: [
        { kind: 'Layer2Network', metadata: { name: 'peering-vlan' } },
        {
          kind: 'BgpPeering',
          metadata: { name: 'router' },
          spec: {
            nodeSelector: { matchLabels: { role: 'edge' } },
            network: 'peering-vlan',
            remoteAs: 64_513,
            bfd: true,
            maximumPrefixes: 100,
            holdTime: '1m30s',
            keepaliveTime: '30s',
            import: [{ cidr: '10.50.0.0/16', action: 'permit', le: 24 }],
            export: [{ cidr: '0.0.0.0/0', action: 'deny' }],
          },
        },
      ],
      words: [],
    });
  });

  test('report a peering without its network, and name its password without printing it', () => {
    const { manifests, words: messages } = importDocuments([
      resource('BGPPeering', 'p', {
        peeringVlan: { name: 'storage' },
        remoteASN: 64_513,
        enableBFD: false,
        password: 'hunter2',
        import: [],
        export: [],
      }),
    ]);
    expect(manifests.map(({ spec }) => spec)).toEqual([
      { nodeSelector: {}, network: 'storage', remoteAs: 64_513, bfd: false },
    ]);
    expect(messages).toEqual([
      'BGPPeering/p: Layer2NetworkConfiguration storage is not in the input: the peering selects all nodes, so the network must be on all of them',
      'BGPPeering/p: skipped password: unsupported field',
    ]);
  });

  test('report what is skipped: half a VNI, unknown fields, what Sluice would refuse, and unsupported kinds', () => {
    expect(
      messagesOf(
        resource('VRFRouteConfiguration', 'a', {
          vrf: 'a',
          seq: 1,
          vni: 7,
          somethingNew: 1,
          import: [{ cidr: '10.0.0.1/8', action: 'permit', eq: 1 }],
        }),
        resource('MirrorTarget', 'p', {}),
      ),
    ).toEqual([
      'VRFRouteConfiguration/a: skipped vni: it needs routeTarget as well',
      'VRFRouteConfiguration/a: skipped import[0].eq: unsupported field',
      'VRFRouteConfiguration/a: skipped somethingNew: unsupported field',
      'skipped MirrorTarget: unsupported kind; supported kinds are MachineConfig, BGPPeering, VRFRouteConfiguration, Layer2NetworkConfiguration, RoutingTable, MachineConfiguration, NodeDisruptionPolicy, and those of batch.sdewan.akraino.org/v1alpha1',
      'skipped Vrf/a: spec.import[0].cidr must be the address of the network: did you mean 10.0.0.0/8?',
    ]);
  });
});

describe('a document', () => {
  test.each([
    ['machineconfiguration.openshift.io/v99', 'MachineConfig', 'machineconfiguration.openshift.io/v1'],
    ['operator.openshift.io/v2', 'MachineConfiguration', 'operator.openshift.io/v1'],
    ['sluice.dev/v1alpha1', 'RoutingTable', 'network.schiff.telekom.de/v1alpha1'],
    ['x/v1', 'BGPPeering', 'network.schiff.telekom.de/v1alpha1'],
  ])('of %s is skipped, because another version may mean something else', (apiVersion, kind, known) => {
    expect(importDocuments([{ apiVersion, kind, metadata: { name: 'a' }, spec: { tableId: 1 } }])).toEqual({
      manifests: [],
      words: [`skipped ${kind}/a: unsupported apiVersion "${apiVersion}"; use ${known}`],
    });
  });

  test('that appears twice counts as the later one', () => {
    const [first, again] = [
      machineConfig('m', files(file('/a', 'data:,1'), file('/b', 'data:,'))),
      machineConfig('m', files(file('/a', 'data:,2'))),
    ] as const;
    expect(specs('File', first, again)).toMatchObject([{ path: '/a', content: '2' }]);
    expect(messagesOf(first, again)).toEqual(['MachineConfig/m: defined more than once: the last one wins']);
    expect(
      messagesOf(resource('RoutingTable', 'e', { tableId: 1 }), resource('RoutingTable', 'e', { tableId: 1 })),
    ).toEqual([]);
    expect(
      specs(
        'RoutingTable',
        resource('RoutingTable', 'e', { tableId: 1 }),
        resource('RoutingTable', 'e', { tableId: 2 }),
      ),
    ).toEqual([{ nodeSelector: {}, tableId: 2 }]);
  });

  test('with fields next to its spec, or of the wrong type, is reported', () => {
    expect(
      messagesOf(
        { ...machineConfig('m', {}), config: { storage: { files: [{}] } }, status: { x: 1 } },
        { kind: 'RoutingTableList', items: ['x'] },
      ),
    ).toEqual([
      'RoutingTableList: skipped items[0]: must be a map',
      'MachineConfig/m: skipped config: unsupported field',
    ]);
    expect(messagesOf({ kind: 'RoutingTable', metadata: { name: 'r' }, spec: 'x' })).toContain(
      'RoutingTable/r: skipped spec: must be a map',
    );
    expect(
      messagesOf(
        resource('VRFRouteConfiguration', 'v', {
          vrf: 'v',
          seq: 1,
          import: { cidr: '10.0.0.0/8' },
          export: ['x'],
          loopbacks: [{ name: 'lo.a', subnet: '10.0.0.1/32', mtu: 1 }],
          sbrPrefixes: [],
        }),
      ),
    ).toEqual([
      'VRFRouteConfiguration/v loopback lo.a: skipped mtu: unsupported field',
      'VRFRouteConfiguration/v: skipped import: must be a list',
      'VRFRouteConfiguration/v: skipped export[0]: must be a map',
    ]);
    expect(
      messagesOf(
        resource('Layer2NetworkConfiguration', 'l', { id: 1, createMACVLANInterface: 'yes' }),
        resource('BGPPeering', 'p', { remoteASN: 1, peeringVlan: { name: 'l', vlan: 1 } }),
      ),
    ).toEqual([
      'Layer2NetworkConfiguration/l: skipped createMACVLANInterface: must be true or false',
      'BGPPeering/p: skipped peeringVlan.vlan: unsupported field',
    ]);
  });

  test('with an invalid selector is skipped, and does not select all nodes', () => {
    expect(importDocuments([resource('RoutingTable', 'r', { tableId: 1, nodeSelector: 'edge' })])).toMatchObject({
      manifests: [],
      words: [expect.stringContaining('skipped RoutingTable/r: spec.nodeSelector must be an object')],
    });
  });

  test('of a policy reports unsupported fields at every level', () => {
    const reload = { type: 'Reload', extra: 1, reload: { serviceName: 'a.service', more: 1 } };
    const policy = {
      files: { path: '/a' },
      file: [{}],
      units: [
        { actions: [] },
        { name: 'a.service', extra: 1, actions: [reload] },
        { name: 'b.service', actions: [{ type: 'Drain' }, 'Reboot'] },
      ],
    };
    const document = {
      kind: 'MachineConfiguration',
      metadata: { name: 'c' },
      spec: { nodeDisruptionPolicy: policy, managedBootImages: { machineManagers: [{}] }, logLevel: 'Normal' },
    };
    expect(specs('DisruptionPolicy', document)).toEqual([
      {
        nodeSelector: {},
        default: drainAndReboot,
        units: [{ name: 'a.service', actions: [{ kind: 'reload', unit: 'a.service' }] }],
        sshKeys: nothing,
      },
    ]);
    expect(messagesOf(document)).toEqual(
      [
        ': skipped nodeDisruptionPolicy.files: must be a list',
        ': skipped nodeDisruptionPolicy.units[0]: no name',
        ...['actions[0].reload.more', 'actions[0].extra', 'extra'].map(
          (field) => ` a.service: skipped ${field}: unsupported field`,
        ),
        ' b.service: skipped actions[1]: must be a map',
        ' b.service: skipped the rule: its actions are missing, unsupported or malformed; the default applies',
        ': skipped nodeDisruptionPolicy.file: unsupported field',
        ': skipped managedBootImages: unsupported field',
      ].map((what) => `MachineConfiguration/c${what}`),
    );
  });
});
