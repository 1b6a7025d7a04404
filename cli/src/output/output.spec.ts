import { type KnownBadView, type LeaseView, type PlannedNode, type PoolView } from '#libs/contracts';
import { ago, ALL_WELL, changeView, nodeView, NOW, PLAIN, rolloutView } from '../fakes.fixture.js';
import { configDiff } from '../commands/diff.js';
import { eventLine } from '../commands/events.js';
import { exitCodeOf, wordsOf } from './exit.js';
import { fleetTable, present } from './fleet-tables.js';
import { overview } from './overview.js';
import { planScreen } from './plan.js';
import { counts, rolloutTree } from './rollout-tree.js';
import { fit, table } from './table.js';

const text = (...lines: string[]): string => lines.join('\n');
const pool = (name: string, part: Partial<PoolView> = {}): PoolView => ({
  ledger: 1,
  pool: name,
  maxUnavailable: '2',
  budget: 2,
  members: 4,
  unavailable: [],
  waiting: 0,
  applyMs: 120_000,
  drainMs: 600_000,
  drift: 'report',
  gone: false,
  ...ALL_WELL,
  used: part.unavailable?.length ?? 0,
  ...part,
});

describe('the tree of a change', () => {
  const rollout = rolloutView({
    failed: 1,
    deferred: 1,
    maxFailures: 2,
    reason: '',
    pools: {
      canary: { nodes: 2, done: 2, active: 0, untouched: 0, degraded: 0 },
      workers: { nodes: 44, done: 31, active: 2, untouched: 0, degraded: 0 },
      edge: { nodes: 2, done: 0, active: 0, untouched: 0, degraded: 0 },
    },
    nodes: 48,
    applied: 31,
    worst: [
      { node: 'w-12', pool: 'workers', state: 'applying', reason: '', since: ago(19) },
      { node: 'w-13', pool: 'workers', state: 'draining', reason: '9/11, waiting for pdb web/api', since: ago(130) },
      {
        node: 'w-20',
        pool: 'workers',
        state: 'failed',
        reason: 'probe api failed\nconnect ECONNREFUSED',
        since: ago(65),
      },
      { node: 'w-17', pool: 'workers', state: 'deferred', reason: 'silent since before the start', since: ago(1_860) },
    ],
  });

  test('names the worst nodes first, and how many it leaves out', () => {
    const pools = new Map([
      [
        'workers',
        pool('workers', {
          budget: 4,
          unavailable: [
            { node: 'w-12', because: 'lease', lease: 'l' },
            { node: 'w-13', because: 'lease', lease: 'l' },
          ],
          waiting: 9,
        }),
      ],
    ]);
    expect(
      rolloutTree(
        { id: 'c7', change: changeView({ message: 'Move to crun' }), rollout, pools, now: NOW, nodesPerPool: 3 },
        PLAIN,
      ),
    ).toBe(
      text(
        'c7  ◌ rolling  31/48 applied  failed 1  (2 allowed)  deferred 1  70s',
        '"Move to crun" by ada',
        '├─ canary   ✔ 2/2',
        '├─ edge     · 0/2',
        '└─ workers  ✖ 31/44  2 of 4 unavailable, 9 waiting',
        '   ├─ w-20  ✖ failed    65s    probe api failed',
        '   ├─ w-17  ⏸ deferred  31m    silent since before the start',
        '   ├─ w-13  ◌ draining  2m10s  9/11, waiting for pdb web/api',
        '   └─ 10 more',
      ),
    );
  });

  test('of a committed change says once how many nodes are deferred', () => {
    const change = changeView({ phase: 'committed' });
    const rollout = rolloutView({ phase: 'succeeded', nodes: 3, applied: 1, deferred: 2, endedAt: ago(5) });
    expect(rolloutTree({ id: 'c7', change, rollout, pools: new Map(), now: NOW }, PLAIN).split('\n')[0]).toBe(
      'c7  ✔ committed  1/3 applied  deferred 2  5s ago',
    );
  });

  test('of a paused change shows that and the reason', () => {
    const paused = rolloutView({
      paused: true,
      reason: 'paused by bob: lunch',
      pools: { edge: { nodes: 2, done: 1, active: 0, untouched: 0, degraded: 0 } },
      nodes: 2,
      applied: 1,
    });
    expect(rolloutTree({ id: 'c7', change: changeView(), rollout: paused, pools: new Map(), now: NOW }, PLAIN)).toBe(
      text('c7  ⏸ paused  1/2 applied  paused by bob: lunch  70s', '"Greet" by ada', '└─ edge  ⏸ 1/2'),
    );
  });

  test('of a rollback counts the nodes that the change had reached, and shows a reason once', () => {
    const reverted = rolloutView({
      phase: 'reverted',
      reason: 'n1 is invalid: probe greets failed',
      pools: {
        edge: { nodes: 4, done: 4, active: 0, untouched: 4, degraded: 0 },
        worker: { nodes: 6, done: 6, active: 0, untouched: 5, degraded: 0 },
      },
      nodes: 10,
      failed: 1,
      endedAt: ago(5),
      worst: [{ node: 'n1', pool: 'worker', state: 'invalid', reason: 'probe greets failed', since: ago(9) }],
    });
    const change = changeView({ phase: 'ended', outcome: 'reverted', reason: reverted.reason, message: '' });
    expect(rolloutTree({ id: 'c7', change, rollout: reverted, pools: new Map(), now: NOW }, PLAIN)).toBe(
      text(
        'c7  ✖ reverted  1/1 rolled back  9 untouched  failed 1  (0 allowed)  5s ago',
        'by ada',
        '├─ edge    · 4 untouched',
        '└─ worker  ✖ 1/1  5 untouched',
        '   └─ n1  ✖ invalid  9s  probe greets failed',
      ),
    );
    const untouched = {
      ...reverted,
      pools: { edge: { nodes: 4, done: 4, active: 0, untouched: 4, degraded: 0 } },
      nodes: 4,
    };
    expect(counts(untouched, PLAIN)).toBe('4 untouched  failed 1  (0 allowed)');
    const degraded = {
      ...reverted,
      pools: { worker: { nodes: 6, done: 6, active: 0, untouched: 3, degraded: 1 } },
      nodes: 6,
    };
    expect(rolloutTree({ id: 'c7', change, rollout: degraded, pools: new Map(), now: NOW }, PLAIN).split('\n')).toEqual(
      [
        'c7  ✖ reverted  2/3 rolled back  1 degraded  3 untouched  failed 1  (0 allowed)  5s ago',
        'by ada',
        '└─ worker  ✖ 2/3  1 degraded  3 untouched',
        '   └─ n1  ✖ invalid  9s  probe greets failed',
      ],
    );
    const upToDate = new Set(['n1']);
    expect(rolloutTree({ id: 'c7', change, rollout: reverted, pools: new Map(), now: NOW, upToDate }, PLAIN)).toContain(
      'n1  ✖ invalid  9s  up to date now; probe greets failed',
    );
  });

  test('of a rejected change shows a reason of several fragments once', () => {
    const reason = {
      fragment: 'File/motd',
      field: 'spec',
      code: 'known-bad',
      message: 'config a1 is bad',
      nodes: ['w-1'],
    };
    const reasons = [reason, { ...reason, fragment: 'Probe/greets', nodes: ['w-1', 'w-2'] }];
    const change = changeView({ phase: 'rejected', reasons, endedAt: ago(5), message: '' });
    const tree = rolloutTree({ id: 'c7', change, rollout: undefined, pools: new Map(), now: NOW }, PLAIN);
    expect(tree.split('\n').slice(2)).toEqual(['  ✖ File/motd, Probe/greets: config a1 is bad (w-1, w-2)']);
  });

  test('of a rejected change lists every reason', () => {
    const reasons = [
      {
        fragment: 'File/motd',
        field: 'spec.path',
        code: 'conflict',
        message: 'is managed by File/other',
        nodes: ['w-1', 'w-2'],
      },
      { fragment: '', field: '', code: 'known-bad', message: 'gives w-1 a config that failed on w-9', nodes: [] },
    ];
    expect(
      rolloutTree(
        {
          id: 'c7',
          change: changeView({ phase: 'rejected', reasons, endedAt: ago(5), message: '' }),
          rollout: undefined,
          pools: new Map(),
          now: NOW,
        },
        PLAIN,
      ),
    ).toBe(
      text(
        'c7  ✖ rejected  6 nodes  5s ago',
        'by ada',
        '  ✖ File/motd spec.path: is managed by File/other (w-1, w-2)',
        '  ✖ gives w-1 a config that failed on w-9',
      ),
    );
  });

  test('of a change that was not accepted yet says so', () => {
    expect(rolloutTree({ id: 'c7', change: undefined, rollout: undefined, pools: new Map(), now: NOW }, PLAIN)).toBe(
      'c7  · published  no service has picked it up yet',
    );
  });
});

