import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { LeanClusters, type LeanCluster } from '#libs/api-servers';
import { Deployments, deploymentText, type Event } from './deployments.js';

export const CLUSTERS = ['cluster-1', 'cluster-2', 'cluster-3'] as const;
export type ClusterName = (typeof CLUSTERS)[number];

const CONFIG_MAP = '/api/v1/namespaces/default/configmaps/web';

/** Three real API servers on one etcd. Nothing runs there but what sets the status of Deployments. */
export class DemoClusters {
  /** What happened to the Deployments of all clusters, in order. */
  readonly events: { readonly cluster: ClusterName; readonly event: Event }[] = [];
  private readonly deployments: readonly Deployments[];

  private constructor(private readonly servers: LeanClusters) {
    this.deployments = CLUSTERS.map((cluster) =>
      new Deployments(this.of(cluster).api, (event) => void this.events.push({ cluster, event })).start(),
    );
  }

  /** With its logs in this folder. */
  static async start(folder: string, signal: AbortSignal): Promise<DemoClusters> {
    return new DemoClusters(await LeanClusters.start(CLUSTERS.length, { folder, signal }));
  }

  /** Writes the file that lists the clusters, and returns its path. */
  list(folder: string): string {
    mkdirSync(folder, { recursive: true });
    for (const name of CLUSTERS)
      writeFileSync(join(folder, `${name}.kubeconfig`), this.of(name).kubeconfig(), { mode: 0o600 });
    const clusters = CLUSTERS.map((name) => ({
      name,
      labels: { kind: 'cluster' },
      kubeconfigFile: `${name}.kubeconfig`,
    }));
    const file = join(folder, 'clusters.yaml');
    writeFileSync(file, `${JSON.stringify({ clusters }, null, 1)}\n`);
    return file;
  }

  /** What a cluster has, as `web:1, 2/2 ready, "hello from cluster-1"`. */
  async state(name: ClusterName): Promise<string> {
    const { api } = this.of(name);
    const greeting = (await api.get(CONFIG_MAP)) as { readonly data?: { readonly greeting?: string } } | undefined;
    const parts = [await deploymentText(api), greeting === undefined ? undefined : `"${greeting.data?.greeting}"`];
    return parts.filter((part) => part !== undefined).join(', ');
  }

  states(): Promise<readonly string[]> {
    return Promise.all(CLUSTERS.map((name) => this.state(name)));
  }

  /** As somebody does with kubectl. Returns its uid: an object that is created again has another one. */
  async removeConfigMap(name: ClusterName): Promise<string> {
    const uid = await this.uidOfConfigMap(name);
    await this.of(name).api.remove(CONFIG_MAP);
    return uid;
  }

  async uidOfConfigMap(name: ClusterName): Promise<string> {
    return (await this.of(name).api.get(CONFIG_MAP))?.metadata.uid ?? '';
  }

  async close(): Promise<void> {
    for (const one of this.deployments) one.stop();
    await this.servers.stop();
  }

  private of(name: ClusterName): LeanCluster {
    return this.servers.all[CLUSTERS.indexOf(name)] as LeanCluster;
  }
}
