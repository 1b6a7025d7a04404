import { KUBERNETES_YAML, readManifests } from '#libs/manifests';
import { importDocuments } from './import-documents.js';
import { file, files, ignition, machineConfig, specs, words } from './machine-config.fixture.js';

const leftOut = (...places: string[]): string[] =>
  places.map((place) => `MachineConfig/m: ${place} has no equivalent, and is left out`);

describe('a config of Ignition', () => {
  test.each<[string, string | undefined]>([
    ['0644', '0644'],
    ['420', '0644'],
    ['01777', '1777'],
    ['0', '0000'],
    ['"0644"', undefined],
    ['-1', undefined],
    ['010000', undefined],
    ['1.5', undefined],
  ])('with the mode %s comes to %s', (written, mode) => {
    const text = `kind: MachineConfig\nmetadata: {name: m}\nspec: {config: {storage: {files: [{path: /a, mode: ${written}}], directories: [{path: /b, mode: ${written}}]}}}\n`;
    const { manifests, words: said } = importDocuments(readManifests(text, 'f', KUBERNETES_YAML).manifests);
    expect(
      manifests.filter(({ kind }) => kind !== 'DisruptionPolicy').map(({ spec }) => (spec as { mode?: string }).mode),
    ).toEqual(mode === undefined ? [] : [mode, mode]);
    const named = ['/a', '/b'].flatMap((path) => [
      `MachineConfig/m ${path}: mode is no whole number from 0 to 4095, and is left out`,
    ]);
    expect(said.filter((word) => word.includes('mode'))).toEqual(mode === undefined ? named : []);
  });

  test.each<[string, object, string[]]>([
    [
      'what stands beside storage and the like',
      { files: [{ path: '/a' }], networkd: { units: [{ name: 'n' }] }, unit: 1 },
      leftOut('config.files', 'config.networkd', 'config.unit'),
    ],
    [
      'what is misspelt below',
      { storage: { file: [{}] }, systemd: { unit: [{}] }, passwd: { user: [{}] } },
      leftOut('storage.file', 'systemd.unit', 'passwd.user'),
    ],
    [
      'where more of it is',
      {
        ignition: {
          version: '3.2.0',
          config: { merge: [{ source: 'x' }] },
          proxy: { httpProxy: 'p' },
          security: { tls: { certificateAuthorities: [{}] } },
          timeouts: { httpTotal: 1 },
        },
      },
      leftOut('ignition.config', 'ignition.proxy', 'ignition.security', 'ignition.timeouts'),
    ],
    [
      'nothing of what is empty',
      {
        ignition: { version: '3.2.0', config: {}, security: { tls: {} } },
        networkd: {},
        passwd: { groups: [] },
        storage: { disks: null },
      },
      [],
    ],
    [
      'arguments that shall not be',
      { kernelArguments: { shouldNotExist: ['quiet'] } },
      leftOut('config.kernelArguments.shouldNotExist'),
    ],
    [
      'what is no list or map',
      { storage: { files: { path: '/a' } }, systemd: [], passwd: { users: 'core' }, kernelArguments: 'nosmt' },
      [
        'MachineConfig/m: storage.files is no list, and is left out',
        'MachineConfig/m: config.systemd is no map, and is left out',
        'MachineConfig/m: passwd.users is no list, and is left out',
        'MachineConfig/m: config.kernelArguments is no map, and is left out',
      ],
    ],
    [
      'elements that are no map, or have no name',
      { storage: { files: ['/a', { mode: 420 }] }, systemd: { units: [null, {}] }, passwd: { users: [{ name: 7 }] } },
      [
        'MachineConfig/m: storage.files[0] is no map, and is left out',
        'MachineConfig/m: storage.files[1] has no path, and is left out',
        'MachineConfig/m: systemd.units[0] is no map, and is left out',
        'MachineConfig/m: systemd.units[1] has no name, and is left out',
        'MachineConfig/m: passwd.users[0] has no name, and is left out',
      ],
    ],
    [
      'fields of a user, a unit and a directory',
      {
        passwd: { users: [{ name: 'core', sshAuthorizedKeys: 'k' }] },
        systemd: { units: [{ name: 'a.service', enabled: true, extra: 1, dropins: [{ name: 'x.conf', more: 1 }] }] },
        storage: { directories: [{ path: '/d', extra: 1 }] },
      },
      [
        'MachineConfig/m /d: extra has no equivalent, and is left out',
        'MachineConfig/m a.service drop-in x.conf: more has no equivalent, and is left out',
        'MachineConfig/m a.service: extra has no equivalent, and is left out',
        'MachineConfig/m user core: sshAuthorizedKeys is no list, and is left out',
      ],
    ],
    [
      'a unit of which nothing can be said',
      { systemd: { units: [{ name: 'a.service' }] } },
      ['MachineConfig/m a.service: it says nothing that has an equivalent, and is left out'],
    ],
  ])('names %s', (_name, config, said) => {
    expect(words(ignition('m', config))).toEqual(said);
  });

  test.each<[string, object, string]>([
    [
      'a unit with a field of another shape',
      { systemd: { units: [{ name: 'a.service', contents: 'x', enabled: 'yes' }] } },
      'MachineConfig/m a.service: enabled is no boolean, and is left out',
    ],
    [
      'contents that are no map',
      { storage: { files: [{ path: '/a', contents: 'text' }] } },
      'MachineConfig/m /a: contents is no map, and is left out',
    ],
    [
      'contents in other words',
      { storage: { files: [{ path: '/a', contents: { inline: 'text' } }] } },
      'MachineConfig/m /a: contents.inline has no equivalent, and is left out',
    ],
    [
      'a misspelt content',
      { storage: { files: [{ path: '/a', content: { source: 'data:,x' } }] } },
      'MachineConfig/m /a: content has no equivalent, and is left out',
    ],
    [
      'another file system',
      { storage: { files: [file('/a', 'data:,x', { filesystem: 'data' })] } },
      'MachineConfig/m /a: filesystem has no equivalent, and is left out',
    ],
  ])('leaves out the whole of %s', (_name, config, said) => {
    const { manifests, words: all } = importDocuments([ignition('m', config)]);
    expect(manifests.map(({ kind }) => kind)).toEqual(['DisruptionPolicy']);
    expect(all).toEqual([said, expect.stringMatching(/: not all of it is understood: it is left out$/)]);
  });

  test('with a digest that nobody can check is left out', () => {
    expect(words(machineConfig('m', files(file('/a', 'data:,x', {}, { verification: { hash: 'md5-00' } }))))).toEqual([
      'MachineConfig/m /a: its digest "md5-00" cannot be checked; known are sha256 and sha512: it is left out',
    ]);
  });

  test.each(['2.2.0', '3.5.0', '3.6.0-experimental'])('of version %s is taken', (version) => {
    expect(
      specs(
        'SystemdUnit',
        machineConfig('m', {
          config: { ignition: { version }, systemd: { units: [{ name: 'a.service', enable: true }] } },
        }),
      ),
    ).toMatchObject([{ enabled: true }]);
  });

  test.each<unknown>(['9.0.0', '1.0.0', 3.2, 'x'])(
    'of version %p is left out, and the rest of its MachineConfig is not',
    (version) => {
      const document = machineConfig('m', {
        config: { ignition: { version }, storage: { files: [file('/a', 'data:,')] } },
        kernelArguments: ['nosmt'],
      });
      expect(importDocuments([document]).manifests.map(({ kind }) => kind)).toEqual([
        'KernelArguments',
        'DisruptionPolicy',
      ]);
      expect(words(document)).toEqual([
        `MachineConfig/m: ignition.version ${JSON.stringify(version)} is not known; known are "2.x.y" and "3.x.y": config is left out`,
      ]);
    },
  );

  test('that is no map, like arguments that are no texts, is named', () => {
    expect(words(machineConfig('m', { config: 'x', kernelArguments: [1, 'nosmt', {}] }))).toEqual(
      ['config', 'kernelArguments[0]', 'kernelArguments[2]'].map(
        (field) => `MachineConfig/m: ${field} is no ${field === 'config' ? 'map' : 'text'}, and is left out`,
      ),
    );
    expect(specs('KernelArguments', machineConfig('m', { kernelArguments: 'nosmt' }))).toEqual([]);
    expect(words(machineConfig('m', { fips: false, kernelType: 'default', extensions: [] }))).toEqual([]);
  });
});