test('one node is not called nodes', () => {
  const input = {
    changes: new Map(),
    rollouts: new Map(),
    pools: new Map([['edge', pool('edge', { members: 1 })]]),
    now: NOW,
  };
  expect(overview(input, PLAIN)).toMatch(/^1 node\n/);
  const change = changeView({ nodes: 1 });
  expect(rolloutTree({ id: 'c7', change, rollout: undefined, pools: new Map(), now: NOW }, PLAIN)).toMatch(
    /  1 node  /,
  );
});

test('the overview shows open changes first, then ended ones, the latest first', () => {
  const changes = [
    changeView({ change: 'c1', phase: 'committed', acceptedAt: ago(7_300) }),
    changeView({ change: 'c2', phase: 'ended', outcome: 'reverted', reason: 'w-1 is invalid' }),
    changeView({ change: 'c10' }),
    changeView({ change: 'c9', phase: 'waiting', waitsFor: ['c8'], message: '' }),
  ];
  const input = {
    changes: new Map(changes.map((change) => [change.change, change])),
    rollouts: new Map([['c10', rolloutView()]]),
    pools: new Map([
      [
        'edge',
        pool('edge', {
          unavailable: [{ node: 'n1', because: 'silent', lease: '' }],
          waiting: 3,
          members: 2,
          silent: 1,
          silentNodes: ['n1'],
          unhealthy: 6,
          unhealthyNodes: [{ node: 'n2', failingProbes: [{ probe: 'app', reason: 'it says no' }] }],
          targetsUnavailable: 2,
          unavailableTargets: [{ node: 'f1', reason: 'no answer in 5 s' }],
        }),
      ],
      ['old', pool('old', { gone: true, members: 0 })],
    ]),
    now: NOW,
  };
  expect(overview(input, PLAIN)).toBe(
    text(
      '2 nodes, 1 silent (n1), 2 unavailable, 6 unhealthy',
      '  ! f1 is unavailable: no answer in 5 s',
      '  ! n2 is unhealthy: app: it says no',
      '  6 more: list all with sluice get nodes',
      '',
      'POOL   NODES   UNAVAILABLE   WAITING',
      'edge   2       1 of 2        3',
      '',
      'CHANGE   STATE         NODES   AGE    AUTHOR   MESSAGE   WHY',
      'c9       ⏸ waiting     6       75s    ada                waits for c8',
      'c10      ◌ rolling     2/6     75s    ada      Greet',
      'c2       ✖ reverted    6       75s    ada      Greet     w-1 is invalid',
      'c1       ✔ committed   6       2h1m   ada      Greet',
    ),
  );
});

