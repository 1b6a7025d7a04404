import { join } from 'node:path';
import { Expressions } from './expressions.js';
import { kubeProbe } from './kube-probe.js';
import type { KubeReader, ProbeSurroundings } from './probe-types.js';

const SPEC = { apiVersion: 'apps/v1', kind: 'Deployment', namespace: 'prod', name: 'web' };
const object = (conditions: unknown, more: object = {}): object => ({
  metadata: { generation: 2 },
  status: { conditions, ...more },
});
const around = (found: object | undefined): ProbeSurroundings => {
  const kube: KubeReader = { read: () => Promise.resolve(found) };
  return { kube, expressions } as unknown as ProbeSurroundings;
};
const expressions = new Expressions(
  join(__dirname, '../../../../../dist/services/applier/src/shell/probes/expression-main.js'),
);
afterAll(() => expressions.close());
const AVAILABLE = { type: 'Available', status: 'True' };

test.each<readonly [string, object, object | undefined, string | undefined]>([
  ['an object that exists', {}, object([]), undefined],
  ['an object that does not', {}, undefined, 'Deployment/prod/web does not exist'],
  ['an absent object', { absent: true }, undefined, undefined],
  ['an object that must be absent', { absent: true }, object([]), 'Deployment/prod/web exists'],
  ['a condition', { condition: 'Available' }, object([null, AVAILABLE]), undefined],
  [
    'another status',
    { condition: 'Available', status: 'False' },
    object([{ ...AVAILABLE, status: 'False' }]),
    undefined,
  ],
  ['no condition', { condition: 'Available' }, object('x'), 'Deployment/prod/web has no condition Available'],
  [
    'a condition that does not hold',
    { condition: 'Available' },
    object([{ ...AVAILABLE, status: 'False', reason: 'Few', message: 'too few pods' }]),
    'Deployment/prod/web: Available is False instead of True (Few: too few pods)',
  ],
  [
    'a condition of an older generation',
    { condition: 'Available' },
    object([AVAILABLE], { observedGeneration: 1 }),
    'Deployment/prod/web: its controller has not seen its latest generation',
  ],
  ['an expression', { expression: 'object.status.ready >= 2' }, object([], { ready: 2 }), undefined],
  [
    'an expression that is false',
    { expression: 'object.status.ready >= 2' },
    object([], { ready: 1 }),
    'Deployment/prod/web: object.status.ready >= 2: it is false',
  ],
  [
    'an expression about a field that is missing',
    { expression: 'object.status.ready >= 2' },
    object([]),
    'Deployment/prod/web: object.status.ready >= 2: no such key: ready',
  ],
  [
    'an expression about an object that does not exist',
    { expression: 'true' },
    undefined,
    'Deployment/prod/web does not exist',
  ],
  [
    'an expression about the status of an older generation',
    { expression: 'true' },
    object([], { observedGeneration: 1 }),
    'Deployment/prod/web: its controller has not seen its latest generation',
  ],
  [
    'an expression and a condition that does not hold',
    { expression: 'true', condition: 'Available' },
    object([]),
    'Deployment/prod/web has no condition Available',
  ],
  [
    'a long expression',
    { expression: `object.status.ready == 2 ${'|| false '.repeat(40)}` },
    object([], { ready: 1 }),
    `Deployment/prod/web: object.status.ready == 2 ${'|| false '.repeat(19)}|| …: it is false`,
  ],
])('%s', async (_name, spec, found, reason) => {
  expect(await kubeProbe.tryOnce({ ...SPEC, ...spec }, around(found), 60_000, 60_000)).toBe(reason);
});

test('a node that is no cluster refuses it', () => {
  expect(() => kubeProbe.check(SPEC, {} as ProbeSurroundings)).toThrow(
    'a kube probe needs a cluster: this node is none',
  );
});
