import { KUBERNETES_YAML, readManifests } from '#libs/manifests';
import { importDocuments } from './import-documents.js';
import { file, files, ignition, machineConfig, specs, messagesOf } from './machine-config.fixture.js';

const leftOut = (...places: string[]): string[] =>
  places.map((place) => `MachineConfig/m: skipped ${place}: unsupported field`);

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
  ])('with the mode %s becomes %s', (written, mode) => {
    const text = `kind: MachineConfig\nmetadata: {name: m}\nspec: {config: {storage: {files: [{path: /a, mode: ${written}}], directories: [{path: /b, mode: ${written}}]}}}\n`;
    const { manifests, words: messages } = importDocuments(readManifests(text, KUBERNETES_YAML).manifests);
    expect(
      manifests.filter(({ kind }) => kind !== 'DisruptionPolicy').map(({ spec }) => (spec as { mode?: string }).mode),
    ).toEqual(mode === undefined ? [] : [mode, mode]);
    const named = ['/a', '/b'].flatMap((path) => [
      `MachineConfig/m ${path}: skipped mode: must be a whole number from 0 to 4095`,
    ]);
    expect(messages.filter((word) => word.includes('mode'))).toEqual(mode === undefined ? named : []);
  });

  test.each<[string, object, string[]]>([
    [
      'unsupported sections next to storage',
      { files: [{ path: '/a' }], networkd: { units: [{ name: 'n' }] }, unit: 1 },
      leftOut('config.files', 'config.networkd', 'config.unit'),
    ],
    [
      'misspelled sections',
      { storage: { file: [{}] }, systemd: { unit: [{}] }, passwd: { user: [{}] } },
      leftOut('storage.file', 'systemd.unit', 'passwd.user'),
    ],
    [
      'unsupported fields of ignition',
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
      'no section that is empty',
      {
        ignition: { version: '3.2.0', config: {}, security: { tls: {} } },
        networkd: {},
        passwd: { groups: [] },
        storage: { disks: null },
      },
      [],
    ],
    [
      'arguments that must not exist',
      { kernelArguments: { shouldNotExist: ['quiet'] } },
      leftOut('config.kernelArguments.shouldNotExist'),
    ],
    [
      'sections that are not a list or map',
      { storage: { files: { path: '/a' } }, systemd: [], passwd: { users: 'core' }, kernelArguments: 'nosmt' },
      [
        'MachineConfig/m: skipped storage.files: must be a list',
        'MachineConfig/m: skipped config.systemd: must be a map',
        'MachineConfig/m: skipped passwd.users: must be a list',
        'MachineConfig/m: skipped config.kernelArguments: must be a map',
      ],
    ],
    [
      'elements that are not a map, or have no name',
      { storage: { files: ['/a', { mode: 420 }] }, systemd: { units: [null, {}] }, passwd: { users: [{ name: 7 }] } },
      [
        'MachineConfig/m: skipped storage.files[0]: must be a map',
        'MachineConfig/m: skipped storage.files[1]: no path',
        'MachineConfig/m: skipped systemd.units[0]: must be a map',
        'MachineConfig/m: skipped systemd.units[1]: no name',
        'MachineConfig/m: skipped passwd.users[0]: no name',
      ],
    ],
    [
      'unsupported fields of a user, a unit and a directory',
      {
        passwd: { users: [{ name: 'core', sshAuthorizedKeys: 'k' }] },
        systemd: { units: [{ name: 'a.service', enabled: true, extra: 1, dropins: [{ name: 'x.conf', more: 1 }] }] },
        storage: { directories: [{ path: '/d', extra: 1 }] },
      },
      [
        'MachineConfig/m /d: skipped extra: unsupported field',
        'MachineConfig/m a.service drop-in x.conf: skipped more: unsupported field',
        'MachineConfig/m a.service: skipped extra: unsupported field',
        'MachineConfig/m user core: skipped sshAuthorizedKeys: must be a list',
      ],
    ],
    [
      'a unit without supported fields',
      { systemd: { units: [{ name: 'a.service' }] } },
      ['skipped MachineConfig/m a.service: it has no supported field'],
    ],
  ])('names %s', (_name, config, messages) => {
    expect(messagesOf(ignition('m', config))).toEqual(messages);
  });

  test.each<[string, object, string]>([
    [
      'a unit with a field of the wrong type',
      { systemd: { units: [{ name: 'a.service', contents: 'x', enabled: 'yes' }] } },
      'MachineConfig/m a.service: skipped enabled: must be true or false',
    ],
    [
      'contents that are not a map',
      { storage: { files: [{ path: '/a', contents: 'text' }] } },
      'MachineConfig/m /a: skipped contents: must be a map',
    ],
    [
      'contents with an unsupported field',
      { storage: { files: [{ path: '/a', contents: { inline: 'text' } }] } },
      'MachineConfig/m /a: skipped contents.inline: unsupported field',
    ],
    [
      'a misspelled contents field',
      { storage: { files: [{ path: '/a', content: { source: 'data:,x' } }] } },
      'MachineConfig/m /a: skipped content: unsupported field',
    ],
    [
      'a file on another file system',
      { storage: { files: [file('/a', 'data:,x', { filesystem: 'data' })] } },
      'MachineConfig/m /a: skipped filesystem: unsupported field',
    ],
  ])('skips all of %s', (_name, config, messages) => {
    const { manifests, words: all } = importDocuments([ignition('m', config)]);
    expect(manifests.map(({ kind }) => kind)).toEqual(['DisruptionPolicy']);
    expect(all).toEqual([messages, expect.stringMatching(/^skipped .*: it has an unsupported or malformed field$/)]);
  });

  test('with an unknown digest is skipped', () => {
    expect(
      messagesOf(machineConfig('m', files(file('/a', 'data:,x', {}, { verification: { hash: 'md5-00' } })))),
    ).toEqual(['skipped MachineConfig/m /a: unsupported digest "md5-00"; use sha256 or sha512']);
  });

  test.each(['2.2.0', '3.5.0', '3.6.0-experimental'])('of version %s is imported', (version) => {
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
    'of version %p is skipped, but not the rest of its MachineConfig',
    (version) => {
      const document = machineConfig('m', {
        config: { ignition: { version }, storage: { files: [file('/a', 'data:,')] } },
        kernelArguments: ['nosmt'],
      });
      expect(importDocuments([document]).manifests.map(({ kind }) => kind)).toEqual([
        'KernelArguments',
        'DisruptionPolicy',
      ]);
      expect(messagesOf(document)).toEqual([
        `MachineConfig/m: skipped config: unsupported ignition.version ${JSON.stringify(version)}; supported are "2.x.y" and "3.x.y"`,
      ]);
    },
  );

  test('that is not a map is reported, like arguments that are not strings', () => {
    expect(messagesOf(machineConfig('m', { config: 'x', kernelArguments: [1, 'nosmt', {}] }))).toEqual(
      ['config', 'kernelArguments[0]', 'kernelArguments[2]'].map(
        (field) => `MachineConfig/m: skipped ${field}: must be a ${field === 'config' ? 'map' : 'string'}`,
      ),
    );
    expect(specs('KernelArguments', machineConfig('m', { kernelArguments: 'nosmt' }))).toEqual([]);
    expect(messagesOf(machineConfig('m', { fips: false, kernelType: 'default', extensions: [] }))).toEqual([]);
  });
});
