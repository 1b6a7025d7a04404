import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { connectFleet, type FleetClient } from '#libs/client';
import { SERVICES, type NodeView } from '#libs/contracts';
import {
  startNatsServer,
  testAuthority,
  until,
  type KubeCluster,
  type KubeObject,
  type NatsServer,
} from '#libs/testing';
import { run, type CommandOutput } from '../e2e/fleet.js';
import { Processes, ROOT, SLUICE } from '../e2e/processes.js';
import { FunctionStandIn } from '../../cli/src/demo/functions/stand-in.js';

export const NAMESPACE = 'sdewan';
export const podPath = (name: string): string => `/api/v1/namespaces/${NAMESPACE}/pods/${name}`;
export const secretPath = (name: string): string => `/api/v1/namespaces/${NAMESPACE}/secrets/${name}`;
const WORKLOADS = `/apis/apps/v1/namespaces/${NAMESPACE}`;
/** What the certificate of a pod at this address names. */
const POD_NAME = '127-0-0-1.sdewan.pod.cluster.local';
const LABELS = { sdewanPurpose: 'edge', 'cnf-account-secret': 'account', 'cnf-cert-secret': 'cert' };

/**
 * Network functions in pods of a real API server, and an applier that finds them there, with no more rights than the
 * documentation gives it. What a kubelet would do is done by `run`.
 */
export class PodFleet {
  readonly standIns = new Map<string, FunctionStandIn>();

  private constructor(
    private readonly folder: string,
    private readonly cluster: KubeCluster,
    private readonly server: NatsServer,
    readonly client: FleetClient,
    readonly processes: Processes,
    private readonly env: NodeJS.ProcessEnv,
  ) {}

  /** What the pods present. */
  private get tls(): { readonly key: string; readonly cert: string } {
    const [cert, key] = ['tls.crt', 'tls.key'].map((name) => readFileSync(join(this.folder, name), 'utf8'));
    return { key: key as string, cert: cert as string };
  }

  static async start(cluster: KubeCluster): Promise<PodFleet> {
    const folder = mkdtempSync(join(tmpdir(), 'sluice-pods-'));
    mkdirSync(join(folder, 'logs'));
    const authority = await testAuthority();
    await authority.write(folder, { dnsName: POD_NAME });
    const { api } = cluster;
    for (const name of [NAMESPACE, 'sluice']) await api.create('/api/v1/namespaces', { metadata: { name } });
    await applyManifests(cluster, join(ROOT, 'deploy/targets/functions-in-pods.yaml'));
    await until(() => api.get(`/api/v1/namespaces/${NAMESPACE}/serviceaccounts/default`), 'pods may be created');
    for (const [name, stringData] of [
      ['account', { password: 'secret' }],
      ['cert', { 'ca.crt': authority.ca }],
    ] as const)
      await api.create(`/api/v1/namespaces/${NAMESPACE}/secrets`, { metadata: { name }, stringData });
    const { status } = await api.create('/api/v1/namespaces/sluice/serviceaccounts/sluice-functions/token', {
      spec: {},
    });
    const kubeconfig = await cluster.kubeconfigOf('functions', (status as { readonly token: string }).token);
    const server = await startNatsServer();
    const env = {
      ...process.env,
      NATS_URL: server.url,
      NO_COLOR: '1',
      USER: 'somebody',
      KUBECONFIG: kubeconfig,
      SLUICE_SILENT_SECONDS: '4',
    };
    const fleet = new PodFleet(
      folder,
      cluster,
      server,
      await connectFleet({ servers: [server.url] }),
      new Processes(join(folder, 'logs'), env),
      env,
    );
    fleet.processes.start('services', ['service', ...SERVICES]);
    fleet.startApplier();
    return fleet;
  }

  startApplier(): void {
    const flags = ['--state', join(this.folder, 'state'), '--heartbeat-seconds', '1', '--check-seconds', '1'];
    this.processes.start('applier', ['applier', '--targets', 'functions', '--pods', ...flags]);
  }

  get log(): string {
    return readFileSync(join(this.folder, 'logs', 'applier.log'), 'utf8');
  }

  async workload(kind: 'Deployment' | 'StatefulSet', name: string, replicas: number): Promise<void> {
    const labels = { app: name, ...LABELS };
    await this.cluster.api.create(`${WORKLOADS}/${kind.toLowerCase()}s`, {
      metadata: { name },
      spec: {
        replicas,
        ...(kind === 'StatefulSet' ? { podManagementPolicy: 'Parallel', serviceName: name } : {}),
        selector: { matchLabels: { app: name } },
        template: { metadata: { labels }, spec: CONTAINERS },
      },
    });
  }

