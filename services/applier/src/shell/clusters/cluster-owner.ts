import { APPLY_SET } from '#libs/manifests/lean';
import type { LiveObject } from '#libs/kube/lean';
import { UnreachableError } from '../ports.js';

const { name, namespace } = APPLY_SET;

export const CONFIG_MAPS = { root: '/api/v1', plural: 'configmaps', isNamespaced: true } as const;

/**
 * Whether the cluster says that it is that of the node, which was served before. Throws Unreachable if it is that of
 * another one now: the kubeconfig was replaced.
 */
export function isOwnedBy(found: LiveObject | undefined, node: string): boolean {
  const owner = ownerIn(found);
  if (owner !== undefined && owner !== node)
    throw new UnreachableError(`the kubeconfig is for the cluster of the node ${owner}: replace it by one for ${node}`);
  return owner !== undefined;
}

/** The cluster does not say whose it is. */
export const otherCluster = (node: string): string =>
  `the kubeconfig is for another cluster than before: this one has no ConfigMap ${namespace}/${name}. Replace it, or, if it is right, tell Sluice so in the cluster: kubectl create configmap ${name} -n ${namespace} --from-literal=node=${node}`;

export const ownerIn = (found: LiveObject | undefined): string | undefined =>
  (found?.['data'] as Readonly<Record<string, string>> | undefined)?.['node'];
