import type { DrainPod } from '../../../services/drain/src/core/index.js';
import type { Chance } from '../world/chance.js';
import type { Surroundings } from '../world/surroundings.js';

/** A pod, and its behaviour. */
export interface SimPod extends DrainPod {
  /** The Node on which it runs. Empty while it waits for one. */
  readonly on: string;
  readonly madeMs: number;
}

/** The parts of the cluster that pods need. */
interface ClusterView {
  readonly chance: Chance;
  readonly world: Surroundings;
  readonly nodes: ReadonlyMap<
    string,
    { readonly name: string; readonly unschedulable: boolean; readonly ready: boolean }
  >;
  notifyWatchers(node: string): void;
}

interface App {
  readonly name: string;
  readonly replicas: number;
  /** The minimum number of pods. */
  min: number;
}

/** How long a controller takes to notice that one of its pods is gone. */
const AGAIN_MS = 2_000;

/** Deployments with their budgets, DaemonSets, static pods, and the kubelets that end them. */
export class Workloads {
  readonly pods = new Map<string, SimPod>();
  readonly apps: App[] = [];
  /** Until this time, pods do not end. Otherwise they end in time. */
  stuck = 0;
  /** Share of ended pods that their controller recreates on the same Node. */
  returning = 0;
  private made = 0;

  constructor(private readonly cluster: ClusterView) {
    const { chance } = cluster;
    for (const name of ['web', 'db', 'job']) {
      const replicas = chance.integer(1, 4);
      this.apps.push({ name, replicas, min: name === 'job' ? 0 : Math.max(0, replicas - chance.integer(1, 2)) });
    }
  }

  /** Places the pods that run on every Node first, and then those that wait for a Node. */
  settleOn(name: string): void {
    this.make(name, { controller: 'DaemonSet', labels: { app: 'agent' } });
    this.make(name, { mirror: true, labels: { app: 'static' } });
    if (this.cluster.chance.flip(0.2)) this.make(name, { controller: 'Job', finished: true, labels: { app: 'done' } });
    this.schedule();
  }

  /** Places missing pods on schedulable Nodes. */
  schedule(): void {
    const open = [...this.cluster.nodes.values()]
      .filter(({ unschedulable, ready }) => !unschedulable && ready)
      .map(({ name }) => name);
    if (open.length === 0) return;
    for (const { name, replicas } of this.apps) {
      const there = [...this.pods.values()].filter(({ labels, ending }) => labels['app'] === name && !ending).length;
      for (let missing = replicas - there; missing > 0; missing--)
        this.make(this.cluster.chance.pick(open), { controller: 'ReplicaSet', labels: { app: name } });
    }
  }

  /** Pods that no controller would recreate. */
  stray(on: string): void {
    this.make(on, { controller: undefined, labels: { app: 'stray' } });
  }

  budgetOf({ labels }: SimPod): { readonly name: string; readonly allowed: number } | undefined {
    const app = this.apps.find(({ name }) => name === labels['app']);
    if (app === undefined || app.min === 0) return undefined;
    return { name: `default/${app.name}`, allowed: Math.max(0, this.healthy(app.name) - app.min) };
  }

  /** Names of the budgets that allow an eviction. */
  get freeBudgets(): readonly string[] {
    return this.apps.filter(({ name, min }) => this.healthy(name) > min).map(({ name }) => `default/${name}`);
  }

  healthy(app: string): number {
    return [...this.pods.values()].filter(
      ({ labels, ending, on }) => labels['app'] === app && !ending && this.cluster.nodes.get(on)?.ready === true,
    ).length;
  }

  /** Starts to end a pod. With a grace period of 0 it ends immediately. */
  end(pod: SimPod, graceSeconds: number | undefined): void {
    const { clock } = this.cluster.world;
    if (graceSeconds === 0) return this.gone(pod.uid);
    if (pod.ending) return;
    this.pods.set(pod.uid, { ...pod, ending: true });
    this.cluster.notifyWatchers(pod.on);
    clock.after(AGAIN_MS * (0.5 + this.cluster.chance.next()), () => this.schedule());
    if (this.cluster.chance.flip(this.stuck)) return this.cluster.world.fire('stuck-pods');
    clock.after(this.cluster.chance.next() * 1_000 * (graceSeconds ?? pod.graceSeconds), () => this.gone(pod.uid));
  }

  /** Removes its pods, because the Node is gone. */
  forgetNode(name: string): void {
    for (const { uid, on } of [...this.pods.values()]) if (on === name) this.pods.delete(uid);
    this.cluster.world.clock.after(AGAIN_MS, () => this.schedule());
  }

  endTrouble(): void {
    Object.assign(this, { stuck: 0, returning: 0 });
    for (const app of this.apps) app.min = Math.min(app.min, app.replicas - 1);
    for (const { uid, ending, labels } of [...this.pods.values()])
      if (ending || labels['app'] === 'stray') this.gone(uid);
    this.schedule();
  }

  private gone(uid: string): void {
    const pod = this.pods.get(uid);
    if (pod === undefined) return;
    this.pods.delete(uid);
    this.cluster.notifyWatchers(pod.on);
    if (
      this.returning > 0 &&
      pod.controller === 'ReplicaSet' &&
      this.cluster.nodes.has(pod.on) &&
      this.cluster.chance.flip(this.returning)
    ) {
      this.cluster.world.fire('returning-pods');
      this.make(pod.on, { controller: pod.controller, labels: pod.labels });
    }
    this.cluster.world.clock.after(AGAIN_MS * this.cluster.chance.next(), () => this.schedule());
  }

  private make(on: string, more: Partial<SimPod>): void {
    this.made += 1;
    const { chance, world } = this.cluster;
    const pod: SimPod = {
      namespace: 'default',
      name: `p${this.made}`,
      uid: `p${this.made}`,
      labels: {},
      priority: 0,
      graceSeconds: chance.pick([1, 5, 30]),
      controller: undefined,
      mirror: false,
      emptyDir: false,
      finished: false,
      ending: false,
      resources: [],
      on,
      madeMs: world.clock.nowMs,
      ...more,
    };
    this.pods.set(pod.uid, pod);
    this.cluster.notifyWatchers(on);
  }
}
