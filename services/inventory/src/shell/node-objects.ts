import type { LedgerService } from '#libs/bus';
import { cordonMarkOf } from '#libs/contracts';
import type { Kube, KubeNode } from '#libs/kube';
import type { Logger } from '#libs/runtime';
import {
  forgetNodes,
  isAnotherCluster,
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
        pick: seen,
        listed: (nodes) => this.ledger.observe((state) => this.list(state, nodes)),
        heard: (name, node) => this.ledger.observe((state) => noteNode(state, name, node)),
      },
      this.logger,
    );
  }

  private list(state: State, nodes: ReadonlyMap<string, KubernetesNode>): boolean {
    if (isAnotherCluster(state, nodes)) {
      this.logger.error(
        { server: this.kube.server, nodes: nodes.size },
        'not one of the Nodes that are known is here: this is another cluster, and nothing that it says is taken; correct the kubeconfig, or remove the nodes (sluice remove NODE)',
      );
    }
    return noteListed(state, nodes);
  }

  private end(): void {
    if (this.unwatch === undefined) return;
    this.unwatch();
    this.unwatch = undefined;
    this.ledger.observe(forgetNodes);
  }
}

function seen({ uid, labels, ready, unschedulable, annotations }: KubeNode): KubernetesNode {
  const mark = cordonMarkOf(annotations);
  // What Sluice cordoned for a lease counts by that lease.
  const cordoned = unschedulable && (mark === undefined || mark.found);
  return { uid, labels, unavailable: [...(ready ? [] : ['NotReady']), ...(cordoned ? ['cordoned'] : [])].join(', ') };
}

/** SLUICE_INVENTORY: where nodes are known from beside their own word. Throws for another word. */
export function asksKubernetes(environment: Readonly<Record<string, string | undefined>>): boolean {
  const text = environment['SLUICE_INVENTORY'] ?? 'announced';
  if (text !== 'announced' && text !== 'kubernetes')
    throw new Error(`SLUICE_INVENTORY is ${JSON.stringify(text)}, and must be announced or kubernetes`);
  return text === 'kubernetes';
}
