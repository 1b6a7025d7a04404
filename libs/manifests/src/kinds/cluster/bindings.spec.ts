import { checkManifest } from '../../manifest.js';
import { fieldAt, fieldSteps } from './field-path.js';
import { boundFieldText, textOfValue } from './bound-value.js';

const object = { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'prod', name: 'about', fieldPath: 'data.region' };
const kubeObjects = (...bindings: readonly unknown[]): object => ({
  apiVersion: 'sluice.dev/v1alpha1',
  kind: 'KubeObjects',
  metadata: { name: 'x' },
  spec: {
    nodeSelector: {},
    bindings,
    objects: [{ apiVersion: 'v1', kind: 'Namespace', metadata: { name: '{{ bindings.REGION }}' } }],
  },
});
const fluxSync = (...bindings: readonly unknown[]): object => ({
  apiVersion: 'sluice.dev/v1alpha1',
  kind: 'FluxSync',
  metadata: { name: 'x' },
  spec: {
    nodeSelector: {},
    bindings,
    git: { url: 'https://example.com/a', commit: '0'.repeat(40) },
    substitute: { REGION: '{{ bindings.REGION }}' },
  },
});
const reasons = (document: object): readonly string[] => {
  const checked = checkManifest(document, '');
  return checked.ok ? [] : checked.reasons.map(({ field, code }) => `${field} ${code}`);
};

describe('bindings', () => {
  it.each([
    ['a label', { name: 'REGION', label: 'example.com/region' }],
    ['a label with a default', { name: 'REGION', label: 'region', default: '' }],
    ['a field of an object', { name: 'REGION', object }],
    [
      'one on the hub with a name of the node',
      { name: 'REGION', object: { ...object, from: 'hub', name: '{{ node.name }}' } },
    ],
    ['one without a namespace', { name: 'REGION', object: { ...object, kind: 'Node', namespace: undefined } }],
  ])('may be %s', (_, binding) => {
    const written = JSON.parse(JSON.stringify(binding)) as unknown;
    expect([reasons(kubeObjects(written)), reasons(fluxSync(written))]).toEqual([[], []]);
  });

  it.each([
    ['nothing', { name: 'REGION' }, 'spec.bindings[0] exactly-one'],
    ['two things', { name: 'REGION', label: 'a', object }, 'spec.bindings[0] exactly-one'],
    ['without a name', { label: 'a' }, 'spec.bindings[0].name required'],
    ['with a name of two words', { name: 'A-B', label: 'a' }, 'spec.bindings[0].name bad-name'],
    ['with a template as a name', { name: '{{ node.name }}', label: 'a' }, 'spec.bindings[0].name bad-name'],
    ['a Secret', { name: 'A', object: { ...object, kind: 'Secret' } }, 'spec.bindings[0].object.kind forbidden'],
    ['another place', { name: 'A', object: { ...object, from: 'moon' } }, 'spec.bindings[0].object.from unknown-word'],
    [
      'a template as a kind',
      { name: 'A', object: { ...object, kind: '{{ node.name }}' } },
      'spec.bindings[0].object.kind bad-kind',
    ],
    [
      'a bad path',
      { name: 'A', object: { ...object, fieldPath: '.data' } },
      'spec.bindings[0].object.fieldPath bad-field-path',
    ],
    ['a large default', { name: 'A', label: 'a', default: 'ä'.repeat(2_049) }, 'spec.bindings[0].default too-large'],
    ['a field that is unknown', { name: 'A', label: 'a', defaults: 'a' }, 'spec.bindings[0].defaults unknown-field'],
  ])('must not be %s', (_, binding, reason) => {
    expect(reasons(kubeObjects(binding))).toEqual([reason]);
  });

  it('have names of their own', () => {
    const one = { name: 'A', label: 'a' };
    expect(reasons(kubeObjects(one, { ...one, label: 'b' }))).toEqual(['spec.bindings[1].name duplicate']);
  });

  it('are not for other kinds', () => {
    const file = { path: '/a', content: '', mode: '0644', nodeSelector: {}, bindings: [{ name: 'A', label: 'a' }] };
    const document = { apiVersion: 'sluice.dev/v1alpha1', kind: 'File', metadata: { name: 'x' }, spec: file };
    expect(reasons(document)).toEqual(['spec.bindings unknown-field']);
  });
});

describe('the path of a field', () => {
  it.each([
    ['data.region', ['data', 'region']],
    ["metadata.labels['example.com/zone']", ['metadata', 'labels', 'example.com/zone']],
    ['status.addresses[0].ip', ['status', 'addresses', 0, 'ip']],
    ["data['a.b'][1]['c']", ['data', 'a.b', 1, 'c']],
    ['spec.a-b_c', ['spec', 'a-b_c']],
  ])('%s has these steps', (path, steps) => {
    expect(fieldSteps(path)).toEqual(steps);
  });

  it.each([
    '',
    '.',
    '.data',
    'data.',
    'data..a',
    'data[',
    'data[-1]',
    "['a']",
    '[0]',
    'a b',
    "data['']",
    'data[a]',
    'a.[0]',
  ])('%j is none', (path) => expect(fieldSteps(path)).toBeUndefined());

  it('leads to what an object has there, and to nothing that it inherits', () => {
    const live = { data: { a: '1', 'b.c': '2' }, list: [{ ip: 'x' }], no: null };
    const at = (path: string): unknown => fieldAt(live, path);
    expect([at('data.a'), at("data['b.c']"), at('list[0].ip'), at('no')]).toEqual(['1', '2', 'x', null]);
    for (const path of ['data.constructor', 'data.a.length', 'list.length', 'list[1]', 'data[0]', 'no.a', 'x.y'])
      expect(at(path)).toBeUndefined();
  });
});

it('a value is a text, or there is a reason why it is none', () => {
  expect([textOfValue(0), textOfValue(false), textOfValue('')]).toEqual([
    { value: '0' },
    { value: 'false' },
    { value: '' },
  ]);
  expect(textOfValue('x'.repeat(4_096))).toEqual({ value: 'x'.repeat(4_096) });
  for (const [value, words] of [
    [undefined, 'does not have this field'],
    [{}, 'is an object'],
    [[], 'is a list'],
    [null, 'is null'],
    ['\ud800', 'no valid Unicode'],
    ['x'.repeat(4_097), 'has 4097 bytes; the limit is 4096'],
  ] as const)
    expect(textOfValue(value).missing).toContain(words);
});

it('a field is named with its object and where that is', () => {
  const field = { ...object, from: 'hub' } as const;
  expect(boundFieldText(field)).toBe('data.region of ConfigMap prod/about on the hub');
  expect(boundFieldText({ ...field, from: 'cluster', namespace: '' })).toBe('data.region of ConfigMap about');
});
