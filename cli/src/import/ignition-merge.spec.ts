import { gzipSync } from 'node:zlib';
import { importDocuments } from './import-documents.js';
import { file, files, ignition, machineConfig, specs, messagesOf } from './machine-config.fixture.js';

const KEYS = ['IGq6', 'IGq7', 'IGq8'].map((end) => `ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA${end} core@example`);
const units = (...list: object[]): object => ({ systemd: { units: list } });
const names = (...documents: object[]): unknown[] =>
  importDocuments(documents).manifests.map(({ kind, metadata }) => `${kind}/${(metadata as { name: string }).name}`);

describe('MachineConfigs of one role', () => {
  test('merge a unit field by field: later values win, missing ones are inherited, drop-ins are merged by name', () => {
    const both = [
      ignition(
        '99-x',
        units({
          name: 'kubelet.service',
          enabled: false,
          dropins: [
            { name: '20-b.conf', contents: 'late' },
            { name: '30-c.conf', contents: 'c' },
          ],
        }),
      ),
      ignition(
        '01-x',
        units({
          name: 'kubelet.service',
          enabled: true,
          contents: '[Service]\n',
          dropins: [
            { name: '10-a.conf', contents: 'a' },
            { name: '20-b.conf', contents: 'early' },
          ],
        }),
      ),
    ];
    expect(specs('SystemdUnit', ...both)).toMatchObject([
      {
        name: 'kubelet.service',
        content: '[Service]\n',
        enabled: false,
        dropIns: [
          { name: '10-a.conf', content: 'a' },
          { name: '20-b.conf', content: 'late' },
          { name: '30-c.conf', content: 'c' },
        ],
      },
    ]);
    expect(messagesOf(...both)).toEqual([
      'MachineConfig/01-x: enabled of kubelet.service is overridden by MachineConfig/99-x',
      'MachineConfig/01-x: drop-in 20-b.conf of kubelet.service is overridden by MachineConfig/99-x',
    ]);
  });

  test('merge without a message if they only add, and a fragment keeps the name of the first that defined it', () => {
    const [first, second] = [
      ignition('01-x', units({ name: 'a.service', contents: 'x' })),
      ignition('99-x', units({ name: 'a.service', contents: 'x', enabled: true })),
    ] as const;
    expect(specs('SystemdUnit', first, second)).toMatchObject([{ content: 'x', enabled: true }]);
    expect(messagesOf(first, second)).toEqual([]);
    expect(names(first, second)).toEqual(names(first));
    expect(names(first, second)[0]).toBe('SystemdUnit/01-x-a-service');
  });

  test('remove earlier values with an empty content, or without the mask', () => {
    const both = [
      ignition('a', units({ name: 'a.service', contents: 'x', mask: true, enabled: true })),
      ignition('b', units({ name: 'a.service', contents: '', mask: false })),
    ];
    expect(specs('SystemdUnit', ...both)).toEqual([
      { nodeSelector: expect.anything() as unknown, name: 'a.service', enabled: true },
    ]);
    expect(messagesOf(...both)).toEqual([
      'MachineConfig/a: content of a.service is overridden by MachineConfig/b',
      'MachineConfig/a: mask of a.service is overridden by MachineConfig/b',
    ]);
  });

  test('inherit a drop-in that is only named again, and remove one that is made empty', () => {
    const dropIns = (a: object, b: object): object =>
      units({
        name: 'a.service',
        dropins: [
          { name: 'a.conf', ...a },
          { name: 'b.conf', ...b },
        ],
      });
    const both = [
      ignition('a', dropIns({ contents: 'a' }, { contents: 'b' })),
      ignition('b', dropIns({}, { contents: '' })),
    ];
    expect(specs('SystemdUnit', ...both)).toMatchObject([{ dropIns: [{ name: 'a.conf', content: 'a' }] }]);
    expect(messagesOf(...both)).toEqual([
      'MachineConfig/a: drop-in b.conf of a.service is overridden by MachineConfig/b',
    ]);
  });

  test('merge a file: the content is replaced, mode and owner are inherited', () => {
    const both = [
      machineConfig('a', files(file('/a', 'data:,a', { mode: 384, user: { name: 'core' } }))),
      machineConfig('b', files(file('/a', 'data:,b'))),
    ];
    expect(specs('File', ...both)).toMatchObject([{ path: '/a', content: 'b', mode: '0600', owner: 'core' }]);
    expect(messagesOf(...both)).toEqual(['MachineConfig/a: content of /a is overridden by MachineConfig/b']);
    expect(
      specs('File', ...both, machineConfig('c', files({ path: '/a', mode: 420, user: { name: 'root' } }))),
    ).toMatchObject([{ content: 'b', mode: '0644', owner: 'root' }]);
  });

  test('inherit the compression of contents, as Ignition does, and skip what cannot be read with it', () => {
    const packed = file('/a', `data:;base64,${gzipSync('a').toString('base64')}`, {}, { compression: 'gzip' });
    expect(messagesOf(machineConfig('a', files(packed)), machineConfig('b', files(file('/a', 'data:,b'))))).toEqual([
      'MachineConfig/a: content of /a is overridden by MachineConfig/b',
      'skipped MachineConfig/b /a: its content is not valid gzip',
    ]);
    expect(
      specs(
        'File',
        machineConfig('a', files(packed)),
        machineConfig('b', files(file('/a', 'data:,b', {}, { compression: '' }))),
      ),
    ).toMatchObject([{ content: 'b' }]);
  });

  test('append to earlier content, in the syntax of Ignition 3 and of Ignition 2', () => {
    const two = machineConfig('c', {
      config: {
        ignition: { version: '2.2.0' },
        storage: { files: [{ filesystem: 'root', path: '/a', append: true, contents: { source: 'data:,c' } }] },
      },
    });
    const all = [
      machineConfig('a', files(file('/a', 'data:,a'))),
      machineConfig('b', files({ path: '/a', append: [{ source: 'data:,b' }] })),
      two,
    ];
    expect(specs('File', ...all)).toMatchObject([{ content: 'abc' }]);
    expect(messagesOf(...all)).toEqual([]);
    expect(specs('File', two)).toEqual([]);
    expect(messagesOf(two)).toEqual(['skipped MachineConfig/c /a: append is only supported after contents']);
    expect(specs('File', machineConfig('b', files({ path: '/a', append: [{ source: 'data:,b' }] })))).toEqual([]);
  });

  test('let files, directories and links of one path replace each other', () => {
    const both = [
      ignition('a', { storage: { files: [file('/a', 'data:,'), file('/b', 'data:,')] } }),
      ignition('b', { storage: { directories: [{ path: '/a' }], links: [{ path: '/b', target: '/c' }] } }),
    ];
    expect(names(...both)).toEqual(['Directory/b-a', 'Link/b-b', 'DisruptionPolicy/mco-worker']);
    expect(messagesOf(...both)).toEqual([
      'MachineConfig/a: the file /a is overridden by the directory of MachineConfig/b',
      'MachineConfig/a: the file /b is overridden by the link of MachineConfig/b',
    ]);
  });

  test('combine the keys of a user, and skip an invalid one', () => {
    const user = (...sshAuthorizedKeys: unknown[]): object => ({
      passwd: { users: [{ name: 'core', sshAuthorizedKeys }] },
    });
    const both = [
      ignition('a', user(KEYS[0], `# of old\n${String(KEYS[1])}`)),
      ignition('b', user(KEYS[1], 'ssh-dss AAAA', KEYS[2])),
    ];
    expect(specs('SshKeys', ...both)).toMatchObject([{ user: 'core', keys: KEYS }]);
    expect(messagesOf(...both)).toEqual([
      expect.stringMatching(/^MachineConfig\/b user core: skipped the key "ssh-dss AAAA": must be one public key /),
    ]);
  });

  test('combine their kernel arguments: those of Ignition last, split at spaces, without forbidden ones', () => {
    const all = [
      machineConfig('a', {
        config: { kernelArguments: { shouldExist: ['late=1', 'nosmt'] } },
        kernelArguments: ['console=tty0 console=ttyS0'],
      }),
      machineConfig('b', { kernelArguments: ['nosmt', 'x="a b" y=1', 'console=tty0'] }),
    ];
    expect(specs('KernelArguments', ...all)).toMatchObject([
      { arguments: ['console=tty0', 'console=ttyS0', 'nosmt', 'y=1', 'late=1'] },
    ]);
    expect(messagesOf(...all)).toEqual([
      expect.stringMatching(
        /^MachineConfig\/b: skipped the kernel argument "x=\\"a b\\"": must be one kernel argument /,
      ),
    ]);
  });
});
