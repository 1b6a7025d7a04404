import fc from 'fast-check';
import { ACTION_KINDS, ordered, type Action, type Config, type ConfigEntry, type Fragment } from '#libs/contracts';
import { effectivePolicy, NO_POLICY, planActions } from '../index.js';

const entry = (kind: string, name: string, spec: object): ConfigEntry => ({
  kind,
  name,
  spec: spec as ConfigEntry['spec'],
});
const file = (path: string, content = 'x', name = 'f'): ConfigEntry => entry('File', name, { path, content });
const config = (...fragments: ConfigEntry[]): Config => ({ fragments });
const policy = (name: string, spec: object, nodeSelector: object = {}): Fragment =>
  ({ kind: 'DisruptionPolicy', name, labels: {}, spec: { nodeSelector, ...spec } }) as Fragment;
const reload = (unit: string): Action => ({ kind: 'reload', unit });
const restart = (unit: string): Action => ({ kind: 'restart', unit });
const [drain, reboot, none, daemonReload] = [
  { kind: 'drain' },
  { kind: 'reboot' },
  { kind: 'none' },
  { kind: 'daemon-reload' },
] as const;

const anyAction: fc.Arbitrary<Action> = fc.oneof(
  fc.constantFrom<Action>(drain, reboot, none, daemonReload),
  fc
    .tuple(fc.constantFrom('reload', 'restart'), fc.constantFrom('a.service', 'b.service'))
    .map(([kind, unit]) => ({ kind, unit }) as Action),
);

describe('ordered', () => {
  test.each<[string, readonly Action[], readonly Action[]]>([
    ['no actions give no actions', [], []],
    ['several times none gives none once', [none, none], [none]],
    ['none is dropped if there is another action', [none, reload('a')], [reload('a')]],
    [
      'actions have a fixed order',
      [restart('a'), reload('c'), reload('b'), daemonReload, drain],
      [drain, daemonReload, reload('b'), reload('c'), restart('a')],
    ],
    ['a restart absorbs the reload of its unit', [reload('a'), restart('a'), reload('b')], [reload('b'), restart('a')]],
    ['a reboot replaces all other actions', [reload('a'), reboot, none, daemonReload], [reboot]],
    ['a drain comes before a reboot', [reboot, drain], [drain, reboot]],
    ['an unknown action becomes a reboot', [{ kind: 'kexec' } as unknown as Action], [reboot]],
    ['a reload without a unit becomes a reboot', [{ kind: 'reload' }], [reboot]],
  ])('%s', (_name, given, list) => {
    expect(ordered(given)).toEqual(list);
  });

  test('returns the same list for the same set in any order, and a list is its own result', () => {
    fc.assert(
      fc.property(
        fc
          .array(anyAction)
          .chain((all) => fc.tuple(fc.constant(all), fc.shuffledSubarray(all, { minLength: all.length }))),
        ([all, shuffled]) => {
          expect(ordered(shuffled)).toEqual(ordered(all));
          expect(ordered(ordered(all))).toEqual(ordered(all));
        },
      ),
    );
  });

  test('is never less than its parts need', () => {
    const covered = (action: Action, by: readonly Action[]): boolean =>
      by.some(
        (other) =>
          (other.kind === action.kind && other.unit === action.unit) ||
          (action.kind === 'reload' && other.kind === 'restart' && other.unit === action.unit) ||
          (other.kind === 'reboot' && action.kind !== 'drain'),
      ) ||
      (action.kind === 'none' && by.length > 0);
    fc.assert(
      fc.property(fc.array(anyAction), (all) => {
        expect(all.filter((action) => !covered(action, ordered(all)))).toEqual([]);
      }),
    );
  });

  test('gives every kind of action a place', () => {
    const alone = ACTION_KINDS.map((kind) =>
      kind === 'reload' || kind === 'restart' ? { kind, unit: 'a' } : { kind },
    );
    for (const action of alone) expect(ordered([action])).toEqual([action]);
  });
});

