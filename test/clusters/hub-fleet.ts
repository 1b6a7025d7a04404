import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectFleet, type FleetClient } from '#libs/client';
import { SERVICES, type NodeView } from '#libs/contracts';
import {
  CLUSTER_API_DEFINITIONS,
  establish,
  startNatsServer,
  until,
  type LeanCluster,
  type NatsServer,
} from '#libs/testing';
import { run, type CommandOutput } from '../e2e/fleet.js';
import { Processes, ROOT, SLUICE } from '../e2e/processes.js';
import { FluxRole } from '../../services/applier/src/shell/clusters/flux.fixture.js';
import { applyManifests } from '../kube/pod-fleet.js';

export const NAMESPACE = 'fleet';
const SECRETS = `/api/v1/namespaces/${NAMESPACE}/secrets`;
const RBAC = `/apis/rbac.authorization.k8s.io/v1/namespaces/${NAMESPACE}`;
export const CLUSTERS = `/apis/cluster.x-k8s.io/v1beta2/namespaces/${NAMESPACE}/clusters`;

/** The least that Cluster API accepts. Its providers are not installed. */
export const CLUSTER_SPEC = {
  infrastructureRef: { apiGroup: 'infrastructure.cluster.x-k8s.io', kind: 'DockerCluster', name: 'any' },
};

/** The status of a Cluster, as Cluster API writes it. */
export const controlPlaneStatus = (isReady: boolean): object => ({
  initialization: { controlPlaneInitialized: true },
  conditions: [
    {
      type: 'ControlPlaneAvailable',
      status: isReady ? 'True' : 'False',
      reason: 'Test',
      message: '',
      lastTransitionTime: '2026-01-01T00:00:00Z',
    },
  ],
});

/** A hub with Clusters, and an applier that finds them there, with no more rights than the documentation gives it. */
export class HubFleet {
  private constructor(
    private readonly folder: string,
    private readonly hub: LeanCluster,
    private readonly server: NatsServer,
    readonly client: FleetClient,
    readonly processes: Processes,
    private readonly env: NodeJS.ProcessEnv,
  ) {}

  static async start(hub: LeanCluster): Promise<HubFleet> {
    const folder = mkdtempSync(join(tmpdir(), 'sluice-hub-'));
    mkdirSync(join(folder, 'logs'));
    for (const name of [NAMESPACE, 'sluice']) await hub.api.create('/api/v1/namespaces', { metadata: { name } });
    await applyManifests(hub, join(ROOT, 'deploy/targets/clusters-on-a-hub.yaml'));
    const account = '/api/v1/namespaces/sluice/serviceaccounts/sluice-clusters/token';
    const { status } = await hub.api.create(account, { spec: {} });
    const { token } = status as { readonly token: string };
    writeFileSync(join(folder, 'hub.kubeconfig'), hub.kubeconfig({ token }));
    const server = await startNatsServer();
    const env = { ...process.env, NATS_URL: server.url, NO_COLOR: '1', USER: 'somebody', SLUICE_SILENT_SECONDS: '4' };
    const processes = new Processes(join(folder, 'logs'), env);
    const client = await connectFleet({ servers: [server.url] });
    const fleet = new HubFleet(folder, hub, server, client, processes, env);
    processes.start('services', ['service', ...SERVICES]);
    const place = ['--hub', '--kubeconfig', join(folder, 'hub.kubeconfig'), '--state', join(folder, 'state')];
    const intervals = ['--heartbeat-seconds', '1', '--check-seconds', '1'];
    processes.start('applier', ['applier', '--targets', 'clusters', ...place, ...intervals]);
    return fleet;
  }

  /** Cluster API is installed. */
  async install(): Promise<void> {
    await establish(this.hub.api, CLUSTER_API_DEFINITIONS);
  }

  /** Grants the applier what FluxSyncs on the hub need. */
  async allowFlux(): Promise<void> {
    await applyManifests(this.hub, join(ROOT, 'deploy/targets/flux-on-a-hub.yaml'));
  }

