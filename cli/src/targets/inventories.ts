import type { Logger } from '#libs/process';
import { clusterTarget, functionTarget } from '../../../services/applier/src/shell/targets/index.js';
import { UsageError } from '../output/exit.js';
import { readClusters } from './cluster-inventory.js';
import { fileInventory } from './file-inventory.js';
import { readFunctions } from './function-inventory.js';
import type { Inventory } from './inventory.js';
import { podInventory } from './pod-inventory.js';

/** The flags that say where the targets are listed. */
export interface InventoryFlags {
  readonly targets: string;
  readonly inventory?: string;
  readonly pods?: boolean;
  readonly kubeconfig?: string;
  readonly kubeContext?: string;
  readonly namespace?: string;
  readonly selector?: string;
}

export interface InventoryParts {
  readonly log: Logger;
  readonly env: NodeJS.ProcessEnv;
}

/** Pods of network functions have this label, with what they are for. */
const PURPOSE_LABEL = 'sdewanPurpose';
const OF_KUBERNETES = {
  kubeconfig: '--kubeconfig',
  kubeContext: '--kube-context',
  namespace: '--namespace',
  selector: '--selector',
} as const;

/** What lists the targets. Throws UsageError if it is missing, or wrong now. */
export async function inventoryOf(flags: InventoryFlags, { log, env }: InventoryParts): Promise<Inventory> {
  const { targets: name, inventory: file, pods = false, kubeconfig, kubeContext: context, namespace, selector } = flags;
  if (pods && file !== undefined) throw new UsageError('--pods and --inventory are two lists: use one of them');
  if (pods) return podInventory({ kubeconfig, context, namespace, selector: selector ?? PURPOSE_LABEL, log, env });
  const flag = Object.entries(OF_KUBERNETES).find(
    ([one]) => flags[one as keyof typeof OF_KUBERNETES] !== undefined,
  )?.[1];
  if (flag !== undefined) throw new UsageError(`${flag} is only for --pods: add --pods, or leave it out`);
  if (file === undefined)
    throw new UsageError(
      `--targets ${name} needs --inventory FILE, a file that lists the ${name}, or --pods, to find them in Kubernetes`,
    );
  return name === 'clusters'
    ? fileInventory({ name, file, read: readClusters, target: clusterTarget, log })
    : fileInventory({ name, file, read: readFunctions, target: functionTarget, log });
}
