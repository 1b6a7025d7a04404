import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { ApiGate, type KubeApi, type KubeCluster, type KubeObject } from '#libs/testing';
import { linesOf, ROOT, type RenderedChart, type Rule } from '../deploy/chart.js';

const exec = promisify(execFile);
const NAMESPACE = 'sluice';

/** The API paths for objects of a kind. */
const PLURALS: Readonly<Record<string, string>> = { NetworkPolicy: 'networkpolicies' };
const CLUSTER_WIDE = [
  'Namespace',
  'ClusterRole',
  'ClusterRoleBinding',
  'CustomResourceDefinition',
  'ValidatingWebhookConfiguration',
];

export function pathOf({ apiVersion, kind, metadata }: RenderedChart): string {
  const root = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  const plural = PLURALS[kind] ?? `${kind.toLowerCase()}s`;
  return `${root}${CLUSTER_WIDE.includes(kind) ? '' : `/namespaces/${metadata.namespace ?? 'no namespace'}`}/${plural}/${metadata.name}`;
}

/**
 * Like `kubectl apply --server-side --dry-run=server --validate=strict`. Returns the error of the server, or undefined
 * if there is none.
 */
export async function complaintAbout(api: KubeApi, object: RenderedChart): Promise<string | undefined> {
  const { code, body } = await api.call(
    'PATCH',
    `${pathOf(object)}?fieldManager=spec&fieldValidation=Strict&dryRun=All&force=true`,
    object,
    'application/apply-patch+yaml',
  );
  return code < 300
    ? undefined
    : `${object.kind} ${object.metadata.name}: ${JSON.stringify((body as { readonly message?: string }).message ?? body)}`;
}

/** The release `sluice` in the namespace `sluice`, on a real API server. */
export class ChartInstallation {
  constructor(
    private readonly helm: string,
    private readonly cluster: KubeCluster,
  ) {}

  /** Runs install, upgrade or uninstall, as people do. Waits for nothing. */
  async run(...args: readonly string[]): Promise<string> {
    const env = { ...process.env, KUBECONFIG: this.cluster.kubeconfig };
    return (await exec(this.helm, [...args, '--namespace', NAMESPACE], { cwd: ROOT, env, maxBuffer: 1 << 26 })).stdout;
  }

  async apply(object: RenderedChart): Promise<void> {
    const { code, body } = await this.cluster.api.call(
      'PATCH',
      `${pathOf(object)}?fieldManager=helm`,
      object,
      'application/apply-patch+yaml',
    );
    if (code >= 300) throw new Error(JSON.stringify(body));
  }

  /** A gate to the API server with the rights of a service account. */
  async gateOf(account: string): Promise<ApiGate> {
    return ApiGate.before({ ...this.cluster.access, token: await this.tokenOf(account) });
  }

  /** A token as the kubelet gets it for a pod. */
  async tokenOf(account: string): Promise<string> {
    const made = await this.cluster.api.create(`/api/v1/namespaces/${NAMESPACE}/serviceaccounts/${account}/token`, {
      spec: {},
    });
    return (made.status as { readonly token: string }).token;
  }

  /** Like `kubectl auth can-i` for a service account. */
  async canI(account: string, verb: string, resource: string, namespace = '', object = ''): Promise<boolean> {
    const [whole = '', subresource = ''] = resource.split('/');
    const [plural = '', ...group] = whole.split('.');
    const made = await this.cluster.api.create('/apis/authorization.k8s.io/v1/subjectaccessreviews', {
      spec: {
        user: userOf(account),
        groups: ['system:serviceaccounts', `system:serviceaccounts:${NAMESPACE}`, 'system:authenticated'],
        resourceAttributes: {
          verb,
          group: group.join('.'),
          resource: plural,
          subresource,
          namespace,
          name: object,
        },
      },
    });
    return (made.status as { readonly allowed: boolean }).allowed;
  }

  /**
   * Like `kubectl auth can-i --list` by the service account itself: every right in a namespace, one per line, without
   * those that everybody has.
   */
  async rightsOf(
    account: string,
    everybody: readonly string[] = [],
    namespace = NAMESPACE,
  ): Promise<readonly string[]> {
    const gate = await this.gateOf(account);
    try {
      const answer = await fetch(`${gate.url}/apis/authorization.k8s.io/v1/selfsubjectrulesreviews`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({
          apiVersion: 'authorization.k8s.io/v1',
          kind: 'SelfSubjectRulesReview',
          spec: { namespace },
        }),
      });
      const { status } = (await answer.json()) as {
        readonly status: {
          readonly incomplete: boolean;
          readonly resourceRules: readonly Rule[];
          readonly nonResourceRules: readonly {
            readonly verbs: readonly string[];
            readonly nonResourceURLs: readonly string[];
          }[];
        };
      };
      if (status.incomplete) throw new Error(`the rights of ${account} are not known as a whole`);
      const urls = status.nonResourceRules.flatMap(({ verbs, nonResourceURLs }) =>
        verbs.flatMap((verb) => nonResourceURLs.map((url) => `${verb} ${url}`)),
      );
      return [...new Set([...linesOf(status.resourceRules), ...urls])]
        .filter((line) => !everybody.includes(line))
        .sort();
    } finally {
      await gate.close();
    }
  }
}

const userOf = (account: string): string => `system:serviceaccount:${NAMESPACE}:${account}`;

/** The rights that the lines of requests used, in the same format. Computed independently of the product's code. */
export function rightsAsked(lines: readonly string[]): readonly string[] {
  // Discovery is not a resource: everybody may read it.
  const seen = lines
    .filter((line) => !line.startsWith('GET /openapi/'))
    .map((line) => {
      const [, method = '', group = '', resource = '', name, part] =
        /^(\w+) \/(?:api\/v1|apis\/([^/]+)\/[^/]+)(?:\/namespaces\/[^/?]+(?=\/))?\/([^/?]+)(?:\/([^/?]+))?(?:\/([^/?]+))?/.exec(
          line,
        ) ?? [];
      const reading = /[?&]watch=/.test(line) ? 'watch' : name === undefined ? 'list' : 'get';
      const verb =
        ({ GET: reading, POST: 'create', PATCH: 'patch', DELETE: 'delete' } as Readonly<Record<string, string>>)[
          method
        ] ?? method;
      return `${verb} ${resource}${group === '' ? '' : `.${group}`}${part === undefined ? '' : `/${part}`}`;
    });
  return [...new Set(seen)].sort();
}

export const labelled = (objects: readonly KubeObject[], component: string): readonly KubeObject[] =>
  objects.filter(({ metadata }) => metadata.labels?.['app.kubernetes.io/component'] === component);