test('a plan counts per pool, groups differences, and sums up', () => {
  const planned = (name: string, of: string, part: Partial<PlannedNode>): PlannedNode => ({
    node: name,
    pool: of,
    from: '',
    to: '',
    actions: [{ kind: 'none' }],
    changed: ['/etc/motd'],
    ...part,
  });
  const reload = { actions: [{ kind: 'reload' as const, unit: 'frr.service' }], changed: ['/etc/frr/frr.conf'] };
  const nodes = [
    planned('e-1', 'edge', {}),
    ...['w-1', 'w-2', 'w-3', 'w-4'].map((name) => planned(name, 'workers', reload)),
    planned('w-5', 'workers', { actions: [{ kind: 'drain' }, { kind: 'reboot' }], changed: ['/etc/kernel'] }),
  ];
  const warnings = [{ fragment: 'File/x', field: '', code: 'not-found', message: 'is not there', nodes: [] }];
  expect(
    planScreen(
      {
        rejected: [],
        warnings,
        maxUnavailable: 2,
        needs: ['Vrf/red'],
        missing: [
          {
            fragment: 'Layer2Network/blue',
            field: 'spec.vrf',
            code: 'missing-reference',
            message: 'no VRF',
            nodes: [],
          },
        ],
        waitsFor: ['c3'],
        nodes,
        pools: { edge: { nodes: 1, budget: 1 }, workers: { nodes: 5, budget: 4, free: 3 } },
        touched: 8,
        unchanged: 2,
      },
      PLAIN,
    ),
  ).toBe(
    text(
      '6 nodes in 2 pools would change, at most 2 at once over all pools',
      '',
      '  POOL      NODES   NONE   RELOAD   RESTART   DRAIN   REBOOT   AT ONCE',
      '  edge      1       1      0        0         0       0        1',
      '  workers   5       0      4        0         0       1        4, 3 now',
      '',
      '  ~ /etc/frr/frr.conf   reload frr.service   4 nodes: w-1, w-2, w-3, …',
      '  ~ /etc/kernel         drain, reboot        1 node: w-5',
      '  ~ /etc/motd           none                 1 node: e-1',
      '',
      '  ! File/x: is not there',
      '  ⏸ would wait for Vrf/red, which does not exist yet',
      '  ! Layer2Network/blue spec.vrf: no VRF',
      '  ⏸ would wait for c3',
      '',
      'Plan: 6 to change (1 with a drain or reboot), 2 unchanged of 8 selected.',
    ),
  );
});

