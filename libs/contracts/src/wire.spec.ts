import fc from 'fast-check';
import {
  decodeAlive,
  decodePathQuery,
  decodePace,
  decodeReport,
  decodeView,
  encodeReport,
  encodeView,
  REPORT_KINDS,
  reportSubject,
  VERDICTS,
  WireError,
  type Action,
  type LeaseView,
  type NodeReport,
} from './index.js';

const text = fc.string({ maxLength: 5 });
const texts = fc.array(text, { maxLength: 2 });
const count = fc.nat({ max: 2 ** 32 - 1 });
const report: fc.Arbitrary<NodeReport> = fc.record({
  kind: fc.constantFrom(...REPORT_KINDS),
  v: fc.constant(1),
  at: text,
  node: fc.constant('w-1.dc1'),
  incarnation: count,
  nonce: count,
  seq: count,
  bootId: text,
  hash: text,
  lease: text,
  verdict: fc.constantFrom(...VERDICTS),
  reason: text,
  restored: fc.boolean(),
  change: text,
  pool: text,
  labels: fc.dictionary(text, text, { maxKeys: 2, noNullPrototype: true }),
  capabilities: texts,
  fresh: fc.boolean(),
  version: text,
  durationMs: count,
  changed: texts,
  probe: text,
  differences: texts,
  failingProbes: fc.array(fc.record({ probe: text, reason: text }), { maxLength: 2 }),
  notUndone: texts,
  leftovers: texts,
  untouched: fc.boolean(),
  needsRestart: fc.boolean(),
  step: text,
});

describe('a report on the wire', () => {
  test('is read as it was written, although empty optional fields are left out', () => {
    fc.assert(
      fc.property(report, (sent) => {
        expect(decodeReport(reportSubject(sent.kind, sent.node), encodeReport(sent))).toEqual(sent);
      }),
    );
  });

  test('contains the fields that its kind requires, even if they are empty', () => {
    const [nothing] = fc.sample(report, { numRuns: 1, seed: 1 }) as [NodeReport];
    const empty = {
      ...nothing,
      labels: {},
      capabilities: [],
      fresh: false,
      version: '',
      durationMs: 0,
      changed: [],
      probe: '',
      differences: [],
      failingProbes: [],
      notUndone: [],
      leftovers: [],
      needsRestart: false,
      step: '',
      reason: '',
      restored: false,
    };
    const fields = (kind: NodeReport['kind']) => Object.keys(JSON.parse(encodeReport({ ...empty, kind })) as object);
    expect(fields('announced')).toEqual(
      expect.arrayContaining([
        'labels',
        'capabilities',
        'hash',
        'lease',
        'verdict',
        'reason',
        'restored',
        'incarnation',
        'nonce',
        'seq',
        'fresh',
        'version',
        'bootId',
      ]),
    );
    expect(fields('applied')).toEqual(
      expect.arrayContaining(['durationMs', 'changed', 'pool', 'change', 'lease', 'hash']),
    );
    expect(fields('applied')).not.toEqual(expect.arrayContaining(['labels']));
    expect(fields('invalid')).toEqual(expect.arrayContaining(['reason', 'probe', 'restored']));
    expect(fields('failed')).toEqual(expect.arrayContaining(['reason', 'restored', 'needsRestart']));
    expect(fields('drifted')).toEqual(expect.arrayContaining(['differences']));
  });
});

const lease = (actions: readonly object[]): string =>
  encodeView('leases', {
    ledger: 1,
    node: 'n',
    pool: 'default',
    lease: 'l1',
    change: 'c1',
    kind: 'forward',
    phase: 'applying',
    hash: '',
    from: '',
    actions: actions as readonly Action[],
    applyMs: 1,
    drainMs: 0,
    because: '',
    reason: '',
    grantedAt: '',
    settledAt: '',
  } satisfies LeaseView);

test.each<[string, readonly object[], readonly object[]]>([
  [
    'the known actions of a lease stay as they are',
    [{ kind: 'drain' }, { kind: 'restart', unit: 'a' }],
    [{ kind: 'drain' }, { kind: 'restart', unit: 'a' }],
  ],
  ['an action of a later version becomes a reboot', [{ kind: 'kexec' }], [{ kind: 'reboot' }]],
  [
    'it replaces all other actions except the drain',
    [{ kind: 'drain' }, { kind: 'kexec' }, { kind: 'restart', unit: 'a' }],
    [{ kind: 'drain' }, { kind: 'reboot' }],
  ],
])('%s', (_name, sent, read) => {
  expect(
    decodeView('leases', lease(sent)).actions.map(({ kind, unit }) =>
      unit === undefined || unit === '' ? { kind } : { kind, unit },
    ),
  ).toEqual(read);
});

test('a phase of a later version is refused, because its meaning is unknown', () => {
  expect(() => decodeView('leases', lease([]).replace('"applying"', '"thawing"'))).toThrow(WireError);
});

test.each(['"NaN"', '"Infinity"', '1e999', '-5', '"soon"'])(
  'a heartbeat interval of %s is refused by both sides',
  (text) => {
    expect(() => decodePace(`{"everyMs":${text}}`)).toThrow(WireError);
    for (const field of ['everyMs', 'pacedMs'])
      expect(() => decodeAlive('alive.n0', `{"node":"n0","incarnation":1,"nonce":1,"${field}":${text}}`)).toThrow(
        WireError,
      );
  },
);

test('a node is asked for at most 100 paths at once', () => {
  const paths = (count: number): string => JSON.stringify({ paths: Array.from({ length: count }, () => '/x') });
  expect(decodePathQuery(paths(100)).paths).toHaveLength(100);
  expect(() => decodePathQuery(paths(101))).toThrow('a request for 101 paths, but at most 100 are allowed');
  const entries = JSON.stringify({ entries: Array.from({ length: 101 }, () => ({ kind: 'File', name: 'x' })) });
  expect(() => decodePathQuery(entries)).toThrow('a request for 101 paths, but at most 100 are allowed');
  expect(() => decodePathQuery('{"paths":[1]}')).toThrow(WireError);
});

test('a heartbeat without an interval is read with interval 0', () => {
  expect(decodeAlive('alive.n0', '{"node":"n0","incarnation":1,"nonce":1}')).toEqual({
    node: 'n0',
    incarnation: 1,
    nonce: 1,
    everyMs: 0,
    pacedMs: 0,
  });
});