describe('planActions', () => {
  test('plans nothing for the same config', () => {
    const same = config(file('/etc/motd'), entry('Unknown', 'u', { a: 1 }));
    expect(planActions(same, JSON.parse(JSON.stringify(same)) as Config, NO_POLICY)).toEqual({
      actions: [],
      because: [],
      changed: [],
    });
  });

  test('without a policy, plans nothing for files and a reboot for unknown kinds', () => {
    expect(planActions(config(), config(file('/etc/motd')), NO_POLICY)).toEqual({
      actions: [none],
      because: [{ what: '/etc/motd', rule: 'default of File', actions: [none] }],
      changed: ['/etc/motd'],
    });
    expect(planActions(config(entry('Warp', 'w', {})), config(), NO_POLICY)).toEqual({
      actions: [reboot],
      because: [{ what: 'Warp/w', rule: 'Warp is an unknown kind: reboot', actions: [reboot] }],
      changed: ['Warp/w'],
    });
  });

  test('counts what is added, removed or changed, by path', () => {
    const { changed } = planActions(
      config(file('/a', 'x', 'one'), file('/b', 'x', 'two'), file('/same', 'x', 'three')),
      config(file('/a', 'y', 'one'), file('/c', 'x', 'two'), file('/same', 'x', 'another-name')),
      NO_POLICY,
    );
    expect(changed).toEqual(['/a', '/b', '/c']);
  });

  test('ignores another spelling of the same path', () => {
    expect(planActions(config(file('/etc//motd')), config(file('/etc/./motd')), NO_POLICY).changed).toEqual([]);
  });

  test('applies both rules to a file that becomes a directory', () => {
    expect(
      planActions(config(file('/a')), config(entry('Directory', 'd', { path: '/a' })), NO_POLICY).because.map(
        ({ rule }) => rule,
      ),
    ).toEqual(['default of Directory', 'default of File']);
  });

  test('plans nothing for probes, whatever a policy says', () => {
    const effective = effectivePolicy([policy('p', { default: [drain, reboot] })], {});
    const { actions, changed } = planActions(
      config(),
      config(entry('Probe', 'api', { tcp: { address: 'a:1' } })),
      effective,
    );
    expect(actions).toEqual([none]);
    expect(changed).toEqual(['Probe/api']);
  });

  test.each([
    ['/etc/frr/frr.conf', [reload('frr.service')]],
    ['/etc/frr/daemons', [restart('frr.service')]],
    ['/etc/frr', [reload('frr.service')]],
    ['/etc/frrr', [none]],
    ['/opt/x', [drain, reboot]],
  ])('uses the longest rule for %s', (path, actions) => {
    const effective = effectivePolicy(
      [
        policy('p', {
          default: [drain, reboot],
          files: [
            { path: '/etc', actions: [none] },
            { path: '/etc/frr/', actions: [reload('frr.service')] },
            { path: '/etc/frr/daemons', actions: [restart('frr.service')] },
          ],
        }),
      ],
      {},
    );
    expect(planActions(config(), config(file(path)), effective).actions).toEqual(actions);
  });

  test('combines the rules of several policies that select the node', () => {
    const effective = effectivePolicy(
      [
        policy('b', { files: [{ path: '/etc/a', actions: [reload('b')] }], default: [daemonReload] }),
        policy('a', {
          files: [
            { path: '/etc/a', actions: [reload('a')] },
            { path: '/etc', actions: [reboot] },
          ],
          default: [drain],
        }),
        policy('c', { files: [{ path: '/etc/a', actions: [reboot] }] }, { matchLabels: { role: 'core' } }),
      ],
      { role: 'edge' },
    );
    expect(planActions(config(), config(file('/etc/a')), effective).because).toEqual([
      {
        what: '/etc/a',
        rule: 'DisruptionPolicy/a files /etc/a, DisruptionPolicy/b files /etc/a',
        actions: [reload('a'), reload('b')],
      },
    ]);
    expect(effective.default).toEqual({
      rule: 'DisruptionPolicy/a default, DisruptionPolicy/b default',
      policies: ['a', 'b'],
      actions: [drain, daemonReload],
    });
  });

  test('uses the defaults of the kinds if a policy has no default', () => {
    expect(planActions(config(), config(file('/a')), effectivePolicy([policy('p', {})], {})).actions).toEqual([none]);
  });

  test('plans the same for a change and its reverse, in any order of fragments', () => {
    const paths = fc.uniqueArray(fc.constantFrom('/a', '/a/b', '/c', '/d/e'), { maxLength: 4 });
    const effective = effectivePolicy(
      [
        policy('p', {
          files: [
            { path: '/a', actions: [reload('a')] },
            { path: '/d', actions: [drain, restart('d')] },
          ],
        }),
      ],
      {},
    );
    fc.assert(
      fc.property(paths, paths, (from, to) => {
        const one = planActions(
          config(...from.map((path) => file(path))),
          config(...to.map((path) => file(path))),
          effective,
        );
        const back = planActions(
          config(...[...to].reverse().map((path) => file(path))),
          config(...from.map((path) => file(path))),
          effective,
        );
        expect(back).toEqual(one);
        expect(one.actions).toEqual(ordered(one.because.flatMap(({ actions }) => actions)));
      }),
    );
  });
});