test('a rollout names the limit of its change as such, because its pools may allow fewer nodes', () => {
  const limited = rolloutView({ nodes: 6, applied: 1, maxUnavailable: 5 });
  expect(counts(limited, PLAIN)).toBe('1/6 applied  at most 5 at once by its own limit');
});

test.each([
  [undefined, 'would change'],
  [2, 'would change, at most 2 at once over all pools'],
  [3, 'would change, at most 2 at once over all pools: their budgets allow fewer than the 3 of the change'],
])('a plan with maxUnavailable %j says how many nodes change at once', (maxUnavailable, words) => {
  const node = (name: string, of: string): PlannedNode => ({
    node: name,
    pool: of,
    from: '',
    to: '',
    actions: [],
    changed: [],
  });
  const plan = {
    rejected: [],
    warnings: [],
    waitsFor: [],
    ...(maxUnavailable === undefined ? {} : { maxUnavailable }),
    // One node of the pool edge changes, so its budget of 3 lets one node change.
    nodes: [node('e-1', 'edge'), node('w-1', 'workers'), node('w-2', 'workers')],
    pools: { edge: { nodes: 1, budget: 3 }, workers: { nodes: 2, budget: 1 } },
    touched: 3,
    unchanged: 0,
  };
  expect(planScreen(plan, PLAIN).split('\n')[0]).toBe(`3 nodes in 2 pools ${words}`);
});

test('a plan says which drift it repairs, what changes after the commit, and which nodes it defers', () => {
  const node = (name: string, more: object) => ({
    ...{ node: name, pool: 'edge', from: 'a', to: 'b', actions: [{ kind: 'none' as const }], changed: [] },
    ...more,
  });
  const drift = ['/etc/motd: content differs'];
  const nodes = [
    node('e-1', { drift, overwritesDrift: true, afterCommit: true }),
    node('e-2', {
      changed: ['/etc/app'],
      leavesDrift: ['/etc/app: x'],
      drift: ['/etc/a: mode 0644 instead of 0600', '… and 4 more'],
    }),
    node('e-3', { deferred: 'silent', leavesDrift: ['/b: is a directory, and cannot be corrected: it is not empty'] }),
    node('e-4', { drift, deferred: 'drift', changed: ['/etc/motd'], leavesDrift: ['/etc/motd: y'] }),
    node('e-5', { deferred: 'incompatible', changed: ['/etc/motd'] }),
    node('e-6', { deferred: 'incompatible', changed: ['/etc/motd'] }),
  ];
  const plan = { rejected: [], warnings: [], waitsFor: [], nodes, pools: { edge: { nodes: 2, budget: 1 } } };
  expect(planScreen({ ...plan, touched: 7, unchanged: 2 }, PLAIN)).toBe(
    text(
      '2 nodes in 1 pool would change',
      '',
      '  POOL   NODES   NONE   RELOAD   RESTART   DRAIN   REBOOT   AT ONCE',
      '  edge   2       2      0        0         0       0        1',
      '',
      '  ~ /etc/app, /etc/a (drift), … and 4 more (drift)   none   1 node: e-2',
      '  ~ /etc/motd (drift)                                none   1 node: e-1',
      '',
      '  ! the change overwrites drift on 1 node (e-1): see sluice get drift',
      '  ! the change may fail on 1 node (e-2): /etc/app: x: undo it on the node',
      '  ! drift on 1 node (e-3) stays: /b: is a directory, and cannot be corrected: it is not empty: undo it on the node',
      '  ! drift on 1 node (e-4) stays: /etc/motd: y: undo it on the node',
      '  ! 1 node (e-1) changes after the commit',
      '  ⏸ deferred on 1 node (e-3), because it is silent',
      '  ⏸ deferred on 2 nodes (e-5, e-6), because they are incompatible',
      '',
      'Plan: 2 to change (0 with a drain or reboot), 4 deferred, 2 unchanged of 7 selected.',
    ),
  );
});

