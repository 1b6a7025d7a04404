import { createHash } from 'node:crypto';
import { Kube, KubeConfigError, KubeError, type KubeOptions, type KubeSecret, type ObjectTable } from '#libs/kube';
import type { Logger } from '#libs/process';
import { functionTarget, type Timing } from '../../../services/applier/src/shell/targets/index.js';
import { UsageError } from '../output/exit.js';
import { confirmSame, INVENTORY_LABEL, type Inventory, type Listing } from './inventory.js';
import { podOfNode, replicasOf, secretsOf, type SecretReference } from './pod-replicas.js';
import { Soon } from './soon.js';

export interface PodInventoryOptions extends Pick<KubeOptions, 'kubeconfig' | 'context' | 'env'> {
  /** Undefined: all namespaces. */
  readonly namespace?: string | undefined;
  /** As kubectl writes it. */
  readonly selector: string;
  readonly log: Logger;
}

/** The pods of network functions. Throws UsageError if the kubeconfig cannot be used. */
export async function podInventory(options: PodInventoryOptions): Promise<Inventory> {
  const { namespace, selector, log } = options;
  const kube = await openKube(options);
  const choice = { namespace, selector };
  let clusterId = '';
  return {
    name: async () => {
      try {
        await kube.tryPodChoice(choice);
      } catch (error) {
        if (error instanceof KubeError && error.code === 400)
          throw new UsageError(`--selector ${selector} cannot be used: ${error.message}`);
        throw error;
      }
      clusterId = await kube.clusterId();
      const digest = createHash('sha256').update(JSON.stringify([clusterId, namespace ?? '', selector]));
      return `functions-${digest.digest('hex').slice(0, 12)}`;
    },
    start: (timing, onChange) => {
      const reading = new PodReading(kube, log, () => {
        const listing = reading.listing(clusterId, timing);
        if (listing !== undefined) onChange(listing);
      });
      reading.start(choice);
      return () => reading.stop();
    },
    leaving: {
      isOurs: (labels) => labels[INVENTORY_LABEL] === clusterId,
      confirm: () => confirmSame(kube, clusterId),
      isDeleted: async (node) => {
        const { namespace: of, name } = podOfNode(node);
        return (await kube.podReplica(of, name)) === undefined;
      },
      reason: 'its pod was deleted',
      mayOutlive: false,
    },
    close: () => kube.close(),
  };
}

/** Throws UsageError, which says what is wrong with the kubeconfig. */
export async function openKube({
  kubeconfig,
  context,
  env,
  log,
}: Pick<PodInventoryOptions, 'kubeconfig' | 'context' | 'env' | 'log'>): Promise<Kube> {
  try {
    return await Kube.open({ kubeconfig, context, ...(env === undefined ? {} : { env }), logger: log });
  } catch (error) {
    if (error instanceof KubeConfigError) throw new UsageError(error.message);
    throw error;
  }
}

/** Follows the pods, and each Secret that one of them names. */
class PodReading {
  private pods: ReturnType<Kube['followPodReplicas']> | undefined;
  private readonly secrets = new Map<string, ObjectTable<KubeSecret>>();
  private readonly changed: Soon;

  constructor(
    private readonly kube: Kube,
    private readonly log: Logger,
    onChange: () => void,
  ) {
    this.changed = new Soon(() => {
      this.followSecrets();
      onChange();
    });
  }

  start(choice: Parameters<Kube['followPodReplicas']>[0]): void {
    this.pods = this.kube.followPodReplicas(choice, { onChange: () => this.changed.call(), logger: this.log });
  }

  stop(): void {
    this.changed.stop();
    this.pods?.stop();
    for (const table of this.secrets.values()) table.stop();
  }

  /** Undefined until the pods were read. */
  listing(clusterId: string, timing: Timing): Listing | undefined {
    const pods = this.pods?.objects;
    if (pods === undefined) return undefined;
    const secret = (reference: SecretReference): KubeSecret | 'unread' | undefined => {
      const objects = this.secrets.get(keyOf(reference))?.objects;
      return objects === undefined ? 'unread' : objects.get(keyOf(reference));
    };
    const { replicas, problems, nodes } = replicasOf({ pods: pods.values(), secret, clusterId });
    return { targets: replicas.map((replica) => functionTarget(replica, timing)), problems, nodes };
  }

  private followSecrets(): void {
    const wanted = new Map(
      [...(this.pods?.objects?.values() ?? [])].flatMap(secretsOf).map((one) => [keyOf(one), one]),
    );
    for (const [key, reference] of wanted)
      if (!this.secrets.has(key))
        this.secrets.set(
          key,
          this.kube.followSecret(reference, { onChange: () => this.changed.call(), logger: this.log }),
        );
    for (const [key, table] of this.secrets) {
      if (wanted.has(key)) continue;
      table.stop();
      this.secrets.delete(key);
    }
  }
}

const keyOf = ({ namespace, name }: SecretReference): string => `${namespace}/${name}`;
