import fc from 'fast-check';
import {
  decodeAlive,
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
  needsRestart: fc.boolean(),
  step: text,
});

describe('a report on the wire', () => {
  test('is read as it was written, though what its kind does not say is left out where it is empty', () => {
    fc.assert(
      fc.property(report, (said) => {
        expect(decodeReport(reportSubject(said.kind, said.node), encodeReport(said))).toEqual(said);
      }),
    );
  });

  test('says what its kind promises, also when that is nothing', () => {
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
    'the actions of a lease stay as they are',
    [{ kind: 'drain' }, { kind: 'restart', unit: 'a' }],
    [{ kind: 'drain' }, { kind: 'restart', unit: 'a' }],
  ],
  ['an action of a later version is a reboot', [{ kind: 'kexec' }], [{ kind: 'reboot' }]],
  [
    'it stands alone but for the drain',
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

test('a phase of a later version is refused, for nobody knows what it asks', () => {
  expect(() => decodeView('leases', lease([]).replace('"applying"', '"thawing"'))).toThrow(WireError);
});

test.each(['"NaN"', '"Infinity"', '1e999', '-5', '"soon"'])('a pace of %s is refused, from either side', (text) => {
  expect(() => decodePace(`{"everyMs":${text}}`)).toThrow(WireError);
  for (const field of ['everyMs', 'pacedMs'])
    expect(() => decodeAlive('alive.n0', `{"node":"n0","incarnation":1,"nonce":1,"${field}":${text}}`)).toThrow(
      WireError,
    );
});

test('a heartbeat of a version that says nothing of its pace says 0', () => {
  expect(decodeAlive('alive.n0', '{"node":"n0","incarnation":1,"nonce":1}')).toEqual({
    node: 'n0',
    incarnation: 1,
    nonce: 1,
    everyMs: 0,
    pacedMs: 0,
  });
});
