import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseAllDocuments } from 'yaml';

export const ROOT = resolve(__dirname, '../..');
export const CHART = 'deploy/helm/sluice';

/** A Kubernetes object as the chart renders it. */
export interface RenderedChart {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly spec?: Readonly<Record<string, unknown>>;
  readonly data?: Readonly<Record<string, string>>;
  readonly rules?: readonly Rule[];
}
export interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
}

export interface PodSpec {
  readonly automountServiceAccountToken: boolean;
  readonly serviceAccountName: string;
  readonly hostNetwork?: boolean;
  readonly hostPID?: boolean;
  readonly shareProcessNamespace?: boolean;
  readonly securityContext: Readonly<Record<string, unknown>>;
  readonly volumes?: readonly {
    readonly name: string;
    readonly emptyDir?: object;
    readonly hostPath?: { readonly path: string };
  }[];
  readonly containers: readonly Container[];
}
export interface Container {
  readonly image: string;
  readonly args?: readonly string[];
  readonly env: readonly {
    readonly name: string;
    readonly value?: string;
    readonly valueFrom?: { readonly fieldRef?: { readonly fieldPath: string } };
  }[];
  readonly volumeMounts?: readonly { readonly name: string; readonly mountPath: string }[];
  readonly securityContext: {
    readonly allowPrivilegeEscalation: boolean;
    readonly readOnlyRootFilesystem: boolean;
    readonly capabilities: { readonly drop: readonly string[]; readonly add?: readonly string[] };
  };
  readonly livenessProbe?: object;
  readonly readinessProbe?: object;
  readonly resources: object;
}

/** Examples of values that users may set. */
export const VALUES: Readonly<Record<string, object>> = {
  'default values': {},
  'three NATS servers with a token': {
    nats: { embedded: { replicas: 3, storage: { className: 'fast' } }, tokenSecret: { name: 'bus' } },
  },
  'your own NATS, with credentials': {
    nats: {
      embedded: { enabled: false },
      url: 'nats://a:4222,nats://b:4222',
      streamReplicas: 3,
      credentialsSecret: { name: 'services' },
    },
    applier: { credentialsSecret: { name: 'nodes' } },
  },
  'your own NATS, with TLS and users': {
    nats: {
      embedded: { enabled: false },
      url: 'tls://a:4222',
      userSecret: { name: 'services' },
      certificateSecret: { name: 'services-tls' },
      tls: { caSecret: { name: 'ca' }, handshakeFirst: true },
    },
    applier: { nkeySecret: { name: 'nodes' }, certificateSecret: { name: 'nodes-tls' } },
  },
  'every backend': {
    applier: {
      backends: { units: true, sysctl: true, sshKeys: true, kernelArguments: true },
      reboot: true,
      paths: ['/efi'],
      args: ['--label', 'role=edge'],
    },
  },
  'a webhook with a certificate from Helm': { webhook: { enabled: true, failurePolicy: 'Fail' } },
  'a webhook with a secret': {
    webhook: {
      enabled: true,
      certificate: {
        from: 'secret',
        secretName: 'tls',
        ca: '-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n',
      },
    },
  },
  'without Kubernetes nodes': {
    drain: { strategy: 'external' },
    inventory: { source: 'announced' },
    gateway: { enabled: false },
    applier: { enabled: false },
  },
  'objects to pause': {
    drain: {
      pausable: [
        { group: 'machineconfiguration.openshift.io', resource: 'machineconfigpools', names: ['worker', 'infra'] },
        { group: 'cluster.x-k8s.io', resource: 'machinedeployments', names: ['edge'], namespace: 'default' },
      ],
    },
  },
  'your own images, replicas and scheduling': {
    imagePullSecrets: [{ name: 'pull' }],
    image: { repository: 'registry.example:5000/sluice', tag: 'v1' },
    replicas: 3,
    priorityClassName: 'high',
    nodeSelector: { role: 'infra' },
    tolerations: [{ operator: 'Exists' }],
    podAnnotations: { a: 'b' },
    services: { scheduler: { replicas: 2, env: { SLUICE_SNAPSHOT_FACTS: 1000 } } },
    drain: { mayForce: false },
    gateway: { ownerReferencesEnforced: true },
    networkPolicy: { enabled: false },
    podDisruptionBudget: { enabled: false },
    crds: { install: false },
  },
};

/** Runs helm with values in a file. Returns its stdout. Throws its stderr. */
export function helmWith(
  helm: string,
  args: readonly string[],
  values: object,
  env: NodeJS.ProcessEnv = process.env,
): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-values-'));
  try {
    writeFileSync(join(folder, 'values.json'), JSON.stringify(values));
    return execFileSync(helm, [...args, '--values', join(folder, 'values.json')], {
      cwd: ROOT,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
      env,
      maxBuffer: 1 << 26,
    });
  } catch (error) {
    throw new Error(String((error as { readonly stderr?: string }).stderr ?? error), { cause: error });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const renderedOf = (text: string): readonly RenderedChart[] =>
  parseAllDocuments(text)
    .map((one) => one.toJS() as RenderedChart | null)
    .filter((one): one is RenderedChart => one !== null);

const seen = new Map<string, readonly RenderedChart[]>();

/** The objects of the chart with these values. Each set of values is rendered once. */
export function render(helm: string, values: object): readonly RenderedChart[] {
  const key = JSON.stringify(values);
  const found =
    seen.get(key) ?? renderedOf(helmWith(helm, ['template', 'sluice', CHART, '--namespace', 'sluice'], values));
  seen.set(key, found);
  return found;
}

/** The pod of a Deployment, StatefulSet or DaemonSet. */
export const podOf = ({ spec }: RenderedChart): PodSpec =>
  (spec as unknown as { readonly template: { readonly spec: PodSpec } }).template.spec;

/** Each right in some rules, as `verb resource.group/part`. */
export const linesOf = (rules: readonly Rule[]): readonly string[] =>
  rules.flatMap(({ verbs, apiGroups, resources }) =>
    verbs.flatMap((verb) =>
      apiGroups.flatMap((group) =>
        resources.map((resource) => {
          const [whole = '', part] = resource.split('/');
          return `${verb} ${whole}${group === '' ? '' : `.${group}`}${part === undefined ? '' : `/${part}`}`;
        }),
      ),
    ),
  );
