import type { Config, ConfigEntry, Reason } from '#libs/contracts';
import { mergeReasons, reviewActions, reviewConfig, reviewWarnings } from '../index.js';
import type { ActionReason } from '../actions/action-plan.js';

const entry = (kind: string, name: string, spec: object): ConfigEntry => ({
  kind,
  name,
  spec: spec as ConfigEntry['spec'],
});
const file = (name: string, path: string, content = ''): ConfigEntry => entry('File', name, { path, content });
const directory = (name: string, path: string): ConfigEntry => entry('Directory', name, { path });
const able = {
  name: 'w-1',
  capabilities: ['kind:File', 'kind:Directory', 'kind:Link', 'kind:Probe', 'kind:Exec', 'probe:exec', 'action:reboot'],
};
const review = (...fragments: ConfigEntry[]): readonly Reason[] => reviewConfig({ fragments } satisfies Config, able);

describe('reviewConfig', () => {
  test('a good config gives no reason', () => {
    expect(
      review(
        directory('a', '/srv/a'),
        file('b', '/srv/a/b'),
        file('c', '/srv/ab'),
        entry('Probe', 'p', { exec: { argv: ['true'] } }),
      ),
    ).toEqual([]);
    expect(review()).toEqual([]);
  });

  test('two paths that lead to one place on this node conflict, and on no other node', () => {
    const fragments = [
      file('a', '/usr/bin/x'),
      file('b', '/bin/x'),
      directory('c', '/var/run/sub'),
      file('d', '/run/sub'),
      directory('e', '/bin'),
      directory('f', '/usr/bin'),
    ];
    const merged = { ...able, capabilities: [...able.capabilities, 'path:/bin=/usr/bin', 'path:/var/run=/run'] };
    expect(reviewConfig({ fragments }, merged).map(({ fragment, message }) => [fragment, message])).toEqual([
      ['File/b', 'File/a and File/b both put something at /usr/bin/x'],
      ['File/d', 'Directory/c and File/d both put something at /run/sub'],
      ['Directory/f', 'Directory/e and Directory/f both put something at /usr/bin'],
    ]);
    expect(reviewConfig({ fragments: fragments.slice(0, 2) }, able)).toEqual([]);
  });

  test('a node that cannot read extended attributes causes a warning if it gets files', () => {
    const node = { ...able, capabilities: [...able.capabilities, 'lacks:xattrs'] };
    const config = { fragments: [file('a', '/a'), file('b', '/b')] };
    expect(reviewWarnings(config, node)).toMatchObject([{ code: 'no-xattrs', nodes: ['w-1'] }]);
    expect([reviewWarnings(config, able), reviewWarnings({ fragments: [] }, node)]).toEqual([[], []]);
  });

  test('an invalid spec is reported with the node', () => {
    expect(review(file('a', 'etc'))).toEqual([
      { fragment: 'File/a', field: 'spec.path', code: 'bad-path', message: 'must be absolute', nodes: ['w-1'] },
    ]);
  });

  test.each([
    [
      'two files',
      [file('a', '/etc/motd'), file('b', '/etc/motd')],
      'File/b',
      'File/a and File/b both put something at /etc/motd',
    ],
    [
      'two spellings of a path',
      [file('a', '/etc/motd'), file('b', '/etc//./motd')],
      'File/b',
      'File/a and File/b both put something at /etc/motd',
    ],
    [
      'a file and a directory',
      [directory('a', '/srv'), file('b', '/srv')],
      'File/b',
      'Directory/a and File/b both put something at /srv',
    ],
    [
      'two directories',
      [directory('a', '/srv/'), directory('b', '/srv')],
      'Directory/b',
      'Directory/a and Directory/b both put something at /srv',
    ],
    [
      'a file and a file below it',
      [file('a', '/etc'), file('b', '/etc/x/motd')],
      'File/b',
      'File/a makes /etc a file, and File/b needs it to be a directory for /etc/x/motd',
    ],
    [
      'a link and a file below it',
      [entry('Link', 'a', { path: '/etc/x', target: '/y' }), file('b', '/etc/x/motd')],
      'File/b',
      'Link/a makes /etc/x a link, and File/b needs it to be a directory for /etc/x/motd',
    ],
    [
      'a directory and a file at its parent',
      [directory('a', '/etc/x'), file('b', '/etc')],
      'Directory/a',
      'File/b makes /etc a file, and Directory/a needs it to be a directory for /etc/x',
    ],
  ])('%s are a conflict', (_name, fragments, fragment, message) => {
    expect(review(...fragments)).toEqual([{ fragment, field: 'spec.path', code: 'conflict', message, nodes: ['w-1'] }]);
  });

  test.each([
    [
      'two fragments for a unit',
      [
        entry('SystemdUnit', 'a', { name: 'x.service', state: 'started' }),
        entry('SystemdUnit', 'b', { name: 'x.service', enabled: true }),
      ],
      'SystemdUnit/a and SystemdUnit/b both set unit x.service',
    ],
    [
      'a file and a unit with one path',
      [file('a', '/etc/systemd/system/x.service'), entry('SystemdUnit', 'b', { name: 'x.service', content: '' })],
      'File/a and SystemdUnit/b both put something at /etc/systemd/system/x.service',
    ],
    [
      'a file and a drop-in with one path',
      [
        file('a', '/etc/systemd/system/x.service.d/a.conf'),
        entry('SystemdUnit', 'b', { name: 'x.service', dropIns: [{ name: 'a.conf', content: '' }] }),
      ],
      'File/a and SystemdUnit/b both put something at /etc/systemd/system/x.service.d/a.conf',
    ],
    [
      'two drop-ins with one name',
      [
        entry('SystemdUnit', 'a', {
          name: 'x.service',
          dropIns: [
            { name: 'a.conf', content: '' },
            { name: 'a.conf', content: 'x' },
          ],
        }),
      ],
      'SystemdUnit/a puts two things at /etc/systemd/system/x.service.d/a.conf',
    ],
    [
      'two values for a kernel parameter',
      [entry('Sysctl', 'a', { key: 'vm.x', value: '1' }), entry('Sysctl', 'b', { key: 'vm.x', value: '2' })],
      'Sysctl/a and Sysctl/b both set sysctl vm.x',
    ],
  ])('%s are a conflict', (_name, fragments, message) => {
    const all = reviewConfig(
      { fragments },
      { name: 'w-1', capabilities: [...able.capabilities, 'kind:SystemdUnit', 'kind:Sysctl'] },
    );
    expect(all.map(({ code, field, message: text }) => [code, field, text])).toEqual([['conflict', 'spec', message]]);
  });

  test('missing capabilities are reported for each fragment', () => {
    const fragments = [file('a', '/a'), entry('Probe', 'p', { exec: { argv: ['true'] } })];
    expect(
      reviewConfig({ fragments }, { name: 'w-1', capabilities: ['kind:Probe'] }).map(
        ({ fragment, field, code, message }) => [fragment, field, code, message],
      ),
    ).toEqual([
      ['File/a', 'kind', 'capability', 'the node cannot do this: it did not announce kind:File'],
      ['Probe/p', 'spec.exec', 'capability', 'the node cannot do this: it did not announce probe:exec'],
    ]);
  });

  test('a FluxSync on a hub is refused for a cluster that was not found on one', () => {
    const sync = (more: object): ConfigEntry =>
      entry('FluxSync', 'a', {
        git: { url: 'https://example.com/a', commit: 'a'.repeat(40) },
        ...more,
      });
    const reasons = (more: object, ...capabilities: readonly string[]): readonly unknown[] =>
      reviewConfig({ fragments: [sync(more)] }, { name: 'c', capabilities: ['kind:FluxSync', ...capabilities] }).map(
        ({ field, message }) => [field, message],
      );
    expect(reasons({ placement: 'hub' })).toEqual([
      [
        'spec.placement',
        'the node cannot do this: it did not announce placement:hub, because its applier has not found it on a hub (sluice applier --targets clusters --hub)',
      ],
    ]);
    expect([reasons({ placement: 'hub' }, 'placement:hub'), reasons({ placement: 'cluster' })]).toEqual([[], []]);
  });

  test('network fragments that do not fit together are refused, and so are features that the node lacks', () => {
    const fragments = [
      entry('Layer2Network', 'a', { id: 1, vni: 7, vrf: 'red' }),
      entry('Layer2Network', 'b', { id: 1 }),
    ];
    const node = { name: 'w-1', capabilities: ['kind:Layer2Network'] };
    expect(
      reviewConfig({ fragments }, node).map(({ fragment, field, code, nodes }) => [fragment, field, code, nodes]),
    ).toEqual([
      ['Layer2Network/b', 'spec.id', 'conflict', ['w-1']],
      ['Layer2Network/a', 'spec.vrf', 'missing-reference', ['w-1']],
      ['Layer2Network/a', 'spec.vni', 'capability', ['w-1']],
    ]);
  });

  test('a part of a VRF that does not apply is a warning, not a reason', () => {
    const fragments = [
      entry('Vrf', 'a', { vrf: 'red', seq: 1, mtu: 1500 }),
      entry('Vrf', 'b', { vrf: 'red', seq: 2, mtu: 9000 }),
    ];
    const node = { name: 'w-1', capabilities: ['kind:Vrf'] };
    expect(reviewConfig({ fragments }, node)).toEqual([]);
    expect(reviewWarnings({ fragments }, node)).toMatchObject([
      { fragment: 'Vrf/b', field: 'spec.mtu', code: 'overruled', nodes: ['w-1'] },
    ]);
  });

  test('a config of 900 KiB is the largest', () => {
    const empty = JSON.stringify({ fragments: [file('a', '/a'), file('b', '/b')] }).length;
    const sized = (bytes: number): readonly Reason[] =>
      review(file('a', '/a', 'x'.repeat(bytes - empty)), file('b', '/b'));
    expect(sized(900 * 1024)).toEqual([]);
    expect(sized(900 * 1024 + 1)).toMatchObject([{ fragment: 'File/a', code: 'too-large', nodes: ['w-1'] }]);
  });
});

