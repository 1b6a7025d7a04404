import type { Fragment } from '#libs/contracts';
import {
  applyMsOf,
  DEFAULT_POOL,
  durationMs,
  isPolicyKind,
  normalPath,
  parseDrain,
  parsePool,
  parseRolloutPolicy,
  pausedName,
} from './index.js';

const fragment = (kind: string, spec: object): Fragment =>
  ({ kind, name: 'edge', labels: {}, spec: { nodeSelector: {}, ...spec } }) as Fragment;

test('a pool without settings has the defaults', () => {
  expect(parsePool(fragment('Pool', {}))).toEqual({ ...DEFAULT_POOL, name: 'edge' });
  expect(DEFAULT_POOL).toEqual({
    name: 'default',
    maxUnavailable: { kind: 'count', n: 1 },
    text: '1',
    applyMs: undefined,
    drainMs: 600_000,
    drain: {},
    drift: 'report',
    countsSilentTargets: false,
    selector: {},
  });
});

test.each([
  [[], '2m'],
  [['applier:remote', 'kind:Mwan3Policy', 'kind:Probe'], '2m'],
  [['applier:remote', 'kind:KubeObjects', 'kind:Probe'], '10m'],
  [['applier:remote', 'kind:FleetChange', 'kind:Probe'], '6h'],
])('a node with the capabilities %j may take %s, unless its pool says something else', (capabilities, time) => {
  expect(applyMsOf(parsePool(fragment('Pool', {})), capabilities)).toBe(durationMs(time));
  expect(applyMsOf(parsePool(fragment('Pool', { applyTimeout: '90s' })), capabilities)).toBe(90_000);
});

test('drain settings are kept as written, and a drain that may be forced has twice the time', () => {
  expect(parsePool(fragment('Pool', { drainTimeout: '5m', drain: { onTimeout: 'force' } }))).toMatchObject({
    drainMs: 600_000,
    drain: { onTimeout: 'force' },
  });
  expect(parsePool(fragment('Pool', { drainTimeout: '5m', drain: { onTimeout: 'defer' } })).drainMs).toBe(300_000);
});

test('what to pause is part of the drain settings, with its defaults', () => {
  const { drain } = parsePool(
    fragment('Pool', {
      drain: { emptyDir: 'evict' },
      pause: [{ apiVersion: 'machineconfiguration.openshift.io/v1', kind: 'MachineConfigPool', name: 'worker' }],
    }),
  );
  const policy = parseDrain(drain);
  expect(policy).toMatchObject({
    emptyDir: 'evict',
    pause: [{ name: 'worker', namespace: '', waitWhile: ['Updating'] }],
  });
  expect(policy.pause.map(pausedName)).toEqual(['MachineConfigPool.machineconfiguration.openshift.io worker']);
  expect(pausedName({ apiVersion: 'v1', kind: 'Thing', namespace: 'apps', name: 'x' })).toBe('Thing apps/x');
});

test('a drain without settings evicts what it may, waits, and fails', () => {
  expect(parseDrain({})).toEqual({
    graceSeconds: undefined,
    unmanaged: 'block',
    emptyDir: 'block',
    rules: [],
    only: undefined,
    onTimeout: 'fail',
    onUncordon: 'restore',
    pause: [],
  });
  expect(parseDrain({ gracePeriod: '100ms' }).graceSeconds).toBe(1);
});

test('a pool with all settings is read', () => {
  const nodeSelector = { matchLabels: { role: 'edge' } };
  expect(
    parsePool(
      fragment('Pool', {
        nodeSelector,
        maxUnavailable: '10%',
        applyTimeout: '90s',
        drainTimeout: '1h',
        drift: 'repair',
      }),
    ),
  ).toEqual({
    name: 'edge',
    maxUnavailable: { kind: 'percent', p: 10 },
    text: '10%',
    applyMs: 90_000,
    drainMs: 3_600_000,
    drain: {},
    drift: 'repair',
    countsSilentTargets: false,
    selector: nodeSelector,
  });
});

test('a rollout policy is read', () => {
  expect(parseRolloutPolicy(fragment('RolloutPolicy', { maxFailures: 3 }))).toEqual({
    name: 'edge',
    maxFailures: 3,
    health: 'tolerant',
    selector: {},
  });
  expect(parseRolloutPolicy(fragment('RolloutPolicy', { maxFailures: 3, health: 'strict' })).health).toBe('strict');
});

test.each([
  ['5s', 5_000],
  ['2m', 120_000],
  ['1h30m', 5_400_000],
  ['500ms', 500],
  ['1m500ms', 60_500],
  ['168h', 604_800_000],
  ['', undefined],
  ['0s', undefined],
  ['5', undefined],
  ['-5s', undefined],
  ['1.5s', undefined],
  ['5 s', undefined],
  ['30m1h', undefined],
  ['169h', undefined],
  ['5S', undefined],
])('the duration %j has %s ms', (text, ms) => {
  expect(durationMs(text)).toBe(ms);
});

test.each([
  ['/a//b/./c/', '/a/b/c'],
  ['/', '/'],
  ['//.', '/'],
  ['/a/...', '/a/...'],
])('the path %s is %s', (path, normal) => {
  expect(normalPath(path)).toBe(normal);
});

test.each([
  ['Pool', true],
  ['DisruptionPolicy', true],
  ['RolloutPolicy', true],
  ['File', false],
  ['Probe', false],
  ['Unknown', false],
])('%s is a policy: %s', (kind, policy) => {
  expect(isPolicyKind(kind)).toBe(policy);
});