  /** Grants the applier what bindings to ConfigMaps on the hub need, as the documentation tells people to do. */
  async allowConfigMaps(): Promise<void> {
    const metadata = { name: 'sluice-bindings' };
    await this.hub.api.create(`${RBAC}/roles`, {
      metadata,
      rules: [{ apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'list', 'watch'] }],
    });
    await this.hub.api.create(`${RBAC}/rolebindings`, {
      metadata,
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: metadata.name },
      subjects: [{ kind: 'ServiceAccount', name: 'sluice-clusters', namespace: 'sluice' }],
    });
  }

  /** Plays the Flux of the hub for objects of this name. */
  flux(name: string): FluxRole {
    return new FluxRole(this.hub.api, { namespace: NAMESPACE, name });
  }

  get log(): string {
    return readFileSync(join(this.folder, 'logs', 'applier.log'), 'utf8');
  }

  async cluster(name: string, metadata: object = {}): Promise<void> {
    const labels = { kind: 'cluster' };
    await this.hub.api.create(CLUSTERS, {
      apiVersion: 'cluster.x-k8s.io/v1beta2',
      kind: 'Cluster',
      metadata: { name, labels, ...metadata },
      spec: CLUSTER_SPEC,
    });
  }

  async ready(name: string, isReady = true): Promise<void> {
    await this.hub.api.patch(`${CLUSTERS}/${name}/status`, {
      status: controlPlaneStatus(isReady),
    });
  }

  /** As Cluster API makes it, or for Sluice. */
  async secret(name: string, kubeconfig: string, labels: object): Promise<void> {
    await this.hub.api.create(SECRETS, { metadata: { name, labels }, stringData: { value: kubeconfig } });
  }

  async own(cluster: string, kubeconfig: string): Promise<void> {
    await this.secret(`${cluster}-kubeconfig`, kubeconfig, { 'cluster.x-k8s.io/cluster-name': cluster });
  }

  async replace(name: string, kubeconfig: string): Promise<void> {
    await this.hub.api.patch(`${SECRETS}/${name}`, { stringData: { value: kubeconfig } });
  }

  async remove(path: string): Promise<void> {
    await this.hub.api.remove(path);
  }

  async removeSecret(name: string): Promise<void> {
    await this.remove(`${SECRETS}/${name}`);
  }

  /** Waits until the nodes that did not leave have these states. */
  async untilNodes(wanted: Readonly<Record<string, string>>): Promise<void> {
    let nodes: Readonly<Record<string, string>> = {};
    await until(async () => {
      const views = await this.client.list('nodes').catch(() => new Map<string, NodeView>());
      const present = [...views.values()].filter(({ state }) => state !== 'gone');
      nodes = Object.fromEntries(present.map(({ node, state }): [string, string] => [node, state]).sort());
      return JSON.stringify(nodes) === JSON.stringify(wanted);
    }, 'the nodes are as wanted').catch((error: Error) => {
      throw new Error(`${error.message}: ${JSON.stringify(nodes)}, wanted ${JSON.stringify(wanted)}\n${this.log}`);
    });
  }

  cli(...args: readonly string[]): Promise<CommandOutput> {
    return run(process.execPath, [SLUICE, ...args], { env: this.env, cwd: this.folder });
  }

  async apply(...manifests: readonly object[]): Promise<CommandOutput> {
    writeFileSync(join(this.folder, 'm.yaml'), manifests.map((manifest) => JSON.stringify(manifest)).join('\n---\n'));
    return this.cli('apply', '-f', 'm.yaml', '--wait');
  }

  /** Waits until `sluice doctor` says this, or does not. */
  async untilDoctor(words: string, isSaid = true): Promise<void> {
    await until(
      async () => (await this.cli('doctor')).stdout.includes(words) === isSaid,
      `doctor: ${words}`,
      60_000,
      200,
    );
  }

  async close(): Promise<void> {
    await this.processes.stopAll();
    await this.client.close();
    await this.server.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
