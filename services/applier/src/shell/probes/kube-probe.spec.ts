import { kubeProbe } from './kube-probe.js';
import type { KubeReader, ProbeSurroundings } from './probe-types.js';

const SPEC = { apiVersion: 'apps/v1', kind: 'Deployment', namespace: 'prod', name: 'web' };
const object = (conditions: unknown, more: object = {}): object => ({
  metadata: { generation: 2 },
  status: { conditions, ...more },
});
const around = (found: object | undefined): ProbeSurroundings => {
  const kube: KubeReader = { read: () => Promise.resolve(found) };
  return { kube } as unknown as ProbeSurroundings;
};
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
])('%s', async (_name, spec, found, reason) => {
  expect(await kubeProbe.tryOnce({ ...SPEC, ...spec }, around(found), 1_000, 1_000)).toBe(reason);
});

test('a node that is no cluster refuses it', () => {
  expect(() => kubeProbe.check(SPEC, {} as ProbeSurroundings)).toThrow(
    'a kube probe needs a cluster: this node is none',
  );
});
