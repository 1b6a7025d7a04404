import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Config, ConfigEntry } from '#libs/contracts';
import { kubeconfigText, type KubeObject, type LeanCluster } from '#libs/testing';
import { MemoryNodeBus } from '../../testing/memory-node-bus.js';
import { SILENT } from '../../core/index.js';
import { AT_ONCE, MemoryJournals } from '../targets/device.fixture.js';
import { runTarget, type RunningTarget } from '../targets/run-target.js';
import type { OnHub } from './cluster-kinds.js';
import { clusterTarget, type Hub } from './cluster-target.js';

/** A fragment with these objects. */
export const objects = (name: string, list: readonly object[], more: object = {}): ConfigEntry => ({
  kind: 'KubeObjects',
  name,
  spec: { objects: list, ...more } as unknown as ConfigEntry['spec'],
});
export const config = (...fragments: readonly ConfigEntry[]): Config => ({ fragments });

export const namespace = (name: string): object => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
export const configMap = (name: string, data: object, metadata: object = {}): object => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: 'default', ...metadata },
  data,
});
export const deployment = (name: string, image = 'a:1', spec: object = {}): object => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name, namespace: 'default' },
  spec: {
    selector: { matchLabels: { app: name } },
    template: { metadata: { labels: { app: name } }, spec: { containers: [{ name: 'a', image }] } },
    ...spec,
  },
});

/** The definition of a kind, and an object of it. */
export const definition = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'things.example.dev' },
  spec: {
    group: 'example.dev',
    scope: 'Namespaced',
    names: { kind: 'Thing', listKind: 'ThingList', plural: 'things', singular: 'thing' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
      },
    ],
  },
};
export const thing = {
  apiVersion: 'example.dev/v1',
  kind: 'Thing',
  metadata: { name: 'x', namespace: 'default' },
  size: 3,
};

const DEFAULT = '/namespaces/default';
export const configMapPath = (name: string): string => `/api/v1${DEFAULT}/configmaps/${name}`;
export const deploymentPath = (name: string): string => `/apis/apps/v1${DEFAULT}/deployments/${name}`;

/** The gate speaks plain HTTP, and knows the token. */
export const plainKubeconfig = (server: string): string => kubeconfigText({ server, ca: '', token: 'unused' });

/** One cluster, and the applier that serves it, on a bus in memory. */
export class ClusterScene {
  readonly bus: MemoryNodeBus;
  readonly journals = new MemoryJournals();
  readonly lost: string[] = [];
  /** Added to the real time. */
  aheadMs = 0;
  private readonly folder = mkdtempSync(join(tmpdir(), 'sluice-cluster-'));
  private readonly running: RunningTarget[] = [];
  private readonly ending = new AbortController();

  /** With a hub, the cluster was found there. */
  constructor(
    readonly cluster: LeanCluster,
    private readonly found: { readonly name?: string; readonly onHub?: OnHub; readonly hub?: Hub } = {},
  ) {
    this.bus = new MemoryNodeBus(found.name ?? 'c-1');
  }

  readonly clock = (): number => performance.now() + this.aheadMs;

  get api(): LeanCluster['api'] {
    return this.cluster.api;
  }

  /** `onUnusable` is called with the reason whenever the cluster ceases to answer. */
  async start(
    owner = 'one',
    kubeconfig = this.cluster.kubeconfig(),
    onUnusable: (reason: string) => void = () => undefined,
  ): Promise<RunningTarget> {
    const { name = 'c-1', onHub, hub } = this.found;
    const cluster = { name, labels: {}, kubeconfig, ...(onHub === undefined ? {} : { onHub }) };
    const target = clusterTarget(cluster, { clock: this.clock, checkMs: 500 }, hub);
    const running = await runTarget({
      target,
      bus: this.bus,
      journals: this.journals.of(owner),
      owner,
      folder: join(this.folder, owner),
      clock: this.clock,
      random: () => 0.5,
      log: { ...SILENT, warn: (fields) => 'reason' in fields && onUnusable(String(fields.reason)) },
      version: '1',
      heartbeatMs: 20,
      // Only a watch finds drift in time.
      driftCheckMs: 3_600_000,
      readEveryMs: 200,
      ending: this.ending.signal,
      sleep: () => new Promise((resolve) => setTimeout(resolve, 20)),
      onLost: () => this.lost.push(owner),
    });
    this.running.push(running);
    return running;
  }

  /** An applier that has announced the cluster. */
  async joined(owner = 'one'): Promise<RunningTarget> {
    const running = await this.start(owner);
    await this.bus.reported(({ kind }) => kind === 'announced');
    return running;
  }

  async data(name: string): Promise<unknown> {
    return ((await this.api.get(configMapPath(name))) as { readonly data?: unknown } | undefined)?.data;
  }

  /** Somebody applies an object by hand, as this manager. */
  async apply(path: string, body: object, manager: string): Promise<KubeObject> {
    const query = `fieldManager=${manager}&force=true`;
    const { code, body: answer } = await this.api.call(
      'PATCH',
      `${path}?${query}`,
      body,
      'application/apply-patch+yaml',
    );
    if (code >= 300) throw new Error(JSON.stringify(answer));
    return answer as KubeObject;
  }

  /** What a deployment controller writes once all replicas of the current generation are ready. */
  async makeReady(name: string): Promise<void> {
    const { metadata, spec } = (await this.api.get(deploymentPath(name))) as KubeObject & {
      readonly metadata: { readonly generation: number };
    };
    const replicas = spec?.['replicas'];
    const counts = Object.fromEntries(
      ['replicas', 'updatedReplicas', 'readyReplicas', 'availableReplicas'].map((field) => [field, replicas]),
    );
    const now = new Date().toISOString();
    const condition = (type: string, reason: string): object => ({
      type,
      reason,
      status: 'True',
      message: '',
      lastUpdateTime: now,
      lastTransitionTime: now,
    });
    const conditions = [
      condition('Available', 'MinimumReplicasAvailable'),
      condition('Progressing', 'NewReplicaSetAvailable'),
    ];
    const status = { observedGeneration: metadata.generation, ...counts, conditions };
    await this.api.patch(`${deploymentPath(name)}/status`, { status }, 'controller');
  }

  async end(): Promise<void> {
    this.ending.abort();
    await Promise.allSettled(this.running.map((one) => one.stop(AT_ONCE)));
    rmSync(this.folder, { recursive: true, force: true });
    await this.api.remove(configMapPath('sluice-applied'));
  }
}
