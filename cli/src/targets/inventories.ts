import type { Logger } from '#libs/process';
import { clusterTarget, fleetTarget, functionTarget } from '../../../services/applier/src/shell/targets/index.js';
import { UsageError } from '../output/exit.js';
import { readClusters } from './cluster-inventory.js';
import { fileInventory } from './file-inventory.js';
import { readFleets } from './fleet-inventory.js';
import { readFunctions } from './function-inventory.js';
import { hubInventory } from './hub-inventory.js';
import type { Inventory } from './inventory.js';
import { podInventory } from './pod-inventory.js';

/** The flags that say where the targets are listed. */
export interface InventoryFlags {
  readonly targets: string;
  readonly inventory?: string;
  readonly pods?: boolean;
  readonly hub?: boolean;
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
const ELSEWHERE = { ...OF_KUBERNETES, pods: '--pods', hub: '--hub' } as const;
/** How the targets of each kind are found in Kubernetes. */
const IN_KUBERNETES = { functions: 'pods', clusters: 'hub' } as const;
type Kind = keyof typeof IN_KUBERNETES;

/** What lists the targets. Throws UsageError if it is missing, or wrong now. */
export async function inventoryOf(flags: InventoryFlags, { log, env }: InventoryParts): Promise<Inventory> {
  const { targets: name, inventory: file, kubeconfig, kubeContext: context, namespace, selector } = flags;
  if (name === 'fleets') return fleetsOf(flags, log);
  const own = IN_KUBERNETES[name as Kind];
  const other = own === 'pods' ? 'hub' : 'pods';
  if (flags[other] === true) throw new UsageError(`--${other} is not for --targets ${name}: use --${own}`);
  const isFound = flags[own] === true;
  if (isFound && file !== undefined) throw new UsageError(`--${own} and --inventory are two lists: use one of them`);
  if (isFound && own === 'hub') {
    if (selector !== undefined) throw new UsageError('--selector is only for --pods: leave it out');
    return hubInventory({ kubeconfig, context, namespace, log, env });
  }
  if (isFound) return podInventory({ kubeconfig, context, namespace, selector: selector ?? PURPOSE_LABEL, log, env });
  const given = Object.entries(OF_KUBERNETES).find(([one]) => flags[one as keyof typeof OF_KUBERNETES] !== undefined);
  if (given !== undefined) throw new UsageError(`${given[1]} is only for --${own}: add --${own}, or leave it out`);
  if (file === undefined)
    throw new UsageError(
      `--targets ${name} needs --inventory FILE, a file that lists the ${name}, or --${own}, to find them in Kubernetes`,
    );
  return own === 'hub'
    ? fileInventory({ kind: name, file, read: readClusters, target: clusterTarget, log })
    : fileInventory({ kind: name, file, read: readFunctions, target: functionTarget, log });
}

/** Fleets are not found in Kubernetes. */
function fleetsOf(flags: InventoryFlags, log: Logger): Inventory {
  const { targets: name, inventory: file } = flags;
  const given = Object.entries(ELSEWHERE).find(([one]) => flags[one as keyof typeof ELSEWHERE] !== undefined);
  if (given !== undefined) throw new UsageError(`${given[1]} is not for --targets ${name}: leave it out`);
  if (file === undefined)
    throw new UsageError(`--targets ${name} needs --inventory FILE, a file that lists the ${name}`);
  return fileInventory({ kind: name, file, read: readFleets, target: fleetTarget, log });
}
