import { checkManifest, checkRendered, claimsOf, fluxObjectsOf, fluxRevisionOf, isFluxRevision } from '../../index.js';
import { manifestOf } from '../../manifest.fixture.js';

const COMMIT = '0123456789abcdef0123456789abcdef01234567';
const DIGEST = `sha256:${'ab'.repeat(32)}`;
const git = (more: object = {}): object => ({
  git: { url: 'https://example.com/team/config', commit: COMMIT, ...more },
});
const oci = (more: object = {}): object => ({
  oci: { url: 'oci://r.example.com/team/config', digest: DIGEST, ...more },
});
const bucket = (more: object = {}): object => ({
  bucket: { endpoint: 's3.example.com', name: 'releases', revision: DIGEST, ...more },
});
const reasonsOf = (spec: object, metadata: object = { name: 'x' }): unknown => {
  const checked = checkManifest(manifestOf('FluxSync', spec, metadata), 'place');
  return checked.ok ? [] : checked.reasons.map(({ field, code }) => `${field} ${code}`);
};
const messageOf = (spec: object): string | undefined => {
  const checked = checkManifest(manifestOf('FluxSync', spec), 'place');
  return checked.ok ? undefined : checked.reasons[0]?.message;
};

test.each<readonly [string, object]>([
  ['a commit', git()],
  [
    'a commit of a branch, over ssh, with a secret',
    git({ url: 'ssh://git@a.b:2222/c.git', branch: 'feature/x', secret: 'a' }),
  ],
  ['a commit in SHA-256', git({ commit: 'ab'.repeat(32) })],
  ['templates', { ...git({ commit: '{{ node.labels.commit }}' }), path: './clusters/{{ node.name }}' }],
  ['an artifact', oci({ url: 'oci://localhost:5000/a', certSecret: 'c', insecure: true })],
  [
    'the content of a bucket',
    bucket({ endpoint: '10.0.0.1:9000', prefix: 'releases/1.4/', region: 'eu', secret: 's', certSecret: 'c' }),
  ],
  ['the whole source', { ...git(), path: './' }],
  ['a folder without a dot', { ...git(), path: 'clusters/..prod/' }],
  [
    'everything',
    {
      ...git(),
      namespace: 'apps',
      prune: false,
      interval: '1h',
      timeout: '3m',
      healthChecks: [{ apiVersion: 'apps/v1', kind: 'Deployment', name: 'a', namespace: 'b' }],
      targetNamespace: 'b',
      serviceAccount: 'c',
      substitute: { REGION: '{{ node.labels.region }}', _a1: '' },
    },
  ],
  ['no health checks', { ...git(), healthChecks: [] }],
  ['the Flux of a hub', { ...git(), placement: 'hub' }],
  ['the Flux of the cluster, by name', { ...git(), placement: 'cluster', namespace: 'apps' }],
])('accepts %s', (_name, spec) => {
  expect(reasonsOf(spec)).toEqual([]);
});