test('a diff of configs shows a file line by line, and added and removed fragments', () => {
  const file = (content: string) => ({ kind: 'File', name: 'motd', spec: { path: '/etc/motd', content } });
  expect(
    configDiff(
      { fragments: [file('one\ntwo\nthree\n'), { kind: 'Probe', name: 'p', spec: { timeout: '1s' } }] },
      { fragments: [file('one\n2\nthree\n')] },
      PLAIN,
    ),
  ).toBe(
    text(
      '--- a/File/motd',
      '+++ b/File/motd',
      '@@ -1,5 +1,5 @@',
      ' path: /etc/motd',
      ' content: |',
      '   one',
      '-  two',
      '+  2',
      '   three',
      '--- a/Probe/p',
      '+++ /dev/null',
      '@@ -1,1 +0,0 @@',
      '-timeout: 1s',
    ),
  );
});

test('a diff shows of content in the object store what it is', () => {
  const image = (letter: string) => ({
    fragments: [
      {
        kind: 'File',
        name: 'image',
        spec: { path: '/image', contentFrom: { object: 'x.tar', sha256: letter.repeat(64) } },
      },
    ],
  });
  expect(configDiff(image('a'), image('b'), PLAIN, new Map([['b'.repeat(64), 104_857_600]])).split('\n')).toEqual([
    '--- a/File/image',
    '+++ b/File/image',
    '@@ -1,2 +1,2 @@',
    ' path: /image',
    `-contentFrom: "x.tar: binary, unknown bytes, sha256 ${'a'.repeat(64)}"`,
    `+contentFrom: "x.tar: binary, 104857600 bytes, sha256 ${'b'.repeat(64)}"`,
  ]);
});

test('a diff of very large or very different files stays short, and says where to find the rest', () => {
  const config = (content: string) => ({ fragments: [{ kind: 'File', name: 'f', spec: { path: '/f', content } }] });
  const lines = (count: number, text: (i: number) => string): string =>
    Array.from({ length: count }, (_, i) => `${text(i)}\n`).join('');
  const linesOf = (a: string, b: string): string[] => configDiff(config(a), config(b), PLAIN).split('\n');
  const other = linesOf(
    lines(20_000, (i) => `a ${i} ${'x'.repeat(30)}`),
    lines(21_000, (i) => `b ${i} ${'x'.repeat(30)}`),
  );
  expect(other).toEqual([
    '--- a/File/f',
    '+++ b/File/f',
    '! 20002 lines became 21002 lines, most of them different; -o json has both',
  ]);
  const added = linesOf('', lines(2_000, String));
  expect([added.length, added.at(-1)]).toEqual([501, expect.stringMatching(/^… 15\d\d more lines; -o json has both/)]);
  expect(linesOf('', 'x'.repeat(5_000)).find((line) => line.includes('xxx'))).toMatch(
    /^.{500}… \(50\d\d characters\)$/,
  );
});

