import type { LedgerService } from '#libs/nats';
import type { Kube } from '#libs/kube';
import type { Logger } from '#libs/process';
import {
  forgetNodes,
  kubernetesNode,
  noteListed,
  noteNode,
  type Input,
  type KubernetesNode,
  type State,
} from '../core/index.js';

/** Follows the Node objects of Kubernetes while this copy leads. */
export class NodeObjects {
  private readonly unfollow: () => void;
  private unwatch: (() => void) | undefined;

  constructor(
    private readonly ledger: LedgerService<State, Input>,
    private readonly kube: Kube,
    private readonly logger: Logger,
  ) {
    this.unfollow = ledger.follow((state) => (state === undefined ? this.end() : this.begin()));
  }

  /** Called by Nest. */
  async onModuleDestroy(): Promise<void> {
    this.unfollow();
    this.end();
    await this.kube.close();
  }

  private begin(): void {
    this.unwatch ??= this.kube.followNodes(
      {
        pick: kubernetesNode,
        onList: (nodes) => this.ledger.observe((state) => this.list(state, nodes)),
        onEvent: (name, node) => this.ledger.observe((state) => noteNode(state, name, node)),
      },
      this.logger,
    );
  }

  private list(state: State, nodes: ReadonlyMap<string, KubernetesNode>): boolean {
    const counts = noteListed(state, nodes);
    if (!counts)
      this.logger.error(
        { server: this.kube.server, nodes: nodes.size },
        'none of the known nodes is in this cluster: it seems to be the wrong cluster and is ignored until an applier reports from one of its machines; correct the kubeconfig, or remove the nodes (sluice remove NODE)',
      );
    return counts;
  }

  private end(): void {
    if (this.unwatch === undefined) return;
    this.unwatch();
    this.unwatch = undefined;
    this.ledger.observe(forgetNodes);
  }
}
