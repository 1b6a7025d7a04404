import { declaredOf, troubleOf } from './definitions.js';

const difference = (kind: string, more: object) => ({ kind, isMissing: false, lacks: [], adds: [], ...more });

it('has no message if there is no difference', () => {
  expect(troubleOf([], ['v1alpha1'])).toEqual({ words: undefined, kinds: new Map(), unsaid: new Map() });
});

it('names the existing versions if ours is missing', () => {
  expect(troubleOf(undefined, []).words).toBe(
    'the API server does not serve sluice.dev/v1alpha1: no object is published',
  );
  expect(troubleOf(undefined, ['v1', 'v1beta1']).words).toBe(
    'the API server does not serve sluice.dev/v1alpha1, only v1, v1beta1: no object is published',
  );
});

it('says for each kind what happens to its fields, and names only some of many', () => {
  const { words, kinds } = troubleOf(
    [
      difference('Exec', { isMissing: true }),
      difference('File', { lacks: ['spec.mode'] }),
      difference('Pool', { adds: [...'abcdefg'].map((name) => `spec.${name}`) }),
    ],
    ['v1alpha1'],
  );
  expect(words).toBe(
    [
      'the API server has no definition of Exec',
      'the API server has another version of the definition of File: it does not have spec.mode',
      'the API server has another version of the definition of Pool: it has spec.a, spec.b, spec.c, spec.d, spec.e and 2 more, which this gateway rejects',
    ].join('; '),
  );
  expect([...kinds.keys()]).toEqual(['File', 'Pool']);
});

it('removes fields from a status that the definition lacks, because the API server would refuse all of it', () => {
  const trouble = troubleOf(
    [difference('Pool', { lacks: ['spec.drift', 'status.usedBy', 'status.pools.done'] })],
    ['v1alpha1'],
  );
  expect(declaredOf(trouble, 'Pool', { phase: 'Ready', usedBy: 'n1 (silent)', pools: {} })).toEqual({ phase: 'Ready' });
  expect(declaredOf(trouble, 'File', { phase: 'Ready', usedBy: '' })).toEqual({ phase: 'Ready', usedBy: '' });
});