test('tables leave out items that are gone, and sort numbers numerically', () => {
  const nodes = present('nodes', [nodeView('w-10'), nodeView('w-9', 'silent'), nodeView('w-1', 'gone')]);
  expect(fleetTable('nodes', nodes, NOW, PLAIN)).toBe(
    text(
      'NODE   STATE    DRIFT   SINCE   VERSION   LABELS',
      'w-9    silent           61m     0.1.0     role=edge,zone=a',
      'w-10   ready            61m     0.1.0     role=edge,zone=a',
    ),
  );
  const bad: KnownBadView = {
    ledger: 1,
    hash: 'ab'.repeat(32),
    recipe: 'ef'.repeat(32),
    change: 'c2',
    node: 'w-1',
    lease: 'l',
    reason: 'probe failed\nmore',
    since: ago(61),
    gone: false,
    findings: ['l'],
    clearedFindings: [],
    clearedBy: '',
    clearedReason: '',
  };
  expect(
    fleetTable(
      'nodes',
      [
        {
          ...nodeView('w-1'),
          unavailable: 'cordoned',
          taken: { owner: 'kured', reason: 'a new kernel', at: '', forMs: 1_800_000 },
        },
        { ...nodeView('w-2'), taken: { owner: 'me', reason: '', at: '', forMs: 0 } },
      ],
      NOW,
      PLAIN,
    )
      .split('\n')
      .slice(1)
      .map((line) => line.split(/ {2,}/)[1]),
  ).toEqual(['ready,cordoned,taken by kured for 30m', 'ready,taken by me']);
  expect(fleetTable('known-bad', [bad], NOW, PLAIN)).toContain(
    `${'ab'.repeat(32)}   efefefefefef   c2       w-1    61s     probe failed`,
  );
  const lease = {
    ledger: 1,
    node: 'w-1',
    pool: 'w',
    lease: 'l',
    change: 'c2',
    kind: 'forward',
    phase: 'applying',
    hash: 'cd'.repeat(32),
    from: '',
    actions: [{ kind: 'restart', unit: 'a.service' }],
    applyMs: 1,
    drainMs: 1,
    because: '',
    reason: '',
    grantedAt: ago(4),
    settledAt: '',
  } as LeaseView;
  expect(fleetTable('leases', [lease], NOW, PLAIN).split('\n')[1]).toBe(
    'w-1    w      applying   forward   c2       restart a.service   cdcdcdcdcdcd   4s',
  );
});

test('an event is one line with the important fields', () => {
  const body = {
    v: 1,
    at: 'x',
    change: 'c2',
    node: 'w-1',
    pool: 'w',
    lease: 'c2-w-1-1',
    hash: 'ab'.repeat(32),
    kind: 'forward',
    actions: [{ kind: 'reload', unit: 'frr.service' }],
    applyMs: 120_000,
  };
  const event = {
    stream: 'LEDGER',
    sequence: 1,
    subject: 'node.lease.granted.w.w-1',
    time: '2026-11-21T10:00:00.5Z',
    body,
  };
  expect(eventLine({ ...event, time: '2026-11-21T10:00:00.500Z' }, PLAIN)).toBe(
    '10:00:00.500 node.lease.granted.w.w-1  lease=c2-w-1-1 hash=abababababab kind=forward actions="reload frr.service" applyMs=120000',
  );
  expect(eventLine({ ...event, body: 'not json' }, PLAIN)).toContain('not json');
});

test('a line that is cut ends its colours', () => {
  expect(fit('\u001b[31mabcdef\u001b[39m', 4)).toBe('\u001b[31mabc…\u001b[39m');
});

test('columns are aligned and lines are cut where the terminal shows them', () => {
  const family = '👨\u200d👩\u200d👧';
  expect(
    table(
      ['WHAT', 'N'],
      [
        ['日本語', '1'],
        ['cafe\u0301', '2'],
        [family, '3'],
        ['a\tb', '4'],
      ],
    ),
  ).toBe(text('WHAT     N', '日本語   1', 'cafe\u0301     2', `${family}       3`, 'a b      4'));
  expect(['日本語', 'cafe\u0301s', `${family}${family}`, 'a\tbcd'].map((line) => fit(line, 4))).toEqual([
    '日…',
    'caf…',
    `${family}${family}`,
    'a b…',
  ]);
});

test('a missing bucket is not taken for a server on which no service has ever run', () => {
  expect(wordsOf(new Error('stream not found'))).toMatch(
    /^the NATS server lacks a stream or bucket of Sluice\. If no service .*; otherwise sluice doctor says what is missing$/,
  );
});

test('an error that says what to do refers to no other command, and sluice doctor never refers to itself', () => {
  const server = Object.assign(new Error('h has no JetStream: start it with -js'), { name: 'NoJetStreamError' });
  expect([exitCodeOf(server), wordsOf(server)]).toEqual([6, server.message]);
  const silent = Object.assign(new Error('h does not answer: timeout'), { name: 'NoConnectionError' });
  expect(wordsOf(silent)).toBe(`${silent.message}\nRun sluice doctor to find out what is missing.`);
  expect(wordsOf(silent, { isDoctor: true })).toBe(silent.message);
  expect(wordsOf(new Error('stream not found'), { isDoctor: true })).toMatch(/another server with --server$/);
});
