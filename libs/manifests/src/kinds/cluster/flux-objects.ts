import type { KubeManifest } from './kube-object.js';

type Fields = Readonly<Record<string, unknown>>;

/** Where the objects of Flux are unless the fragment says otherwise: `flux install` creates this namespace. */
export const FLUX_NAMESPACE = 'flux-system';

const SOURCES = 'source.toolkit.fluxcd.io/v1';
const KUSTOMIZE = 'kustomize.toolkit.fluxcd.io/v1';
const INTERVAL = '10m';
/** Flux would wait for a whole interval. */
const RETRY_INTERVAL = '30s';

/** Where the objects of a `FluxSync` are on a hub, whose Flux applies the source to the cluster of a kubeconfig. */
export interface FluxHubPlace {
  readonly metadata: KubeManifest['metadata'];
  /** The Secret with the kubeconfig, in the same namespace, and its key. */
  readonly secret: { readonly name: string; readonly key: string };
}

/** Whether a hub has the objects of a `FluxSync`, and not the cluster itself. */
export const isOnHub = (spec: Fields): boolean => spec['placement'] === 'hub';

/**
 * The objects of Flux that a rendered `FluxSync` stands for: a source, and a Kustomization that applies it. Without a
 * place on a hub, they are in the cluster.
 */
export function fluxObjectsOf(name: string, spec: Fields, hub?: FluxHubPlace): readonly KubeManifest[] {
  const source = sourceOf(spec);
  if (source === undefined) return [];
  const { namespace = FLUX_NAMESPACE, interval = INTERVAL } = spec as {
    readonly namespace?: string;
    readonly interval?: string;
  };
  const metadata = hub === undefined ? { name, namespace } : hub.metadata;
  const to = hub === undefined ? {} : { kubeConfig: { secretRef: hub.secret } };
  return [
    { apiVersion: SOURCES, kind: source.kind, metadata, spec: { interval, ...source.spec } },
    {
      apiVersion: KUSTOMIZE,
      kind: 'Kustomization',
      metadata,
      spec: { ...kustomizationSpec(spec, source.kind, metadata), ...to },
    },
  ];
}

/**
 * The revision that a rendered `FluxSync` pins, as Flux writes it, but without the name of a branch: such as
 * `sha1:<commit>`.
 */
export function fluxRevisionOf({ git, oci, bucket }: Fields): string {
  const { commit } = fieldsOf(git);
  if (typeof commit === 'string') return `${commit.length === SHA256_LENGTH ? 'sha256' : 'sha1'}:${commit}`;
  return textOf(fieldsOf(oci)['digest']) || textOf(fieldsOf(bucket)['revision']);
}

/** Whether a revision that Flux reports, such as `main@sha1:<commit>`, is the one that is pinned. */
export const isFluxRevision = (reported: unknown, pinned: string): boolean =>
  typeof reported === 'string' && reported.slice(reported.lastIndexOf('@') + 1) === pinned;

const SHA256_LENGTH = 64;

function sourceOf({ git, oci, bucket }: Fields): { readonly kind: string; readonly spec: Fields } | undefined {
  if (isFields(git)) {
    const { url, commit, branch, secret } = git;
    return { kind: 'GitRepository', spec: { url, ref: { ...given({ branch }), commit }, ...secretRef(secret) } };
  }
  if (isFields(oci)) {
    const { url, digest } = oci;
    return { kind: 'OCIRepository', spec: { url, ref: { digest }, ...connection(oci) } };
  }
  if (!isFields(bucket)) return undefined;
  const { endpoint, name, prefix, region } = bucket;
  return { kind: 'Bucket', spec: { endpoint, bucketName: name, ...given({ prefix, region }), ...connection(bucket) } };
}

function kustomizationSpec(spec: Fields, sourceKind: string, { name }: { readonly name: string }): Fields {
  const { path = './', prune = true, interval = INTERVAL, timeout, healthChecks, targetNamespace } = spec;
  const { serviceAccount, substitute } = spec;
  return {
    interval,
    retryInterval: RETRY_INTERVAL,
    sourceRef: { kind: sourceKind, name },
    path,
    prune,
    // With `wait`, Flux checks everything that it applied, and ignores the list.
    wait: healthChecks === undefined,
    ...given({ timeout, targetNamespace, serviceAccountName: serviceAccount }),
    ...(Array.isArray(healthChecks) && healthChecks.length > 0 ? { healthChecks } : {}),
    ...(substitute === undefined ? {} : { postBuild: { substitute } }),
  };
}

/** How Flux connects to a registry or an object store. */
const connection = ({ secret, certSecret, insecure }: Fields): Fields => ({
  ...secretRef(secret),
  ...given({ certSecretRef: certSecret === undefined ? undefined : { name: certSecret }, insecure }),
});

const secretRef = (secret: unknown): Fields => (secret === undefined ? {} : { secretRef: { name: secret } });

const given = (fields: Fields): Fields =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const fieldsOf = (value: unknown): Fields => (isFields(value) ? value : {});
const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');