  async pod(name: string, labels: Readonly<Record<string, string>> = {}): Promise<void> {
    const metadata = { name, labels: { app: name, ...LABELS, ...labels } };
    await this.cluster.api.create(`/api/v1/namespaces/${NAMESPACE}/pods`, { metadata, spec: CONTAINERS });
  }

  /** The pods of a workload by name, once there are so many. */
  pods(app: string, count: number): Promise<readonly KubeObject[]> {
    return until(async () => {
      const pods = await this.cluster.api.list(`/api/v1/namespaces/${NAMESPACE}/pods?labelSelector=app%3D${app}`);
      const alive = pods.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
      return alive.length === count ? alive : undefined;
    }, `${app} has ${count} pods`);
  }

  /** The pod gets an address, where a stand-in with an empty config listens, and becomes ready. */
  async run(name: string, isReady = true): Promise<FunctionStandIn> {
    const standIn = await FunctionStandIn.start({ password: 'secret', tls: this.tls });
    this.standIns.set(name, standIn);
    const annotations = { 'sluice.dev/port': new URL(standIn.baseUrl).port };
    await this.cluster.api.patch(podPath(name), { metadata: { annotations } });
    await this.status(name, isReady);
    return standIn;
  }

  async status(name: string, isReady: boolean): Promise<void> {
    const conditions = [{ type: 'Ready', status: isReady ? 'True' : 'False', reason: 'ContainersNotReady' }];
    const status = { phase: 'Running', podIP: '127.0.0.1', podIPs: [{ ip: '127.0.0.1' }], conditions };
    await this.cluster.api.patch(`${podPath(name)}/status`, { status }, 'kubelet');
  }

  /** The pod is deleted, and its container ends. */
  async delete(name: string): Promise<void> {
    await this.cluster.api.remove(podPath(name));
    await this.standIns.get(name)?.close();
    this.standIns.delete(name);
  }

  /** The states of the nodes that did not leave. */
  async nodes(): Promise<Readonly<Record<string, string>>> {
    const views = await this.client.list('nodes').catch(() => new Map<string, NodeView>());
    return Object.fromEntries(
      [...views.values()].filter(({ state }) => state !== 'gone').map(({ node, state }) => [node, state]),
    );
  }

  /** Waits until these nodes are ready, and there are no others. */
  async untilReady(...names: readonly string[]): Promise<void> {
    const wanted = JSON.stringify(names.map((name) => `${name}.${NAMESPACE}`).sort());
    await until(async () => {
      const nodes = await this.nodes();
      return JSON.stringify(Object.keys(nodes).sort()) === wanted && Object.values(nodes).every((is) => is === 'ready');
    }, `${wanted} are ready`).catch(async (error: Error) => {
      throw new Error(`${error.message}: ${JSON.stringify(await this.nodes())}\n${this.log}`);
    });
  }

  async has(standIn: FunctionStandIn, ...policies: readonly string[]): Promise<void> {
    const names = (): readonly string[] =>
      standIn.config
        .list('mwan3/v1/policies')
        .map(({ name }) => String(name))
        .sort();
    await until(
      () => JSON.stringify(names()) === JSON.stringify(policies),
      `it has ${policies.join()}: ${names().join()}`,
    );
  }

  cli(...args: readonly string[]): Promise<CommandOutput> {
    return run(process.execPath, [SLUICE, ...args], { env: this.env, cwd: this.folder });
  }

  async apply(...manifests: readonly object[]): Promise<CommandOutput> {
    writeFileSync(join(this.folder, 'm.yaml'), manifests.map((manifest) => JSON.stringify(manifest)).join('\n---\n'));
    return this.cli('apply', '-f', 'm.yaml', '--wait');
  }

  async close(): Promise<void> {
    await this.processes.stopAll();
    await this.client.close();
    for (const standIn of this.standIns.values()) await standIn.close();
    await this.server.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

const CONTAINERS = { containers: [{ name: 'c', image: 'x' }] };

/** Like `kubectl apply -f`. */
export async function applyManifests({ api }: Pick<KubeCluster, 'api'>, file: string): Promise<void> {
  const places: Readonly<Record<string, string>> = {
    ServiceAccount: '/api/v1/namespaces/sluice/serviceaccounts',
    ClusterRole: '/apis/rbac.authorization.k8s.io/v1/clusterroles',
    ClusterRoleBinding: '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings',
  };
  for (const document of parseAllDocuments(readFileSync(file, 'utf8'))) {
    const object = document.toJS() as KubeObject;
    await api.create(`${places[object.kind ?? '']}`, object);
  }
}