describe('reviewActions', () => {
  test('none and drain are not actions of the node, the others are', () => {
    const rule = 'DisruptionPolicy/rules units a.service';
    const planOf = (...because: readonly ActionReason[]) => ({
      actions: because.flatMap((one) => one.actions),
      because,
    });
    const easy = { what: '/etc/x', rule, actions: [{ kind: 'none' }, { kind: 'drain' }] } as const;
    expect(reviewActions(planOf(easy), [])).toEqual([]);
    const kernel = { what: 'kernel/k', rule: 'kernel arguments need a reboot', actions: [{ kind: 'reboot' }] } as const;
    expect(reviewActions(planOf(easy, kernel), able.capabilities)).toEqual([]);
    expect(reviewActions(planOf(easy, kernel), [])).toEqual([
      {
        fragment: '',
        field: '',
        code: 'capability',
        nodes: [],
        message:
          'the change needs reboot for kernel/k (kernel arguments need a reboot), which the node cannot do: it did not announce action:reboot',
      },
    ]);
    const reloads = [
      { kind: 'reload', unit: 'a' },
      { kind: 'reload', unit: 'b' },
    ] as const;
    const units = ['a', 'b', 'c', 'd', 'e', 'f', 'g'].map((what) => ({ what, rule, actions: reloads }));
    expect(reviewActions(planOf(...units), []).map(({ message }) => message)).toEqual([
      `the change needs reload for a, b, c, d, e and 2 more (${rule}), which the node cannot do: it did not announce action:reload`,
    ]);
    // The reboot restarts everything.
    expect(reviewActions({ actions: kernel.actions, because: [kernel, ...units] }, ['action:reboot'])).toEqual([]);
  });
});

describe('mergeReasons', () => {
  const reason = (nodes: readonly string[], message = 'm'): Reason => ({
    fragment: 'File/a',
    field: 'f',
    code: 'c',
    message,
    nodes,
  });

  test('the same reason on several nodes is merged into one', () => {
    expect(mergeReasons([reason(['a']), reason(['b'], 'other'), reason(['b']), reason(['a'])])).toEqual([
      reason(['a', 'b']),
      reason(['b'], 'other'),
    ]);
  });

  test('names five of many nodes and counts all', () => {
    const many = Array.from({ length: 7 }, (_, i) => reason([`w-${i}`]));
    expect(mergeReasons(many)).toEqual([reason(['w-0', 'w-1', 'w-2', 'w-3', 'w-4'], 'm (on 7 nodes)')]);
  });

  test('a reason without a node is unchanged', () => {
    expect(mergeReasons([reason([])])).toEqual([reason([])]);
  });
});
