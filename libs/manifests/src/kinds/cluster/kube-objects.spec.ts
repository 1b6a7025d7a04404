import { checkManifest, checkRendered, claimsOf, kubeObjectId, kubeRankOf } from '../../index.js';
import { manifestOf } from '../../manifest.fixture.js';

const configMap = (metadata: object = {}, more: object = {}): object => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'a', namespace: 'default', ...metadata },
  ...more,
});
const object = (apiVersion: string, kind: string, metadata: object = { name: 'a' }): object => ({
  apiVersion,
  kind,
  metadata,
});
const reasonsOf = (spec: object): unknown => {
  const checked = checkManifest(manifestOf('KubeObjects', spec), 'place');
  return checked.ok ? [] : checked.reasons.map(({ field, code, message }) => `${field} ${code}: ${message}`);
};

test.each<readonly [string, object]>([
  ['an object', { objects: [configMap({}, { data: { a: 'b' } })] }],
  [
    'templates in names and values',
    { objects: [configMap({ name: '{{ node.name }}' }, { data: { a: '{{ node.labels.b }}' } })] },
  ],
  ['braces that are not a template', { template: false, objects: [configMap({}, { data: { a: '{{ .Values.x }}' } })] }],
  [
    'a name that is no DNS name',
    { objects: [object('rbac.authorization.k8s.io/v1', 'ClusterRole', { name: 'system:a' })] },
  ],
  ['what generators write', { objects: [configMap({ creationTimestamp: null })] }],
  [
    'a kind that only the cluster knows, with and without a namespace',
    {
      objects: [
        object('example.dev/v1beta1', 'Thing'),
        object('example.dev/v1', 'Thing', { name: 'a', namespace: 'b' }),
      ],
    },
  ],
])('accepts %s', (_name, spec) => {
  expect(reasonsOf(spec)).toEqual([]);
});

test.each<readonly [string, unknown, string]>([
  ['no object', [], 'spec.objects empty: must not be empty'],
  ['a text', ['x'], 'spec.objects[0] wrong-type: must be an object, but is a string'],
  ['no kind', [{ apiVersion: 'v1', metadata: { name: 'a' } }], 'spec.objects[0].kind required: is required'],
  [
    'a template as a kind',
    [object('v1', '{{ node.name }}')],
    'spec.objects[0].kind bad-kind: must be one such as "Deployment"',
  ],
  [
    'a bad apiVersion',
    [object('apps', 'Deployment')],
    'spec.objects[0].apiVersion bad-api-version: must be one such as "apps/v1"',
  ],
  ['no name', [configMap({ name: undefined })], 'spec.objects[0].metadata.name required: is required'],
  [
    'a generated name',
    [configMap({ name: undefined, generateName: 'a-' })],
    'spec.objects[0].metadata.generateName forbidden: the object would be created again and again: give it a name',
  ],
  [
    'a name that is a path',
    [configMap({ name: '../a' })],
    'spec.objects[0].metadata.name bad-name: must be the name of an object, such as "web"',
  ],
  ['a status', [configMap({}, { status: {} })], 'spec.objects[0].status forbidden: the cluster sets it: leave it out'],
  [
    'an object as it was read',
    [configMap({ resourceVersion: '7' })],
    'spec.objects[0].metadata.resourceVersion forbidden: the cluster sets it: leave it out',
  ],
  [
    'no namespace',
    [configMap({ namespace: undefined })],
    'spec.objects[0].metadata.namespace required: is required: a ConfigMap is in a namespace',
  ],
  [
    'a namespace of what has none',
    [object('v1', 'Namespace', { name: 'a', namespace: 'b' })],
    'spec.objects[0].metadata.namespace forbidden: a Namespace is in no namespace: leave it out',
  ],
  [
    'a node',
    [object('v1', 'Node')],
    'spec.objects[0].kind forbidden: a Node cannot be rolled out: the cluster itself writes such objects',
  ],
  [
    'a review',
    [object('authorization.k8s.io/v1', 'SubjectAccessReview')],
    'spec.objects[0].kind forbidden: a SubjectAccessReview.authorization.k8s.io cannot be rolled out: it is a question, not a state',
  ],
  [
    'a list as kubectl prints it',
    [{ apiVersion: 'v1', items: [configMap({})], kind: 'List', metadata: { resourceVersion: '' } }],
    'spec.objects[0].kind forbidden: a list cannot be rolled out: write its items as objects',
  ],
  [
    'a list without metadata',
    [{ apiVersion: 'v1', kind: 'ConfigMapList', items: [] }],
    'spec.objects[0].kind forbidden: a list cannot be rolled out: write its items as objects',
  ],
  [
    'a list',
    [{ ...object('v1', 'List'), items: [] }],
    'spec.objects[0].kind forbidden: a list cannot be rolled out: write its items as objects',
  ],
  [
    'the list of the applier itself',
    [configMap({ name: 'sluice-applied' })],
    'spec.objects[0].metadata.name reserved-name: Sluice keeps the list of its objects there',
  ],
  [
    'an object that is too large',
    [configMap({}, { data: { a: 'x'.repeat(1_000_000) } })],
    'spec.objects[0] too-large: has 1000100 bytes; the limit is 1000000',
  ],
])('refuses %s', (_name, objects, reason) => {
  expect(reasonsOf({ objects })).toEqual([reason]);
});

test('an object has the same identity in each version of its API', () => {
  const metadata = { name: 'web', namespace: 'prod' };
  const ids = ['apps/v1', 'apps/v1beta1'].map((apiVersion) =>
    kubeObjectId({ apiVersion, kind: 'Deployment', metadata }),
  );
  expect(ids).toEqual(['Deployment.apps/prod/web', 'Deployment.apps/prod/web']);
  expect(kubeObjectId({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'prod' } })).toBe('Namespace/prod');
});

test('a fragment claims its objects, so that no other one on the cluster can have them', () => {
  const spec = { objects: [configMap(), object('v1', 'Namespace', { name: 'b' })] };
  expect(claimsOf({ kind: 'KubeObjects', name: 'x', spec })).toEqual(['ConfigMap/default/a', 'Namespace/b']);
  expect(claimsOf({ kind: 'KubeObjects', name: 'x', spec: { objects: ['x', {}, null] } })).toEqual([]);
});

test('names that a template makes invalid are refused when they are rendered', () => {
  const spec = { objects: [configMap({ name: 'a/b' })] };
  expect(checkRendered({ kind: 'KubeObjects', name: 'x', spec })).toMatchObject([
    { field: 'spec.objects[0].metadata.name', code: 'bad-name' },
  ]);
});

test('namespaces come first, then definitions, then the rest, and last what can refuse other objects', () => {
  const ranks = [
    ['v1', 'Namespace'],
    ['apiextensions.k8s.io/v1', 'CustomResourceDefinition'],
    ['apps/v1', 'Deployment'],
    ['admissionregistration.k8s.io/v1', 'ValidatingWebhookConfiguration'],
  ].map(([apiVersion = '', kind = '']) => kubeRankOf({ apiVersion, kind }));
  expect(ranks).toEqual(['namespaces', 'definitions', 'objects', 'admission']);
});

test('the kind of an object that a probe looks at is no template, because it chooses the API', () => {
  const kube = { apiVersion: 'v1', kind: '{{ node.name }}', name: '{{ node.name }}' };
  expect(checkManifest(manifestOf('Probe', { kube }), 'place')).toMatchObject({
    ok: false,
    reasons: [{ field: 'spec.kube.kind', code: 'bad-kind' }],
  });
});