test.each<readonly [string, object, string]>([
  ['no source', {}, 'spec exactly-one'],
  ['two sources', { ...git(), ...oci() }, 'spec exactly-one'],
  ['a branch as a revision', git({ commit: 'main' }), 'spec.git.commit bad-revision'],
  ['a short commit', git({ commit: COMMIT.slice(0, 12) }), 'spec.git.commit bad-revision'],
  ['a revision as Flux writes it', git({ commit: `main@sha1:${COMMIT}` }), 'spec.git.commit bad-revision'],
  ['no commit', git({ commit: undefined }), 'spec.git.commit required'],
  ['a URL as scp writes it', git({ url: 'git@example.com:team/config' }), 'spec.git.url bad-url'],
  ['a path as a URL', git({ url: 'file:///srv/git' }), 'spec.git.url bad-url'],
  ['a password in a URL', git({ url: 'https://me:secret@example.com/a' }), 'spec.git.url bad-url'],
  [
    'a token in a URL with a template',
    git({ url: 'https://t0ken@example.com/{{ node.name }}' }),
    'spec.git.url bad-url',
  ],
  ['a branch that git refuses', git({ branch: 'a..b' }), 'spec.git.branch bad-branch'],
  ['an artifact with a tag', oci({ url: 'oci://r.example.com/a:v1' }), 'spec.oci.url bad-url'],
  ['an artifact with a digest in the URL', oci({ url: `oci://r.example.com/a@${DIGEST}` }), 'spec.oci.url bad-url'],
  ['a registry over https', oci({ url: 'https://r.example.com/a' }), 'spec.oci.url bad-url'],
  ['a tag as a digest', oci({ digest: 'v1' }), 'spec.oci.digest bad-revision'],
  ['a URL as an endpoint', bucket({ endpoint: 'https://s3.example.com' }), 'spec.bucket.endpoint bad-endpoint'],
  ['a bucket without a revision', bucket({ revision: undefined }), 'spec.bucket.revision required'],
  ['a prefix with a slash in front', bucket({ prefix: '/a' }), 'spec.bucket.prefix bad-path'],
  ['an absolute path', { ...git(), path: '/clusters' }, 'spec.path bad-path'],
  ['a path out of the source', { ...git(), path: './a/../../b' }, 'spec.path bad-path'],
  ['a path with a dot in it', { ...git(), path: './a/./b' }, 'spec.path bad-path'],
  ['an empty path', { ...git(), path: '' }, 'spec.path bad-path'],
  ['another placement', { ...git(), placement: 'here' }, 'spec.placement unknown-word'],
  ['a namespace on a hub', { ...git(), placement: 'hub', namespace: 'apps' }, 'spec.namespace forbidden'],
  ['a timeout that Flux ignores', { ...git(), timeout: '10s' }, 'spec.timeout bad-duration'],
  ['an interval that loads the cluster', { ...git(), interval: '5s' }, 'spec.interval bad-duration'],
  [
    'a health check without a name',
    { ...git(), healthChecks: [{ apiVersion: 'v1', kind: 'Pod' }] },
    'spec.healthChecks[0].name required',
  ],
  ['a bad name of a variable', { ...git(), substitute: { 'a-b': '1' } }, 'spec.substitute.a-b bad-name'],
  ['a number as a value', { ...git(), substitute: { A: 1 } }, 'spec.substitute.A wrong-type'],
])('refuses %s', (_name, spec, reason) => {
  expect(reasonsOf(spec)).toEqual([reason]);
});

test('a path of many parts is checked at once', () => {
  expect(reasonsOf({ ...git(), path: `${'a/'.repeat(50_000)} ` })).toEqual(['spec.path bad-path']);
});

test('a name that Flux could not use as a label is refused', () => {
  expect(reasonsOf(git(), { name: 'a.b' })).toEqual(['metadata.name bad-name']);
});

test('a password is refused with the way to give one, and is not repeated', () => {
  const message = messageOf(git({ url: 'https://me:hunter2@example.com/a' }));
  expect(message).toMatch(/put them into a Secret of the cluster, and name it in secret/);
  expect(message).not.toMatch(/hunter2/);
});

test('what a template makes of a revision or a path is checked when it is rendered', () => {
  const spec = { ...git({ commit: 'main' }), path: './../b' };
  expect(checkRendered({ kind: 'FluxSync', name: 'x', spec })).toMatchObject([
    { field: 'spec.git.commit', code: 'bad-revision' },
    { field: 'spec.path', code: 'bad-path' },
  ]);
});

test('it stands for a source that is pinned, and a Kustomization that waits for all that it applies', () => {
  expect(fluxObjectsOf('apps', { ...git({ branch: 'main', secret: 's' }), path: './a' })).toEqual([
    {
      apiVersion: 'source.toolkit.fluxcd.io/v1',
      kind: 'GitRepository',
      metadata: { name: 'apps', namespace: 'flux-system' },
      spec: {
        interval: '10m',
        url: 'https://example.com/team/config',
        ref: { branch: 'main', commit: COMMIT },
        secretRef: { name: 's' },
      },
    },
    {
      apiVersion: 'kustomize.toolkit.fluxcd.io/v1',
      kind: 'Kustomization',
      metadata: { name: 'apps', namespace: 'flux-system' },
      spec: {
        interval: '10m',
        retryInterval: '30s',
        sourceRef: { kind: 'GitRepository', name: 'apps' },
        path: './a',
        prune: true,
        wait: true,
      },
    },
  ]);
});

