import {
  forgetNodes,
  kubernetesNode,
  noteListed,
  noteNode,
  type Input,
  type KubernetesNode,
  type State,
} from '../../../services/inventory/src/core/index.js';
import type { ServiceCopy } from '../world/service-copy.js';
import type { Companion } from '../world/service-host.js';
import type { Cluster, NodeObject } from './cluster.js';

const AGAIN_MS = 2_000;

/**
 * How the inventory follows Nodes: it lists them, then receives each change in order. When the watch breaks, it lists
 * them again.
 */
export class NodeObjects implements Companion {
  private run = 0;
  private following = false;
  /** Events are delivered in order, no matter how late. */
  private deliveredMs = 0;
  private readonly watcher = (name: string | undefined): void => {
    if (this.cluster.world.mutant?.overlooksNodes === true) return;
    if (name === undefined) this.list();
    else this.onWrite(name);
  };

  constructor(
    private readonly copy: ServiceCopy<State, Input>,
    private readonly cluster: Cluster,
  ) {}

  follow(): void {
    if (this.following) return;
    this.following = true;
    this.cluster.watchers.add(this.watcher);
    this.list();
  }

  ended(): void {
    if (!this.following) return;
    this.following = false;
    this.run += 1;
    this.cluster.watchers.delete(this.watcher);
    forgetNodes(this.copy.copy.state);
  }

  /** The Node as its kubelet reports it, with the boot id of its machine. */
  private seen(node: NodeObject): KubernetesNode {
    return kubernetesNode({ ...node, bootId: this.cluster.world.bootIdOf(node.name) });
  }

  private list(): void {
    const { cluster } = this;
    const run = ++this.run;
    cluster.world.clock.after(cluster.chance.next() * cluster.conditions.delayMs, () => {
      if (run !== this.run) return;
      if (cluster.away) return void cluster.world.clock.after(AGAIN_MS, () => run === this.run && this.list());
      this.deliveredMs = cluster.world.clock.nowMs;
      if (noteListed(this.copy.copy.state, new Map([...cluster.nodes].map(([name, node]) => [name, this.seen(node)]))))
        this.copy.wake();
    });
  }

  private onWrite(name: string): void {
    const { cluster, run } = this;
    if (cluster.away) return;
    const node = cluster.nodes.get(name);
    this.deliveredMs = Math.max(
      this.deliveredMs,
      cluster.world.clock.nowMs + cluster.chance.next() * cluster.conditions.watchLateMs,
    );
    cluster.world.clock.after(this.deliveredMs - cluster.world.clock.nowMs, () => {
      if (run !== this.run) return;
      if (noteNode(this.copy.copy.state, name, node === undefined ? undefined : this.seen(node))) this.copy.wake();
    });
  }
}
