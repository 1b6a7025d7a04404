import { SILENT } from '#libs/process';
import { inventoryOf, type InventoryFlags } from './inventories.js';

it.each([
  [{}, '--targets functions needs --inventory FILE, a file that lists the functions, or --pods, to find them'],
  [{ pods: true, inventory: 'f' }, '--pods and --inventory are two lists: use one of them'],
  [{ inventory: 'f', namespace: 'a' }, '--namespace is only for --pods: add --pods, or leave it out'],
  [{ inventory: 'f', kubeContext: 'a' }, '--kube-context is only for --pods: add --pods, or leave it out'],
  [{ targets: 'clusters' }, '--targets clusters needs --inventory FILE, a file that lists the clusters, or --hub'],
  [{ targets: 'clusters', pods: true }, '--pods is not for --targets clusters: use --hub'],
  [{ targets: 'clusters', hub: true, selector: 'a' }, '--selector is only for --pods: leave it out'],
  [{ targets: 'clusters', hub: true, kubeconfig: '/none' }, 'the path of the kubeconfig names /none'],
  [{ targets: 'fleets' }, '--targets fleets needs --inventory FILE, a file that lists the fleets'],
  [{ targets: 'fleets', hub: true }, '--hub is not for --targets fleets: leave it out'],
  [{ pods: true, kubeconfig: '/none' }, 'the path of the kubeconfig names /none, which does not exist'],
])('flags %j are refused', async (flags: Partial<InventoryFlags>, message) => {
  await expect(inventoryOf({ targets: 'functions', ...flags }, { log: SILENT, env: {} })).rejects.toThrow(message);
});