test('each kind of source has its own object', () => {
  const specs = [
    oci({ secret: 's', insecure: true }),
    bucket({ prefix: 'a/', region: 'eu', secret: 's', certSecret: 'own-ca' }),
  ];
  expect(specs.map((spec) => fluxObjectsOf('x', spec as never)[0])).toMatchObject([
    {
      kind: 'OCIRepository',
      spec: {
        url: 'oci://r.example.com/team/config',
        ref: { digest: DIGEST },
        secretRef: { name: 's' },
        insecure: true,
      },
    },
    {
      kind: 'Bucket',
      spec: {
        endpoint: 's3.example.com',
        bucketName: 'releases',
        prefix: 'a/',
        region: 'eu',
        secretRef: { name: 's' },
        certSecretRef: { name: 'own-ca' },
      },
    },
  ]);
});

test('all options reach the Kustomization', () => {
  const healthChecks = [{ apiVersion: 'apps/v1', kind: 'Deployment', name: 'a', namespace: 'b' }];
  const more = { prune: false, interval: '1h', timeout: '3m', targetNamespace: 'b', serviceAccount: 'c' };
  const specs = [{ ...more, healthChecks, substitute: { A: 'b' }, namespace: 'apps' }, { healthChecks: [] }];
  expect(specs.map((spec) => fluxObjectsOf('x', { ...git(), ...spec } as never)[1])).toMatchObject([
    {
      metadata: { name: 'x', namespace: 'apps' },
      spec: {
        interval: '1h',
        timeout: '3m',
        prune: false,
        wait: false,
        healthChecks,
        targetNamespace: 'b',
        serviceAccountName: 'c',
        postBuild: { substitute: { A: 'b' } },
      },
    },
    { spec: { wait: false } },
  ]);
});

test('it claims its objects, so that no other fragment of the cluster can have them', () => {
  expect(claimsOf({ kind: 'FluxSync', name: 'x', spec: git() as never })).toEqual([
    'GitRepository.source.toolkit.fluxcd.io/flux-system/x',
    'Kustomization.kustomize.toolkit.fluxcd.io/flux-system/x',
  ]);
  expect(claimsOf({ kind: 'FluxSync', name: 'x', spec: { git: 'x', oci: null } })).toEqual([]);
});

test('on a hub it is where the Cluster is, and refers to its kubeconfig', () => {
  const spec = { ...git(), placement: 'hub' } as never;
  const hub = { metadata: { name: 'a.x', namespace: 'fleet' }, secret: { name: 'a-kubeconfig', key: 'value' } };
  expect(fluxObjectsOf('x', spec, hub)).toMatchObject([
    { kind: 'GitRepository', metadata: hub.metadata },
    {
      kind: 'Kustomization',
      metadata: hub.metadata,
      spec: { sourceRef: { name: 'a.x' }, kubeConfig: { secretRef: hub.secret } },
    },
  ]);
  expect(claimsOf({ kind: 'FluxSync', name: 'x', spec })).toEqual([]);
});

test.each<readonly [string, object, string]>([
  ['a commit', git(), `sha1:${COMMIT}`],
  ['a commit in SHA-256', git({ commit: 'ab'.repeat(32) }), `sha256:${'ab'.repeat(32)}`],
  ['an artifact', oci(), DIGEST],
  ['a bucket', bucket(), DIGEST],
])('the revision of %s is as Flux writes it', (_name, spec, revision) => {
  expect(fluxRevisionOf(spec as never)).toBe(revision);
});

test.each<readonly [unknown, boolean]>([
  [`sha1:${COMMIT}`, true],
  [`main@sha1:${COMMIT}`, true],
  [`a@b@sha1:${COMMIT}`, true],
  [`main@sha1:${COMMIT.replace('0', '1')}`, false],
  [`main@sha256:${COMMIT}`, false],
  [COMMIT, false],
  ['', false],
  [undefined, false],
])('a reported revision is compared without the name of its branch: %s', (reported, same) => {
  expect(isFluxRevision(reported, `sha1:${COMMIT}`)).toBe(same);
});
