import { About, Fields } from '../../shape/description.js';
import { Checked, ExactlyOne, Nested, NestedList, Optional, Ruled, type Check } from '../../shape/checked.js';
import { Duration, Flag, patternForm, Text, Word, type TextForm } from '../../shape/forms.js';
import { isObject, placeOf, typeName } from '../../shape/reader.js';
import { SHORT_NAME } from '../../fragment-name.js';
import { NodeSpec, type Kind } from '../kind.js';
import { BindingList, BINDINGS_ABOUT, NamedBindings, type Binding } from './bindings.js';
import { fluxObjectsOf, isOnHub } from './flux-objects.js';
import { KUBE_API_VERSION, KUBE_KIND, KUBE_NAME, KUBE_NAMESPACE } from './kube-forms.js';
import { kubeObjectId } from './kube-object.js';

const MOST_HEALTH_CHECKS = 100;

/** Many servers take a token as the name of a user. */
const CREDENTIALS = /^(https?:\/\/[^/@]*@|ssh:\/\/[^/@]*:[^/@]*@)/;
const credentialsProblem = (url: string): string | undefined =>
  CREDENTIALS.test(url)
    ? 'contains credentials, which everybody could read who may read the config: put them into a Secret of the cluster, and name it in secret'
    : undefined;
const GIT_URL_FORM = /^(https?|ssh):\/\/[^\s/]+\/\S+$/;
const GIT_URL: TextForm = {
  code: 'bad-url',
  problem: (url) =>
    credentialsProblem(url) ??
    (GIT_URL_FORM.test(url)
      ? undefined
      : 'must be a URL that starts with https://, http:// or ssh://, such as "ssh://git@example.com/team/config"'),
  anyway: credentialsProblem,
  schema: { pattern: GIT_URL_FORM.source },
};
const COMMIT = patternForm(
  'bad-revision',
  /^([0-9a-f]{40}|[0-9a-f]{64})$/,
  'must be a whole commit id, of 40 or 64 lowercase hexadecimal digits: a branch, a tag or a short id could become another commit during the rollout',
);
const BRANCH = patternForm(
  'bad-branch',
  /^(?![-/.])(?!.*(\.\.|@\{|\/\/|\/$|\.$))[^\s~^:?*[\\]{1,255}$/,
  'must be the name of a branch, such as "main"',
);
const OCI_URL = patternForm(
  'bad-url',
  /^oci:\/\/[^\s/@]+(\/[a-z0-9._-]+)+$/,
  'must be a repository such as "oci://registry.example.com/team/config", without a tag or digest: the digest has its own field',
);
const DIGEST = patternForm(
  'bad-revision',
  /^sha256:[0-9a-f]{64}$/,
  'must be a digest: "sha256:" and 64 lowercase hexadecimal digits. A tag could become something else during the rollout',
);
const ENDPOINT = patternForm(
  'bad-endpoint',
  /^[^\s/:@]+(:[0-9]{1,5})?$/,
  'must be a host, or a host and a port, such as "s3.example.com"',
);
const BUCKET_NAME = patternForm(
  'bad-name',
  /^[a-z0-9][a-z0-9._-]{1,253}[a-z0-9]$/,
  'must be the name of a bucket, such as "releases"',
);
const PREFIX = patternForm(
  'bad-path',
  /^[^\s/][^\s]*$/,
  'must be the beginning of the names of objects, such as "releases/1.4/", without a slash in front',
);
const SYNC_PATH = patternForm(
  'bad-path',
  // Patterns of Kubernetes may have lookaheads only in front.
  /^(?!(.*\/)?\.\.(\/|$))(?!.*\/\.(\/|$))[^\s/\\]+(\/[^\s/\\]+)*\/?$/,
  'must be a folder in the source, such as "./clusters/prod", without ".." and without a slash in front',
);
const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]{0,252}$/;

/** Names of variables, and texts. */
function Variables(): PropertyDecorator {
  const check: Check = (value) => {
    if (!isObject(value))
      return [{ at: '', code: 'wrong-type', message: `must be an object of strings, but is ${typeName(value)}` }];
    return Object.entries(value).flatMap(([key, item]) => {
      const at = placeOf('_', key).slice(1);
      if (!VARIABLE.test(key))
        return [{ at, code: 'bad-name', message: 'must be the name of a variable: letters, digits and "_"' }];
      if (typeof item === 'string') return [];
      const quotes = typeof item === 'number' || typeof item === 'boolean' ? ': put it in quotes' : '';
      return [{ at, code: 'wrong-type', message: `must be a string, but is ${typeName(item)}${quotes}` }];
    });
  };
  return Checked('variables', check, {
    type: 'object',
    additionalProperties: { type: 'string' },
    propertyNames: { pattern: VARIABLE.source },
  });
}

const CERT_SECRET_ABOUT =
  'A Secret in the namespace of the Flux objects with `ca.crt`, for a certificate that no public authority has signed, or with `tls.crt` and `tls.key`, for a server that asks for one. It must exist already.';

@Fields({
  url: 'Where the repository is, such as `https://example.com/team/config` or `ssh://git@example.com/team/config`. Without credentials.',
  commit: 'The commit that is rolled out: its whole id.',
  branch: 'A branch that contains the commit. With it, Flux fetches only this branch.',
  secret: 'A Secret in the namespace of the Flux objects with what the repository asks for. It must exist already.',
})
export class FluxGit {
  @Text(GIT_URL) readonly url!: string;
  @Text(COMMIT) readonly commit!: string;
  @Optional() @Text(BRANCH) readonly branch?: string;
  @Optional() @Text(KUBE_NAME) readonly secret?: string;
}

@Fields({
  url: 'Where the artifact is, such as `oci://registry.example.com/team/config`. Without a tag.',
  digest: 'The artifact that is rolled out: `sha256:` and 64 hexadecimal digits.',
  secret: 'A Secret in the namespace of the Flux objects for the registry. It must exist already.',
  certSecret: CERT_SECRET_ABOUT,
  insecure: '`true`: without TLS. Flux still checks the digest.',
})
export class FluxOci {
  @Text(OCI_URL) readonly url!: string;
  @Text(DIGEST) readonly digest!: string;
  @Optional() @Text(KUBE_NAME) readonly secret?: string;
  @Optional() @Text(KUBE_NAME) readonly certSecret?: string;
  @Optional() @Flag() readonly insecure?: boolean;
}

@Fields({
  endpoint: 'The host of the object store, such as `s3.example.com`.',
  name: 'The name of the bucket.',
  revision:
    'The revision that is rolled out, as Flux computes it from the content: `sha256:` and 64 hexadecimal digits. Flux always applies what the bucket contains, so anything else in it fails the change.',
  prefix:
    'Only objects whose names begin with this, such as `releases/1.4/`. Give every revision a prefix of its own: otherwise it cannot be rolled back.',
  region: 'The region of the bucket.',
  secret: 'A Secret in the namespace of the Flux objects with the keys for the bucket. It must exist already.',
  certSecret: CERT_SECRET_ABOUT,
  insecure: '`true`: without TLS. Anybody on the way can then read the keys.',
})
export class FluxBucket {
  @Text(ENDPOINT) readonly endpoint!: string;
  @Text(BUCKET_NAME) readonly name!: string;
  @Text(DIGEST) readonly revision!: string;
  @Optional() @Text(PREFIX) readonly prefix?: string;
  @Optional() @Text() readonly region?: string;
  @Optional() @Text(KUBE_NAME) readonly secret?: string;
  @Optional() @Text(KUBE_NAME) readonly certSecret?: string;
  @Optional() @Flag() readonly insecure?: boolean;
}

@Fields({
  apiVersion: 'The API of the object, such as `apps/v1`.',
  kind: 'The kind of the object, such as `Deployment`.',
  name: 'The name of the object.',
  namespace: 'The namespace of the object, if it is in one.',
})
export class FluxHealthCheck {
  @Text(KUBE_API_VERSION) readonly apiVersion!: string;
  @Text(KUBE_KIND) readonly kind!: string;
  @Text(KUBE_NAME) readonly name!: string;
  @Optional() @Text(KUBE_NAMESPACE) readonly namespace?: string;
}

/** Where the objects of Flux are. */
const PLACEMENTS = ['cluster', 'hub'] as const;
const NO_NAMESPACE =
  'must be left out with placement: hub, because there the objects are in the namespace of the Cluster';

@About('What Flux applies in a Kubernetes cluster: exactly one revision of a git, OCI or bucket source.')
@ExactlyOne('git', 'oci', 'bucket')
@Ruled({
  problems: (spec) =>
    isOnHub(spec) && spec['namespace'] !== undefined
      ? [{ at: 'namespace', code: 'forbidden', message: NO_NAMESPACE }]
      : [],
  schema: { not: { required: ['namespace', 'placement'], properties: { placement: { enum: ['hub'] } } } },
  expressions: [
    {
      rule: "!has(self.namespace) || !has(self.placement) || self.placement != 'hub'",
      message: NO_NAMESPACE,
      fieldPath: '.namespace',
    },
  ],
})
@Fields({
  placement:
    'Which Flux applies it: `cluster`, the one that runs in the cluster, or `hub`, the one on the hub where the applier has found the cluster (`sluice applier --targets clusters --hub`). On a hub, the source and the Kustomization are in the namespace of the Cluster, and are named `CLUSTER.NAME`. Default: `cluster`.',
  git: 'A commit of a git repository.',
  oci: 'An artifact of an OCI registry, with its digest.',
  bucket: 'The content of a bucket of an object store.',
  namespace:
    'The namespace of the source and of the Kustomization, which have the name of this fragment. It must exist. Not with `placement: hub`. Default: `flux-system`.',
  path: 'The folder in the source that is applied, such as `./clusters/prod`. Default: the whole source.',
  prune:
    '`false`: objects that are no longer in the source, or that this fragment has applied when it is deleted, stay. Default: true.',
  interval: 'How often Flux corrects what others have changed. At least `1m`. Default: `10m`.',
  timeout:
    'How long Flux may take to apply a revision and check its health, such as `3m`. At least `30s`. Less than half of the `applyTimeout` of the pool. Default: the interval.',
  healthChecks: 'The objects whose health Flux checks; `[]`: none. Default: all that it has applied.',
  targetNamespace: 'The namespace of all objects in the source.',
  serviceAccount: 'The service account, in the namespace of the Kustomization, whose rights Flux uses.',
  substitute:
    'Values for `${NAME}` in the manifests of the source. They may contain templates such as `{{ node.labels.region }}` and `{{ bindings.NAME }}`.',
  bindings: BINDINGS_ABOUT,
})
@NamedBindings()
export class FluxSyncSpec extends NodeSpec {
  @Optional() @Nested(() => FluxGit) readonly git?: FluxGit;
  @Optional() @Nested(() => FluxOci) readonly oci?: FluxOci;
  @Optional() @Nested(() => FluxBucket) readonly bucket?: FluxBucket;
  @Optional() @Word(PLACEMENTS) readonly placement?: string;
  @Optional() @Text(KUBE_NAMESPACE) readonly namespace?: string;
  @Optional() @Text(SYNC_PATH) readonly path?: string;
  @Optional() @Flag() readonly prune?: boolean;
  @Optional()
  @Duration({ least: '1m', because: 'each run reads every object from the API server' })
  readonly interval?: string;
  @Optional()
  @Duration({ least: '30s', because: 'Flux waits for 30 seconds in any case' })
  readonly timeout?: string;
  @Optional() @NestedList(() => FluxHealthCheck, MOST_HEALTH_CHECKS) readonly healthChecks?: readonly FluxHealthCheck[];
  @Optional() @Text(KUBE_NAMESPACE) readonly targetNamespace?: string;
  @Optional() @Text(KUBE_NAME) readonly serviceAccount?: string;
  @Optional() @Variables() readonly substitute?: Readonly<Record<string, string>>;
  @Optional() @BindingList() readonly bindings?: readonly Binding[];
}

export const fluxSync: Kind = {
  name: 'FluxSync',
  spec: FluxSyncSpec,
  role: 'state',
  literal: () => ['bindings'],
  nameForm: SHORT_NAME,
  // The same names as objects of a `KubeObjects` have. On a hub there are none of these.
  claims: (spec, name) => (isOnHub(spec) ? [] : fluxObjectsOf(name, spec).map(kubeObjectId)),
};
